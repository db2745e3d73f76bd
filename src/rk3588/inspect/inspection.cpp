#include "rk3588/inspect/inspection.h"

#include <fmt/format.h>

#include "reef/base/text.h"
#include "rk3588/inspect/program_view.h"

namespace reef::rk3588 {
namespace {

using chip::Array;
using chip::Object;
using chip::Section;
using chip::Table;
using chip::Value;

constexpr std::size_t rows_at_a_glance = 20;

std::string size_text(std::uint64_t bytes) {
    return bytes_text(static_cast<std::int64_t>(bytes));
}

Result<std::vector<InspectedProgram>> programs_of(const model::Model& model) {
    std::vector<InspectedProgram> all;
    for (std::size_t s = 0; s < model.subgraphs.size(); ++s) {
        const auto& graph = model.subgraphs[s];
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
            if (is_compiled(graph.operators[i]))
                all.push_back(
                    {s, i,
                     REEF_TRY(in_place(read_artifact(graph.operators[i].custom_options.view()),
                                       model::place_of(graph, i)))});
    }
    return all;
}

std::vector<chip::OperatorPlacement> place_operators(const model::Subgraph& graph) {
    std::vector<chip::OperatorPlacement> placements;
    for (const model::Operator& op : graph.operators)
        if (is_compiled(op))
            placements.push_back(
                {true, "a program for the RK3588; its operators are listed below"});
        else
            placements.push_back({false,
                                  "left out by the compiler; `check` of the plain model with "
                                  "`target` rk3588 says why"});
    return placements;
}

void cut(Table& table, chip::Detail detail) {
    if (detail == chip::Detail::all || table.rows.size() <= rows_at_a_glance) return;
    table.left_out = table.rows.size() - rows_at_a_glance;
    table.rows.resize(rows_at_a_glance);
}

std::string times(std::uint64_t cycles) {
    return fmt::format("{} cycles", cycles);
}

Section program_section(const InspectedProgram& program, const ProgramView& view) {
    const Artifact& a = program.artifact;
    Section section{fmt::format("program in operator {}", program.index),
                    fmt::format("RK3588, schema version {}", version_of(a)),
                    {}};
    section.add("cores", fmt::format("{}, {} between barriers", cores_of(a),
                                     plural(stages_of(a).size(), "stage")));
    section.add("rounding", a.requantisation.empty() ? "not told" : a.requantisation);
    section.add("tasks",
                fmt::format("{} of {}", a.tasks.size(), plural(a.operators.size(), "operator")));
    section.add("memory",
                fmt::format("{} of commands, {} of constants, {} of activations",
                            size_text(a.commands.size() * sizeof(a.commands[0])),
                            size_text(a.constants.size()), size_text(a.activation_bytes)));
    std::string relocations;
    for (const Area area : {Area::commands, Area::constants, Area::activations})
        relocations += fmt::format("{}{} into {}", relocations.empty() ? "" : ", ",
                                   view.relocations[static_cast<std::size_t>(area)], name_of(area));
    section.add("relocations", relocations);
    const BytesMoved& b = view.bytes;
    section.add("bytes moved",
                fmt::format("{}: {} features, {} weights, {} operands, {} commands, {} results",
                            size_text(b.total()), size_text(b.features), size_text(b.weights),
                            size_text(b.operands), size_text(b.commands), size_text(b.results)));
    if (a.sram_bytes != 0)
        section.add("SRAM", fmt::format("the first {} of the activations; {} of the bytes moved",
                                        size_text(a.sram_bytes), size_text(view.sram_bytes)));
    section.add("estimate", times(view.cycles) + ", from assumptions (docs/rk3588-machine.md)");
    return section;
}

Section task_section(const ProgramView& view, chip::Detail detail) {
    Table table{{{"task", true},
                 {"core", true},
                 {"operator"},
                 {"kind"},
                 {"in"},
                 {"out"},
                 {"window"},
                 {"banks", true},
                 {"bytes", true},
                 {"cycles", true}},
                {}};
    for (std::size_t i = 0; i < view.tasks.size(); ++i) {
        const TaskView& t = view.tasks[i];
        const bool buffer = t.data_banks + t.weight_banks != 0;
        table.rows.push_back({std::to_string(i), std::to_string(t.core), t.op, t.kind,
                              text_of(t.in), text_of(t.out), t.window,
                              buffer ? fmt::format("{}+{}", t.data_banks, t.weight_banks) : "",
                              std::to_string(t.work.bytes.total()), std::to_string(t.cycles)});
    }
    cut(table, detail);
    return {"tasks", "banks of features and of weights; bytes moved; cycles estimated", {table}};
}

Section memory_section(const ProgramView& view, chip::Detail detail) {
    Table table{{{"tensor"},
                 {"shape"},
                 {"offset", true},
                 {"bytes", true},
                 {"written", true},
                 {"read", true}},
                {}};
    for (const TensorView& t : view.tensors)
        table.rows.push_back({t.name,
                              text_of(ImageShape{t.cube.height, t.cube.width, t.cube.channels}),
                              fmt::format("{:#x}", t.cube.offset), std::to_string(t.cube.bytes()),
                              std::to_string(t.first_stage), std::to_string(t.last_stage)});
    cut(table, detail);
    return {"activations", "written in a stage, read until another", {table}};
}

void add_remarks(const Artifact& a, std::vector<Section>& sections) {
    if (!a.absorbed.empty()) {
        Table table{{{"operator"}, {"why"}}, {}};
        for (const AbsorbedOperator& op : a.absorbed)
            table.rows.push_back({fmt::format("{} {}", op.index, op.name), text_of(op)});
        sections.push_back({"operators without tasks", "", {table}});
    }
    if (a.unproven.empty()) return;
    Table table{{{"form"}, {"operators", true}}, {}};
    for (const UnprovenForm& form : a.unproven)
        table.rows.push_back({form.what, std::to_string(form.operators)});
    sections.push_back({"unproven forms", "no stream of a real RK3588 has shown them", {table}});
}

Object object_of(const BytesMoved& b) {
    return {{"features", b.features}, {"weights", b.weights}, {"operands", b.operands},
            {"commands", b.commands}, {"results", b.results}, {"total", b.total()}};
}

Array array_of(const ImageShape& s) {
    return {s.height, s.width, s.channels};
}

Object document_of(const TaskView& t) {
    return {{"operator", t.op},
            {"kind", t.kind},
            {"stage", t.stage},
            {"core", t.core},
            {"input", array_of(t.in)},
            {"output", array_of(t.out)},
            {"window", t.window},
            {"data_banks", t.data_banks},
            {"weight_banks", t.weight_banks},
            {"bytes_moved", object_of(t.work.bytes)},
            {"bytes_moved_in_sram", t.sram_bytes},
            {"array_cycles", t.work.array},
            {"estimated_cycles", t.cycles}};
}

Object document_of(const InspectedProgram& program, const ProgramView& view) {
    const Artifact& a = program.artifact;
    Array tasks, tensors, absorbed, unproven;
    for (const TaskView& t : view.tasks) tasks.emplace_back(document_of(t));
    for (const TensorView& t : view.tensors)
        tensors.emplace_back(Object{{"name", t.name},
                                    {"shape", Array{t.cube.height, t.cube.width, t.cube.channels}},
                                    {"offset", t.cube.offset},
                                    {"bytes", t.cube.bytes()},
                                    {"first_stage", t.first_stage},
                                    {"last_stage", t.last_stage}});
    for (const AbsorbedOperator& op : a.absorbed)
        absorbed.emplace_back(Object{{"index", op.index}, {"name", op.name}, {"why", text_of(op)}});
    for (const UnprovenForm& form : a.unproven)
        unproven.emplace_back(Object{{"form", form.what}, {"operators", form.operators}});
    Object relocations;
    for (const Area area : {Area::commands, Area::constants, Area::activations})
        relocations.emplace_back(std::string(name_of(area)),
                                 view.relocations[static_cast<std::size_t>(area)]);
    return {{"subgraph", program.subgraph},
            {"operator", program.index},
            {"chip", "RK3588"},
            {"schema_version", version_of(a)},
            {"cores", cores_of(a)},
            {"stages", stages_of(a).size()},
            {"requantisation", a.requantisation},
            {"command_bytes", a.commands.size() * sizeof(a.commands[0])},
            {"constant_bytes", a.constants.size()},
            {"activation_bytes", a.activation_bytes},
            {"relocations", std::move(relocations)},
            {"sram_bytes", a.sram_bytes},
            {"bytes_moved", object_of(view.bytes)},
            {"bytes_moved_in_sram", view.sram_bytes},
            {"estimated_cycles", view.cycles},
            {"tasks", std::move(tasks)},
            {"tensors", std::move(tensors)},
            {"operators_without_tasks", std::move(absorbed)},
            {"unproven_forms", std::move(unproven)}};
}

}  // namespace

ModelInspection::ModelInspection(const model::Model& model) : programs_(programs_of(model)) {
    if (programs_ && programs_->empty()) return;
    for (const model::Subgraph& graph : model.subgraphs)
        placements_.push_back(place_operators(graph));
}

std::string_view ModelInspection::not_compiled() const {
    return "not compiled for the RK3588; reef compile MODEL --target rk3588 compiles what is "
           "quantised to 8 bits";
}

std::vector<Section> ModelInspection::sections(chip::Detail detail) const {
    std::vector<Section> sections;
    const auto broken = [&](const Error& error) {
        sections.push_back({"program", "cannot be read", {chip::Note{error.message()}}});
    };
    if (!programs_) {
        broken(programs_.error());
        return sections;
    }
    for (const InspectedProgram& program : *programs_) {
        const auto view = view_of(program.artifact);
        if (!view) {
            broken(view.error());
            continue;
        }
        sections.push_back(program_section(program, *view));
        sections.push_back(task_section(*view, detail));
        sections.push_back(memory_section(*view, detail));
        add_remarks(program.artifact, sections);
    }
    return sections;
}

Object ModelInspection::document() const {
    Object out{{"compiled", is_compiled()}};
    if (!is_compiled()) {
        out.emplace_back("hint", not_compiled());
        return out;
    }
    if (!programs_) {
        out.emplace_back("error", programs_.error().message());
        return out;
    }
    Array programs;
    for (const InspectedProgram& program : *programs_) {
        const auto view = view_of(program.artifact);
        programs.emplace_back(view ? document_of(program, *view)
                                   : Object{{"error", view.error().message()}});
    }
    out.emplace_back("programs", std::move(programs));
    return out;
}

}  // namespace reef::rk3588
