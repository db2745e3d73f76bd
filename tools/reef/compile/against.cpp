#include "compile/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "outputs/text_table.h"
#include "reef/base/file.h"
#include "reef/chip/estimate.h"
#include "reef/model/tflite.h"
#include "reef/runtime/driver.h"
#include "reef/runtime/registry.h"

namespace reef::tool {
namespace {

using Names = std::set<std::string>;

/// Of the tensors that operators which are no programs give.
Names given_on_cpu(const model::Model& compiled, const runtime::Driver& driver) {
    Names names;
    const auto& graph = compiled.subgraphs.front();
    for (const auto& op : graph.operators) {
        if (driver.is_compiled(op)) continue;
        for (const auto tensor : op.outputs)
            if (tensor >= 0) names.insert(graph.tensors[static_cast<std::size_t>(tensor)].name);
    }
    return names;
}

std::size_t programs_in(const model::Model& compiled, const runtime::Driver& driver) {
    return static_cast<std::size_t>(
        std::ranges::count_if(compiled.subgraphs.front().operators,
                              [&](const auto& op) { return driver.is_compiled(op); }));
}

template <typename T>
T number_in(const chip::Object& document, std::string_view key) {
    for (const auto& [name, value] : document)
        if (name == key)
            if (const auto* number = std::get_if<T>(&value.held())) return *number;
    return {};
}

Result<CompiledFigures> figures_of(const model::Model& compiled, std::size_t bytes,
                                   std::string_view family, const runtime::Driver& driver) {
    CompiledFigures out{.file_bytes = bytes, .programs = programs_in(compiled, driver)};
    const auto* estimator = runtime::Registry::of_process().part<chip::Estimator>(family);
    if (estimator == nullptr) return out;
    const auto estimate = REEF_TRY(estimator->estimate(compiled));
    if (!estimate) return out;
    out.cycles = number_in<std::uint64_t>(estimate->document, "cycles");
    out.milliseconds = number_in<double>(estimate->document, "cached_s") * 1e3;
    out.to_chip_bytes = number_in<std::uint64_t>(estimate->document, "to_chip_bytes");
    return out;
}

/// Whether an operator of the plain model is still there: it gives a tensor of the same name.
bool is_left(const model::Subgraph& plain, const model::Operator& op, const Names& on_cpu) {
    return std::ranges::any_of(op.outputs, [&](auto tensor) {
        return tensor >= 0 && on_cpu.contains(plain.tensors[static_cast<std::size_t>(tensor)].name);
    });
}

Status check_same_model(const model::Subgraph& plain, const model::Subgraph& there) {
    const auto names = [](const model::Subgraph& graph) {
        Names all;
        for (const auto input : graph.inputs)
            all.insert(graph.tensors[static_cast<std::size_t>(input)].name);
        return all;
    };
    if (names(plain) == names(there)) return {};
    return fail(Cause::bad_input, "its inputs are not those of the plain model", {},
                "compare with the same model as another compiler made it");
}

}  // namespace

Result<Against> compare_against(const model::Model& plain, const chip::Compilation& here,
                                std::size_t here_bytes, const std::string& there,
                                std::string_view family) {
    const auto* driver = runtime::Registry::of_process().find_driver(family);
    if (driver == nullptr)
        return fail(Cause::unsupported, fmt::format("nothing reads programs of '{}'", family));
    const auto file = REEF_TRY(read_file(there));
    const auto other = REEF_TRY(in_place(model::read_tflite(file), there));
    const auto& graph = plain.subgraphs.front();
    REEF_CHECK(in_place(check_same_model(graph, other.subgraphs.front()), there));
    Against out{.path = there, .here = {}, .there = {}, .rows = {}};
    out.here = REEF_TRY(figures_of(here.model, here_bytes, family, *driver));
    out.there = REEF_TRY(in_place(figures_of(other, file.size(), family, *driver), there));
    if (out.there.programs == 0)
        return fail(Cause::bad_input, fmt::format("it has no program for '{}'", family), there,
                    "give a compiled model");
    const Names on_cpu = given_on_cpu(other, *driver);
    for (const auto& op : here.operators) {
        auto row = std::ranges::find(out.rows, op.name, &PlacementRow::name);
        if (row == out.rows.end()) row = out.rows.insert(row, {.name = op.name});
        const bool left = is_left(graph, graph.operators[op.index], on_cpu);
        ++row->count;
        row->on_chip += op.on_chip ? 1 : 0;
        row->on_chip_there += left ? 0 : 1;
        out.here.operators_on_chip += op.on_chip ? 1 : 0;
        out.there.operators_on_chip += left ? 0 : 1;
    }
    return out;
}

void print_against(Console& console, const Against& against) {
    const auto& [path, here, there, rows] = against;
    console.print("\nagainst {}\n\n", printable(path));
    TextTable figures(
        {{""}, {"Reef", Align::right}, {"there", Align::right}, {"ratio", Align::right}});
    const auto row = [&](const char* name, double a, double b, const char* format) {
        figures.add({name, fmt::format(fmt::runtime(format), a),
                     fmt::format(fmt::runtime(format), b),
                     b > 0 ? fmt::format("{:.2f}", a / b) : ""});
    };
    const auto count = [&](const char* name, auto a, auto b) {
        row(name, static_cast<double>(a), static_cast<double>(b), "{:.0f}");
    };
    count("operators on the chip", here.operators_on_chip, there.operators_on_chip);
    count("programs", here.programs, there.programs);
    count("estimated cycles", here.cycles, there.cycles);
    row("estimated ms, with transfers", here.milliseconds, there.milliseconds, "{:.3f}");
    count("bytes to the chip with an inference", here.to_chip_bytes, there.to_chip_bytes);
    count("bytes of the file", here.file_bytes, there.file_bytes);
    figures.print(console);
    console.print("\n");
    TextTable placements({{"Operator"},
                          {"Count", Align::right},
                          {"on the chip", Align::right},
                          {"there", Align::right}});
    for (const auto& r : rows)
        placements.add({printable(r.name), std::to_string(r.count), std::to_string(r.on_chip),
                        std::to_string(r.on_chip_there)});
    placements.print(console);
}

Json against_json(const Against& against) {
    const auto figures = [](const CompiledFigures& f) {
        return Json{{"operators_on_chip", f.operators_on_chip},
                    {"programs", f.programs},
                    {"estimated_cycles", f.cycles},
                    {"estimated_ms", f.milliseconds},
                    {"to_chip_bytes", f.to_chip_bytes},
                    {"file_bytes", f.file_bytes}};
    };
    Json rows = Json::array();
    for (const auto& r : against.rows)
        rows.push_back({{"name", r.name},
                        {"count", r.count},
                        {"on_chip", r.on_chip},
                        {"on_chip_there", r.on_chip_there}});
    return {{"model", against.path},
            {"here", figures(against.here)},
            {"there", figures(against.there)},
            {"placements", std::move(rows)}};
}

}  // namespace reef::tool
