#include <algorithm>
#include <tuple>

#include "inspect/chip_text.h"
#include "inspect/print.h"
#include "outputs/model_text.h"
#include "outputs/text_table.h"

namespace reef::tool {
namespace {

constexpr std::size_t rows_at_a_glance = 20;

void print_field(Console& console, std::string_view name, std::string_view text) {
    console.print("  {:<12} {}\n", name, printable(text));
}

/// An input or an output; a name that is longer than most stands on a line of its own, whole.
void print_endpoint(Console& console, std::string_view kind, const model::Subgraph& graph,
                    model::TensorIndex index) {
    constexpr std::size_t longest = 56;
    const model::Tensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
    const std::string quantization = quantization_text(tensor);
    const bool apart = tensor.name.size() > longest;
    print_field(
        console, kind,
        fmt::format("t{} {}{}{}{}{}", index, apart ? "" : tensor.name, apart ? "" : "  ",
                    shape_and_type(tensor), quantization.empty() ? "" : "  ", quantization));
    if (apart) print_field(console, "", tensor.name);
}

/// Constants are marked with a star.
std::string flow_text(const model::Subgraph& graph, const SubgraphReport& report,
                      const std::vector<model::TensorIndex>& indices) {
    std::string text;
    for (const model::TensorIndex index : indices) {
        if (!text.empty()) text += ", ";
        if (index == model::absent_tensor) {
            text += "none";
            continue;
        }
        const auto i = static_cast<std::size_t>(index);
        if (report.roles[i] == TensorRole::constant) text += "*";
        text += fmt::format("t{} ", index);
        text += shape_and_type(graph.tensors[i]);
    }
    return text;
}

std::string macs_text(std::int64_t macs) {
    return macs == 0 ? "" : count_text(macs);
}
std::string weights_text(std::int64_t bytes) {
    return bytes == 0 ? "" : bytes_text(bytes);
}

void print_file(Console& console, const ModelReport& report) {
    const model::Model& model = report.model;
    console.print("{}  {}, TFLite schema version {}\n",
                  console.heading(printable(file_name(report.path))),
                  bytes_text(static_cast<std::int64_t>(report.file_bytes)), model.version);
    if (!model.description.empty()) print_field(console, "description", model.description);
    for (const model::Metadata& entry : model.metadata) {
        const auto size = static_cast<std::int64_t>(model.buffers[entry.buffer].size());
        print_field(console, "metadata", fmt::format("{}, {}", entry.name, bytes_text(size)));
    }
    const auto names = [](const std::vector<model::SignatureTensor>& list) {
        std::string text;
        for (const auto& entry : list) {
            text += fmt::format("{}{} = t{}", text.empty() ? "" : ", ", entry.name, entry.tensor);
        }
        return text;
    };
    for (const model::Signature& signature : model.signatures) {
        print_field(console, "signature",
                    fmt::format("{}: {} -> {}", signature.key, names(signature.inputs),
                                names(signature.outputs)));
    }
}

void print_cpu(Console& console, const Result<graph::MemoryReport>& cpu) {
    if (!cpu) {
        print_field(console, "cpu", "cannot run: " + in_flags(cpu.error().message()));
        return;
    }
    const auto bytes = [](std::size_t size) { return bytes_text(static_cast<std::int64_t>(size)); };
    std::string text =
        fmt::format("runs; arena {} (lower bound {}), packed weights {}", bytes(cpu->arena_bytes),
                    bytes(cpu->lower_bound_bytes), bytes(cpu->packed_bytes));
    if (cpu->variable_bytes > 0) text += fmt::format(", state {}", bytes(cpu->variable_bytes));
    print_field(console, "cpu", text);
}

void print_types(Console& console, const model::Subgraph& graph, const SubgraphReport& report) {
    struct Sum {
        std::string name;
        std::size_t count = 0;
        std::int64_t macs = 0;
        std::int64_t weights = 0;
    };
    std::vector<Sum> sums;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const std::string name = graph.operators[i].code.name();
        auto found = std::ranges::find(sums, name, &Sum::name);
        if (found == sums.end()) found = sums.insert(sums.end(), Sum{name});
        found->count += 1;
        found->macs += report.costs[i].macs;
        found->weights += report.costs[i].weight_bytes;
    }
    std::ranges::sort(sums, [](const Sum& a, const Sum& b) {
        return std::tuple(-a.macs, b.count, a.name) < std::tuple(-b.macs, a.count, b.name);
    });
    TextTable table({{"type"},
                     {"count", Align::right},
                     {"MACs", Align::right},
                     {"share", Align::right},
                     {"constants", Align::right}});
    for (const Sum& sum : sums) {
        const double share = report.total.macs == 0 ? 0
                                                    : 100.0 * static_cast<double>(sum.macs) /
                                                          static_cast<double>(report.total.macs);
        table.add({sum.name, std::to_string(sum.count), macs_text(sum.macs),
                   sum.macs == 0 ? "" : fmt::format("{:.1f} %", share), weights_text(sum.weights)});
    }
    console.write("\n");
    table.print(console);
}

void print_operators(Console& console, const model::Subgraph& graph, const SubgraphReport& report,
                     bool all) {
    TextTable table({{"#", Align::right},
                     {"operator"},
                     {"version", Align::right},
                     {"MACs", Align::right},
                     {"constants", Align::right},
                     {"inputs -> outputs (* constant)"}});
    const std::size_t count = graph.operators.size();
    // Two rows more cost less than a line that says so.
    const std::size_t shown = all || count <= rows_at_a_glance + 2 ? count : rows_at_a_glance;
    for (std::size_t i = 0; i < shown; ++i) {
        const model::Operator& op = graph.operators[i];
        std::string flow =
            flow_text(graph, report, op.inputs) + " -> " + flow_text(graph, report, op.outputs);
        if (op.code.builtin == model::Op::custom) {
            flow += fmt::format("; {} of custom options",
                                bytes_text(static_cast<std::int64_t>(op.custom_options.size())));
        }
        table.add({std::to_string(i), op.code.name(), std::to_string(op.code.version),
                   macs_text(report.costs[i].macs), weights_text(report.costs[i].weight_bytes),
                   flow});
    }
    console.write("\n");
    table.print(console);
    if (shown < count) console.print("  ... {} more: --all shows them\n", count - shown);
}

void print_tensors(Console& console, const model::Subgraph& graph, const SubgraphReport& report) {
    TextTable table({{"tensor", Align::right},
                     {"role"},
                     {"shape and type"},
                     {"bytes", Align::right},
                     {"name"},
                     {"quantisation"}});
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const model::Tensor& tensor = graph.tensors[i];
        const auto bytes = tensor.byte_count();
        table.add({std::to_string(i), std::string(to_string(report.roles[i])),
                   shape_and_type(tensor), bytes ? std::to_string(*bytes) : "?", tensor.name,
                   quantization_text(tensor)});
    }
    console.write("\n");
    table.print(console);
}

}  // namespace

