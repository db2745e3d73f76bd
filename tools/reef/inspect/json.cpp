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

/// `chip`: that the model is compiled for, or null.
Json operators_json(const model::Subgraph& graph, const SubgraphReport& report,
                    const ChipReport* chip, std::size_t subgraph) {
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
        if (chip != nullptr) {
            const auto& placement = chip->inspection->placements()[subgraph][i];
            json["runs_on"] = placement.on_chip ? chip->inspector->family() : "cpu";
            json["reason"] = in_flags(placement.reason);
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
    if (!cpu) return {{"runs", false}, {"reason", in_flags(cpu.error().message())}};
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

Json subgraph_json(const ModelReport& model, std::size_t index) {
    const model::Subgraph& graph = model.model.subgraphs[index];
    const SubgraphReport& report = model.subgraphs[index];
    Json json{{"name", graph.name}, {"inputs", graph.inputs}, {"outputs", graph.outputs}};
    json.update(cost_json(report.total));
    json["devices"] = {{"cpu", cpu_json(report.cpu)}};
    json["operators"] = operators_json(graph, report, model.compiled_for(), index);
    json["tensors"] = tensors_json(graph, report);
    return json;
}

}  // namespace

Json inspect_json(const ModelReport& report) {
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
    for (const ChipReport& chip : report.chips)
        document[std::string(chip.inspector->family())] = to_json(chip.inspection->document());
    for (const MappingReport& mapping : report.mappings) {
        Json& operators = document["mapping"][std::string(mapping.compiler->family())];
        operators = Json::array();
        for (const chip::CompiledOperator& op : mapping.operators)
            operators.push_back({{"index", op.index},
                                 {"name", op.name},
                                 {"on_chip", op.on_chip},
                                 {"reason", in_flags(op.reason)}});
    }
    document["subgraphs"] = Json::array();
    for (std::size_t i = 0; i < model.subgraphs.size(); ++i)
        document["subgraphs"].push_back(subgraph_json(report, i));
    return document;
}

}  // namespace reef::tool
