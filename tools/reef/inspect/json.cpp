#include "inspect/print.h"
#include "inspect/report.h"
#include "outputs/json_output.h"
#include "outputs/model_text.h"

namespace reef::tool {
namespace {

Json cost_json(const model::Cost& cost) {
    return {{"macs", cost.macs},
            {"weight_bytes", cost.weight_bytes},
            {"activation_bytes", cost.activation_bytes}};
}

/// `placements`: one per operator, or none for a plain model.
Json operators_json(const model::Subgraph& graph, const SubgraphReport& report,
                    const std::vector<OperatorPlacement>& placements) {
    Json operators = Json::array();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        Json json{{"index", i},
                  {"name", op.code.name()},
                  {"custom", op.code.builtin == model::Op::custom},
                  {"version", op.code.version},
                  {"inputs", op.inputs},
                  {"outputs", op.outputs}};
        json.update(cost_json(report.costs[i]));
        if (op.code.builtin == model::Op::custom) {
            json["custom_options_bytes"] = op.custom_options.size();
        }
        if (!placements.empty()) {
            json["runs_on"] = placements[i].on_chip ? "edgetpu" : "cpu";
            json["reason"] = placements[i].reason;
        }
        operators.push_back(std::move(json));
    }
    return operators;
}

Json tensors_json(const model::Subgraph& graph, const SubgraphReport& report) {
    Json tensors = Json::array();
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const model::Tensor& tensor = graph.tensors[i];
        Json json = tensor_json(graph, static_cast<model::TensorIndex>(i));
        json["role"] = to_string(report.roles[i]);
        json["bytes"] = nullptr;
        if (const auto bytes = tensor.byte_count()) json["bytes"] = *bytes;
        if (tensor.shape_signature) json["shape_signature"] = *tensor.shape_signature;
        tensors.push_back(std::move(json));
    }
    return tensors;
}

Json cpu_json(const Result<graph::MemoryReport>& cpu) {
    if (!cpu) return {{"runs", false}, {"reason", cpu.error().message()}};
    return {{"runs", true},
            {"arena_bytes", cpu->arena_bytes},
            {"arena_lower_bound_bytes", cpu->lower_bound_bytes},
            {"variable_bytes", cpu->variable_bytes},
            {"packed_weight_bytes", cpu->packed_bytes}};
}

Json signatures_json(const model::Model& model) {
    const auto tensors = [](const std::vector<model::SignatureTensor>& list) {
        Json json = Json::array();
        for (const auto& entry : list) {
            json.push_back({{"name", entry.name}, {"tensor", entry.tensor}});
        }
        return json;
    };
    Json signatures = Json::array();
    for (const model::Signature& signature : model.signatures) {
        signatures.push_back({{"key", signature.key},
                              {"subgraph", signature.subgraph},
                              {"inputs", tensors(signature.inputs)},
                              {"outputs", tensors(signature.outputs)}});
    }
    return signatures;
}

Json subgraph_json(const model::Subgraph& graph, const SubgraphReport& report,
                   const std::vector<OperatorPlacement>& placements) {
    Json json{{"name", graph.name}, {"inputs", graph.inputs}, {"outputs", graph.outputs}};
    json.update(cost_json(report.total));
    json["devices"] = {{"cpu", cpu_json(report.cpu)}};
    json["operators"] = operators_json(graph, report, placements);
    json["tensors"] = tensors_json(graph, report);
    return json;
}

}  // namespace

void print_inspect_json(Console& console, const ModelReport& report) {
    const model::Model& model = report.model;
    Json document = json_document("inspect");
    document["file"] = report.path;
    document["file_bytes"] = report.file_bytes;
    document["version"] = model.version;
    document["description"] = model.description;
    document["metadata"] = Json::array();
    for (const model::Metadata& entry : model.metadata) {
        document["metadata"].push_back(
            {{"name", entry.name}, {"bytes", model.buffers[entry.buffer].size()}});
    }
    document["signatures"] = signatures_json(model);
    document["edgetpu"] = edgetpu_json(report.edgetpu);
    document["subgraphs"] = Json::array();
    for (std::size_t i = 0; i < model.subgraphs.size(); ++i) {
        const auto& edgetpu = report.edgetpu;
        document["subgraphs"].push_back(subgraph_json(
            model.subgraphs[i], report.subgraphs[i],
            edgetpu.is_compiled() ? edgetpu.placements[i] : std::vector<OperatorPlacement>()));
    }
    print_json(console, document);
}

}  // namespace reef::tool