void print_inspect_text(Console& console, const ModelReport& report, const InspectDetail& detail) {
    print_file(console, report);
    for (std::size_t s = 0; s < report.subgraphs.size(); ++s) {
        const model::Subgraph& graph = report.model.subgraphs[s];
        const SubgraphReport& part = report.subgraphs[s];
        console.print(
            "\n{}  {}, {}\n",
            console.heading(graph.name.empty()
                                ? fmt::format("subgraph {}", s)
                                : fmt::format("subgraph {} {}", s, printable(graph.name))),
            plural(graph.operators.size(), "operator"), plural(graph.tensors.size(), "tensor"));
        for (const auto index : graph.inputs) print_endpoint(console, "input", graph, index);
        for (const auto index : graph.outputs) print_endpoint(console, "output", graph, index);
        const ChipReport* chip = report.compiled_for();
        print_field(console, chip != nullptr ? "cpu cost" : "cost",
                    fmt::format("{} MACs, constants {}, activations {} read and written",
                                count_text(part.total.macs), bytes_text(part.total.weight_bytes),
                                bytes_text(part.total.activation_bytes)));
        print_cpu(console, part.cpu);
        for (const ChipReport& one : report.chips)
            if (chip == nullptr)
                print_field(console, label_of(*one.inspector), one.inspection->not_compiled());
        if (graph.operators.empty()) continue;
        if (chip != nullptr) {
            print_placement(console, graph, *chip, s, part.costs);
        } else if (graph.operators.size() > 1) {
            print_types(console, graph, part);
        }
        print_operators(console, graph, part, detail.all);
        if (detail.tensors) print_tensors(console, graph, part);
    }
    for (const MappingReport& mapping : report.mappings) print_mapping(console, mapping);
    if (const ChipReport* chip = report.compiled_for())
        for (const auto& section :
             chip->inspection->sections(detail.all ? chip::Detail::all : chip::Detail::glance))
            print_section(console, section);
}

}  // namespace reef::tool
