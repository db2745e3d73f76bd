#include "inspect/edgetpu.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "outputs/model_text.h"
#include "outputs/text_table.h"
#include "reef/edgetpu/isa.h"

namespace reef::tool {
namespace {

using edgetpu::Executable;
using edgetpu::Layer;

constexpr std::size_t hints_at_a_glance = 20;

void print_field(Console& console, std::string_view name, std::string_view text) {
    console.print("  {:<14} {}\n", name, printable(text));
}

std::string size_text(std::size_t bytes) {
    return bytes_text(static_cast<std::int64_t>(bytes));
}

// -- Memory and traffic ---------------------------------------------------------------------------

void print_memory(Console& console, const edgetpu::Package& package) {
    const auto memory = edgetpu::parameter_memory_of(package);
    const std::int64_t occupied = memory.occupied_bytes.value_or(memory.cached_bytes);
    print_field(console, "on chip",
                fmt::format("{} of parameters cached, taking {} of the {} of parameter memory; at "
                            "most {} free",
                            bytes_text(memory.cached_bytes), bytes_text(occupied),
                            bytes_text(edgetpu::parameter_memory_bytes),
                            bytes_text(edgetpu::parameter_memory_bytes - occupied)));
    const InferenceTraffic traffic = traffic_of(package);
    print_field(console, "streamed",
                memory.streamed_bytes == 0 ? "no parameters: all are cached"
                                           : fmt::format("{} of parameters in every inference",
                                                         bytes_text(memory.streamed_bytes)));
    print_field(console, "per inference",
                fmt::format("{} of instructions, {} of inputs and {} of parameters to the chip, {} "
                            "of outputs back",
                            bytes_text(traffic.instructions), bytes_text(traffic.inputs),
                            bytes_text(traffic.parameters), bytes_text(traffic.outputs)));
}

// -- Executables ----------------------------------------------------------------------------------

void print_counts(Console& console, const Executable& executable) {
    constexpr std::size_t widest = 80;
    std::string line;
    for (const auto& [name, count] : count_instructions(executable)) {
        const std::string entry = fmt::format("{} {}", name, count);
        if (line.size() + entry.size() > widest) {
            print_field(console, "", line + ",");
            line.clear();
        }
        line += line.empty() ? entry : fmt::format(", {}", entry);
    }
    if (!line.empty()) print_field(console, "", line);
}

std::string layout_text(const Layer& layer) {
    if (layer.layout() == nullptr) return "row by row";
    const std::size_t parts = layer.layout()->tile_byte_offset.size();
    return parts <= 1 ? "row by row" : fmt::format("in parts of {} tiles", parts);
}

void print_layer(Console& console, std::string_view kind, const Layer& layer) {
    std::string text = fmt::format("{}  {}x{}x{} {}", shortened(layer.name), layer.y_dim,
                                   layer.x_dim, layer.z_dim, edgetpu::to_string(layer.data_type));
    if (layer.numerics) {
        text += fmt::format("  scale {:g}, zero point {}", layer.numerics->dequantization_factor,
                            layer.numerics->zero_point);
    }
    text += fmt::format("  {}, {}", bytes_text(layer.size_bytes), layout_text(layer));
    if (layer.executions_per_inference != 1) {
        text += fmt::format(", {} times per inference", layer.executions_per_inference);
    }
    print_field(console, kind, text);
}

std::vector<std::string> hint_cells(const edgetpu::DmaHint& hint) {
    const std::string direction = edgetpu::to_string(hint.direction);
    if (const auto* transfer = std::get_if<edgetpu::DmaDescriptorHint>(&hint.what)) {
        const std::string& layer = transfer->meta.name;
        const std::string base = edgetpu::to_string(transfer->meta.base);
        return {"transfer", direction,
                layer.empty() ? base : fmt::format("{} {}", base, shortened(layer)),
                std::to_string(transfer->offset_bytes), std::to_string(transfer->size_bytes)};
    }
    if (const auto* instructions = std::get_if<edgetpu::InstructionHint>(&hint.what)) {
        return {"instructions", direction, fmt::format("bitstream {}", instructions->bitstream), "",
                ""};
    }
    if (const auto* interrupt = std::get_if<edgetpu::InterruptHint>(&hint.what)) {
        return {"wait", direction, fmt::format("interrupt {}", interrupt->interrupt), "", ""};
    }
    const bool fence = std::holds_alternative<edgetpu::FenceHint>(hint.what);
    return {fence ? "fence" : "none", direction, "", "", ""};
}

void print_hints(Console& console, const edgetpu::DmaHints& hints, bool all) {
    print_field(console, "DMA hints",
                fmt::format("{}, {}", plural(hints.hints.size(), "step"),
                            hints.fully_deterministic ? "all of a run, in this order"
                                                      : "the known part of a run"));
    TextTable table({{"#", Align::right},
                     {"step"},
                     {"direction"},
                     {"what"},
                     {"from byte", Align::right},
                     {"bytes", Align::right}});
    const std::size_t count =
        all ? hints.hints.size() : std::min(hints.hints.size(), hints_at_a_glance);
    for (std::size_t i = 0; i < count; ++i) {
        auto cells = hint_cells(hints.hints[i]);
        cells.insert(cells.begin(), std::to_string(i));
        table.add(std::move(cells));
    }
    if (count > 0) table.print(console);
    if (count < hints.hints.size()) {
        console.print("  ... and {} more: --all lists them\n", hints.hints.size() - count);
    }
}

void print_executable(Console& console, std::size_t index, const Executable& executable, bool all) {
    const std::string title =
        fmt::format("executable {} {}", index, edgetpu::to_string(executable.type));
    console.print("\n{}\n", console.heading(title));
    if (!executable.name.empty()) print_field(console, "name", executable.name);
    print_field(console, "chip", executable.chip);
    print_field(console, "token",
                executable.parameter_caching_token == 0
                    ? "none: parameters are loaded every time"
                    : fmt::format("{:#018x}", executable.parameter_caching_token));
    std::size_t bytes = 0;
    std::size_t fields = 0;
    for (const auto& stream : executable.bitstreams) {
        bytes += stream.instructions.size();
        fields += stream.field_offsets.size();
    }
    print_field(console, "instructions",
                fmt::format("{} in {}, {} to be filled in", size_text(bytes),
                            plural(executable.bitstreams.size(), "bitstream"),
                            plural(fields, "address field")));
    print_counts(console, executable);
    print_field(console, "parameters", size_text(executable.parameters.size()));
    print_field(console, "memory",
                fmt::format("{} of narrow memory per tile, {} of scratch on the host",
                            bytes_text(executable.used_narrow_memory_bytes_per_tile),
                            bytes_text(executable.scratch_size_bytes)));
    for (const Layer& layer : executable.inputs) print_layer(console, "input", layer);
    for (const Layer& layer : executable.outputs) print_layer(console, "output", layer);
    if (executable.dma_hints) print_hints(console, *executable.dma_hints, all);
}

void print_package(Console& console, const std::string& place, const edgetpu::Package& package,
                   bool all) {
    // Some compilers leave the number of their change list out.
    const bool versioned = !package.compiler_version.empty() && package.compiler_version != "cl/";
    console.print("\n{}  for runtime {} or newer, compiler version {}\n",
                  console.heading(printable("Edge TPU " + place)), package.min_runtime_version,
                  versioned ? printable(package.compiler_version) : "not given");
    if (!package.model_identifier.empty()) {
        print_field(console, "identifier", package.model_identifier);
    }
    for (const std::string& clause : package.not_preserved) {
        print_field(console, "unknown", clause + ": newer than this version of Reef");
    }
    print_memory(console, package);
    print_field(console, "shares",
                "the parameter memory with models of the same token; others evict its parameters");
    for (std::size_t i = 0; i < package.executables.size(); ++i) {
        print_executable(console, i, package.executables[i], all);
    }
    for (std::size_t i = 0; i < package.multi_chip.size(); ++i) {
        print_package(console, fmt::format("{}, chip {}", place, i), package.multi_chip[i], all);
    }
}

/// Bytes of the hints' transfers of a region; of the layers where the hints name none, as in
/// programs whose order only the chip knows.
std::int64_t transferred(const Executable& executable, edgetpu::BaseAddress base,
                         const std::vector<Layer>& layers) {
    std::int64_t bytes = 0;
    if (executable.dma_hints) {
        for (const auto& hint : executable.dma_hints->hints) {
            const auto* transfer = std::get_if<edgetpu::DmaDescriptorHint>(&hint.what);
            if (transfer != nullptr && transfer->meta.base == base) bytes += transfer->size_bytes;
        }
    }
    if (bytes > 0) return bytes;
    for (const Layer& layer : layers) {
        bytes += std::int64_t{layer.size_bytes} * layer.executions_per_inference;
    }
    return bytes;
}

}  // namespace

InstructionCounts count_instructions(const Executable& executable) {
    std::map<std::string, std::size_t> counts;
    for (const auto& stream : executable.bitstreams) {
        edgetpu::InstructionCursor cursor(stream.instructions.view());
        while (const auto instruction = cursor.next()) {
            counts[instruction->info == nullptr ? "data" : std::string(instruction->info->name)] +=
                1;
        }
    }
    InstructionCounts sorted(counts.begin(), counts.end());
    std::ranges::stable_sort(sorted, std::greater(), &InstructionCounts::value_type::second);
    return sorted;
}

InferenceTraffic traffic_of(const edgetpu::Package& package) {
    InferenceTraffic traffic;
    for (const Executable& executable : package.executables) {
        if (executable.type == edgetpu::ExecutableType::parameter_caching) continue;
        for (const auto& stream : executable.bitstreams) {
            traffic.instructions += static_cast<std::int64_t>(stream.instructions.size());
        }
        traffic.parameters += static_cast<std::int64_t>(executable.parameters.size());
        traffic.inputs +=
            transferred(executable, edgetpu::BaseAddress::input_activation, executable.inputs);
        traffic.outputs +=
            transferred(executable, edgetpu::BaseAddress::output_activation, executable.outputs);
    }
    return traffic;
}

EdgetpuReport report_on_edgetpu(const model::Model& model) {
    EdgetpuReport report{edgetpu::packages_of(model), {}};
    if (report.compiled && report.compiled->empty()) return report;
    for (const model::Subgraph& graph : model.subgraphs) {
        report.placements.push_back(place_operators(model, graph));
    }
    return report;
}

void print_placement(Console& console, const model::Subgraph& graph,
                     const std::vector<OperatorPlacement>& placements,
                     const std::vector<model::Cost>& costs) {
    struct Row {
        std::string name;
        const OperatorPlacement* placement;
        std::size_t count = 0;
        std::int64_t macs = 0;
    };
    std::vector<Row> rows;
    std::map<std::pair<std::string, std::string_view>, std::size_t> row_of;
    for (std::size_t i = 0; i < placements.size(); ++i) {
        const std::string name = graph.operators[i].code.name();
        const auto [at, is_new] = row_of.try_emplace({name, placements[i].reason}, rows.size());
        if (is_new) rows.push_back({name, &placements[i]});
        rows[at->second].count += 1;
        rows[at->second].macs += costs[i].macs;
    }
    std::ranges::stable_sort(rows, std::greater(),
                             [](const Row& row) { return row.placement->on_chip; });
    TextTable table(
        {{"operator"}, {"count", Align::right}, {"MACs", Align::right}, {"runs on"}, {"why"}});
    for (const Row& row : rows) {
        table.add({row.name, std::to_string(row.count),
                   row.placement->on_chip ? "inside"
                   : row.macs == 0        ? ""
                                          : count_text(row.macs),
                   row.placement->on_chip ? "Edge TPU" : "CPU", row.placement->reason});
    }
    const auto on_chip =
        std::ranges::count_if(placements, [](const auto& one) { return one.on_chip; });
    const auto on_cpu = static_cast<std::ptrdiff_t>(placements.size()) - on_chip;
    if (on_chip == 0) {
        console.print("  edge tpu     nothing of this subgraph runs on the chip\n");
    } else if (on_cpu == 0) {
        console.print("  edge tpu     everything runs on the chip, nothing on the CPU\n");
    } else {
        console.print("  edge tpu     {} on the chip, {} on the CPU\n",
                      plural(static_cast<std::size_t>(on_chip), "compiled operator"),
                      plural(static_cast<std::size_t>(on_cpu), "operator"));
    }
    console.write("\n");
    table.print(console);
}

void print_packages(Console& console, const EdgetpuReport& report, bool all) {
    if (!report.compiled) {
        console.print("\n{}  the compiled part cannot be read: {}\n", console.heading("Edge TPU"),
                      printable(report.compiled.error().message()));
        return;
    }
    for (const auto& compiled : *report.compiled) {
        print_package(console, compiled.place, compiled.package, all);
    }
}

}  // namespace reef::tool
