#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/inspect/inspection.h"
#include "reef/base/text.h"
#include "reef/edgetpu/estimate.h"
#include "reef/edgetpu/parameter_memory.h"

namespace reef::edgetpu {
namespace {

using chip::Section;

constexpr std::size_t hints_at_a_glance = 20;

std::string size_text(std::size_t bytes) {
    return bytes_text(static_cast<std::int64_t>(bytes));
}

// -- Memory and traffic ---------------------------------------------------------------------------

void add_memory(Section& section, const Package& package) {
    const auto memory = parameter_memory_of(package);
    const std::int64_t occupied = memory.occupied_bytes.value_or(memory.cached_bytes);
    section.add("on chip",
                fmt::format("{} of parameters cached, taking {} of the {} of parameter memory; at "
                            "most {} free",
                            bytes_text(memory.cached_bytes), bytes_text(occupied),
                            bytes_text(parameter_memory_bytes),
                            bytes_text(parameter_memory_bytes - occupied)));
    const InferenceTraffic traffic = traffic_of(package);
    section.add("streamed", memory.streamed_bytes == 0
                                ? "no parameters: all are cached"
                                : fmt::format("{} of parameters in every inference",
                                              bytes_text(memory.streamed_bytes)));
    section.add("per inference",
                fmt::format("{} of instructions, {} of inputs and {} of parameters to the chip, {} "
                            "of outputs back",
                            bytes_text(traffic.instructions), bytes_text(traffic.inputs),
                            bytes_text(traffic.parameters), bytes_text(traffic.outputs)));
}

// -- Executables ----------------------------------------------------------------------------------

void add_counts(Section& section, const Executable& executable) {
    constexpr std::size_t widest = 80;
    std::string line;
    for (const auto& [name, count] : count_instructions(executable)) {
        const std::string entry = fmt::format("{} {}", name, count);
        if (line.size() + entry.size() > widest) {
            section.add("", line + ",");
            line.clear();
        }
        line += line.empty() ? entry : fmt::format(", {}", entry);
    }
    if (!line.empty()) section.add("", line);
}

std::string layout_text(const Layer& layer) {
    if (layer.layout() == nullptr) return "row by row";
    const std::size_t parts = layer.layout()->tile_byte_offset.size();
    return parts <= 1 ? "row by row" : fmt::format("in parts of {} tiles", parts);
}

void add_layer(Section& section, std::string_view kind, const Layer& layer) {
    constexpr std::size_t longest = 56;
    const bool apart = layer.name.size() > longest;
    std::string text =
        fmt::format("{}{}{}x{}x{} {}", apart ? "" : layer.name, apart ? "" : "  ", layer.y_dim,
                    layer.x_dim, layer.z_dim, to_string(layer.data_type));
    if (layer.numerics) {
        text += fmt::format("  scale {:g}, zero point {}", layer.numerics->dequantization_factor,
                            layer.numerics->zero_point);
    }
    text += fmt::format("  {}, {}", bytes_text(layer.size_bytes), layout_text(layer));
    if (layer.executions_per_inference != 1) {
        text += fmt::format(", {} times per inference", layer.executions_per_inference);
    }
    section.add(std::string(kind), text);
    if (apart) section.add("", layer.name);
}

std::vector<std::string> hint_cells(const DmaHint& hint) {
    const std::string direction = to_string(hint.direction);
    if (const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what)) {
        const std::string& layer = transfer->meta.name;
        const std::string base = to_string(transfer->meta.base);
        return {"transfer", direction, layer.empty() ? base : fmt::format("{} {}", base, layer),
                std::to_string(transfer->offset_bytes), std::to_string(transfer->size_bytes)};
    }
    if (const auto* instructions = std::get_if<InstructionHint>(&hint.what)) {
        return {"instructions", direction, fmt::format("bitstream {}", instructions->bitstream), "",
                ""};
    }
    if (const auto* interrupt = std::get_if<InterruptHint>(&hint.what)) {
        return {"wait", direction, fmt::format("interrupt {}", interrupt->interrupt), "", ""};
    }
    const bool fence = std::holds_alternative<FenceHint>(hint.what);
    return {fence ? "fence" : "none", direction, "", "", ""};
}

void add_hints(Section& section, const DmaHints& hints, chip::Detail detail) {
    section.add("DMA hints", fmt::format("{}, {}", plural(hints.hints.size(), "step"),
                                         hints.fully_deterministic ? "all of a run, in this order"
                                                                   : "the known part of a run"));
    if (hints.hints.empty()) return;
    chip::Table table{
        {{"#", true}, {"step"}, {"direction"}, {"what"}, {"from byte", true}, {"bytes", true}}, {}};
    const std::size_t count = detail == chip::Detail::all
                                  ? hints.hints.size()
                                  : std::min(hints.hints.size(), hints_at_a_glance);
    for (std::size_t i = 0; i < count; ++i) {
        auto cells = hint_cells(hints.hints[i]);
        cells.insert(cells.begin(), std::to_string(i));
        table.rows.push_back(std::move(cells));
    }
    table.left_out = hints.hints.size() - count;
    section.lines.emplace_back(std::move(table));
}

Section section_of(std::size_t index, const Executable& executable, chip::Detail detail) {
    Section section{fmt::format("executable {} {}", index, to_string(executable.type)), {}, {}};
    if (!executable.name.empty()) section.add("name", executable.name);
    section.add("chip", executable.chip);
    section.add("token", executable.parameter_caching_token == 0
                             ? "none: parameters are loaded every time"
                             : fmt::format("{:#018x}", executable.parameter_caching_token));
    std::size_t bytes = 0;
    std::size_t fields = 0;
    for (const auto& stream : executable.bitstreams) {
        bytes += stream.instructions.size();
        fields += stream.field_offsets.size();
    }
    section.add("instructions", fmt::format("{} in {}, {} to be filled in", size_text(bytes),
                                            plural(executable.bitstreams.size(), "bitstream"),
                                            plural(fields, "address field")));
    add_counts(section, executable);
    section.add("parameters", size_text(executable.parameters.size()));
    section.add("memory", fmt::format("{} of narrow memory per tile, {} of scratch on the host",
                                      bytes_text(executable.used_narrow_memory_bytes_per_tile),
                                      bytes_text(executable.scratch_size_bytes)));
    for (const Layer& layer : executable.inputs) add_layer(section, "input", layer);
    for (const Layer& layer : executable.outputs) add_layer(section, "output", layer);
    if (executable.dma_hints) add_hints(section, *executable.dma_hints, detail);
    return section;
}

void add_package(std::vector<Section>& sections, const std::string& place, const Package& package,
                 chip::Detail detail) {
    // Some compilers leave the number of their change list out.
    const bool versioned = !package.compiler_version.empty() && package.compiler_version != "cl/";
    Section section{
        "Edge TPU " + place,
        fmt::format("for runtime {} or newer, compiler version {}", package.min_runtime_version,
                    versioned ? package.compiler_version : "not given"),
        {}};
    if (!package.model_identifier.empty()) section.add("identifier", package.model_identifier);
    for (const std::string& clause : package.not_preserved)
        section.add("unknown", clause + ": newer than this version of Reef");
    add_memory(section, package);
    constexpr double ms = 1e3;
    if (const auto time = estimate(package))
        section.add("estimate", fmt::format("{} cycles, {:.3f} ms with transfers over USB, from "
                                            "assumptions (docs/edgetpu-machine.md)",
                                            time->computing.cycles, time->cached_seconds * ms));
    section.add("shares",
                "the parameter memory with models of the same token; others evict its parameters");
    sections.push_back(std::move(section));
    for (std::size_t i = 0; i < package.executables.size(); ++i)
        sections.push_back(section_of(i, package.executables[i], detail));
    for (std::size_t i = 0; i < package.multi_chip.size(); ++i)
        add_package(sections, fmt::format("{}, chip {}", place, i), package.multi_chip[i], detail);
}

}  // namespace

std::vector<Section> ModelInspection::sections(chip::Detail detail) const {
    std::vector<Section> sections;
    if (!compiled_) {
        sections.push_back(
            {"Edge TPU", "the compiled part cannot be read: " + compiled_.error().message(), {}});
        return sections;
    }
    for (const auto& compiled : *compiled_)
        add_package(sections, compiled.place, compiled.package, detail);
    return sections;
}

}  // namespace reef::edgetpu
