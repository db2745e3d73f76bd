#include "estimator.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "reef/base/text.h"
#include "reef/edgetpu/estimate.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {
namespace {

using chip::Section;

std::string number_text(std::uint64_t value) {
    return count_text(static_cast<std::int64_t>(value));
}

std::string size_text(std::uint64_t bytes) {
    return bytes_text(static_cast<std::int64_t>(bytes));
}

Section inferences(const PackageEstimate& estimate) {
    Section section{"on a real chip",
                    "an estimate from stated assumptions (docs/simulator.md), no measurement",
                    {}};
    chip::Table table{
        {{"inference"}, {"time", true}, {"cycles", true}, {"to the chip", true}, {"back", true}},
        {}};
    const auto& computing = estimate.computing;
    const auto row = [&](std::string name, double seconds, std::uint64_t cycles, std::uint64_t in) {
        table.rows.push_back({std::move(name), duration_text(seconds), number_text(cycles),
                              size_text(in), size_text(computing.from_chip_bytes)});
    };
    if (estimate.caching)
        row("first, with parameters", estimate.first_seconds,
            computing.cycles + estimate.caching->cycles,
            computing.to_chip_bytes + estimate.caching->to_chip_bytes);
    row(estimate.caching ? "parameters cached" : "each", estimate.cached_seconds, computing.cycles,
        computing.to_chip_bytes);
    row("the same, throttled clock", estimate.throttled_seconds, computing.cycles,
        computing.to_chip_bytes);
    section.lines.emplace_back(std::move(table));
    if (computing.counted_once)
        section.lines.emplace_back(
            chip::Note{"where the program goes is not known: its instructions are counted once"});
    return section;
}

/// The cycles of each kind of instruction, program by program.
Section instructions(const PackageEstimate& estimate) {
    Section section{
        "cycles by instruction", "estimated; syncs and fences only wait and are left out", {}};
    chip::Table table{{{"program"},
                       {"instruction"},
                       {"count", true},
                       {"busiest tile", true},
                       {"all tiles", true}},
                      {}};
    const auto add = [&](std::string_view program, const ExecutableEstimate& one) {
        for (const auto& row : one.instructions) {
            if (row.busiest_cycles == 0) continue;
            table.rows.push_back({std::string(program), std::string(row.instruction),
                                  number_text(row.count), number_text(row.busiest_cycles),
                                  number_text(row.all_cycles)});
        }
    };
    if (estimate.caching) add("parameters", *estimate.caching);
    add("inference", estimate.computing);
    section.lines.emplace_back(std::move(table));
    return section;
}

chip::Array document_of(const std::vector<InstructionCycles>& instructions) {
    chip::Array list;
    for (const auto& row : instructions)
        list.emplace_back(chip::Object{{"name", row.instruction},
                                       {"count", row.count},
                                       {"busiest_cycles", row.busiest_cycles},
                                       {"all_cycles", row.all_cycles}});
    return list;
}

chip::Object document_of(const PackageEstimate& estimate) {
    const auto& computing = estimate.computing;
    chip::Object document{{"first_s", estimate.first_seconds},
                          {"cached_s", estimate.cached_seconds},
                          {"throttled_s", estimate.throttled_seconds},
                          {"cycles", computing.cycles},
                          {"mac_steps", computing.mac_steps},
                          {"to_chip_bytes", computing.to_chip_bytes},
                          {"from_chip_bytes", computing.from_chip_bytes},
                          {"counted_once", computing.counted_once},
                          {"instructions", document_of(computing.instructions)}};
    if (estimate.caching)
        document.emplace_back(
            "caching", chip::Object{{"cycles", estimate.caching->cycles},
                                    {"to_chip_bytes", estimate.caching->to_chip_bytes},
                                    {"counted_once", estimate.caching->counted_once},
                                    {"instructions", document_of(estimate.caching->instructions)}});
    return document;
}

/// A process for each program, a lane for each tile and engine that does something.
chip::WorkPicture picture_of(const std::vector<EngineSpan>& spans) {
    chip::WorkPicture picture;
    std::map<bool, std::size_t> processes;
    std::map<std::tuple<bool, int, std::string_view>, std::size_t> lanes;
    const auto lane_of = [](const EngineSpan& span) {
        return std::tuple(span.caching, int{span.tile}, span.engine);
    };
    for (const auto& span : spans) {
        processes.emplace(span.caching, 0);
        lanes.emplace(lane_of(span), 0);
    }
    for (auto& [caching, number] : processes) {
        number = picture.processes.size();
        picture.processes.emplace_back(caching ? "Edge TPU, estimated: loading the parameters"
                                               : "Edge TPU, estimated: inference");
    }
    for (auto& [lane, number] : lanes) {
        const auto& [caching, tile, engine] = lane;
        number = picture.lanes.size();
        picture.lanes.push_back(
            {processes.at(caching), tile == EngineSpan::scalar_core
                                        ? fmt::format("scalar core {}", engine)
                                        : fmt::format("tile {} {}", tile, engine)});
    }
    const double microseconds = 1e6 / estimated_clock_hz();
    for (const auto& span : spans)
        picture.spans.push_back({lanes.at(lane_of(span)), std::string(span.instruction), span.word,
                                 static_cast<double>(span.begin) * microseconds,
                                 static_cast<double>(span.cycles) * microseconds});
    return picture;
}

}  // namespace

Result<std::optional<chip::Estimate>> Estimator::estimate(const model::Model& model) const {
    std::optional<PackageEstimate> sum;
    std::vector<EngineSpan> spans;
    for (const auto& op : REEF_TRY(packages_of(model))) {
        const auto one = REEF_TRY(in_place(edgetpu::estimate(op.package, &spans), op.place));
        if (sum) {
            *sum += one;
        } else {
            sum = one;
        }
    }
    if (!sum) return std::nullopt;
    return chip::Estimate{
        {inferences(*sum), instructions(*sum)}, document_of(*sum), picture_of(spans)};
}

}  // namespace reef::edgetpu
