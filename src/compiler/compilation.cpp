#include "compiler/compilation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "reef/model/names.h"
#include "reef/model/tflite.h"

namespace reef::compiler {
namespace {

namespace pass {
constexpr std::string_view read = "read", legalise = "legalise", partition = "partition";
}  // namespace pass
constexpr auto common =
    std::to_array<std::string_view>({pass::read, pass::legalise, pass::partition});

std::string text_of(const Graph& graph, const Partition& partition) {
    std::string text;
    for (std::size_t p = 0; p < partition.programs.size(); ++p) {
        const auto& program = partition.programs[p];
        text += fmt::format("program {}: operators {}\n", p, fmt::join(program.nodes, " "));
        for (const auto& in : program.inputs)
            text += fmt::format("  in '{}'\n", graph.values[in.tensor].name);
        for (const auto& out : program.outputs)
            text += fmt::format("  out '{}'\n", graph.values[out.tensor].name);
    }
    for (std::size_t i = 0; i < partition.reasons.size(); ++i)
        if (!partition.reasons[i].empty())
            text += fmt::format("{} {}: {}\n", i, graph.nodes[i].name, partition.reasons[i]);
    return text;
}

/// Programs run in the place of the operators that they stand for.
Status check_order(const model::Model& model) {
    const model::Subgraph& graph = model.subgraphs.front();
    std::vector<bool> there(graph.tensors.size(), false);
    for (const model::TensorIndex i : graph.inputs) there[static_cast<std::size_t>(i)] = true;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        for (const model::TensorIndex i : graph.operators[o].inputs) {
            if (i == model::absent_tensor || there[static_cast<std::size_t>(i)]) continue;
            const model::Tensor& tensor = graph.tensors[static_cast<std::size_t>(i)];
            if (tensor.is_variable || !model.constant(tensor).empty() || tensor.byte_count() == 0)
                continue;
            return fail(Cause::bad_input,
                        fmt::format("reads {}, which no operator before it writes",
                                    model::place_of_tensor(graph, i)),
                        model::place_of(graph, o), "operators must stand in execution order");
        }
        for (const model::TensorIndex i : graph.operators[o].outputs)
            there[static_cast<std::size_t>(i)] = true;
    }
    return {};
}

Status check_plain(const model::Model& model, const Backend& backend) {
    if (model.subgraphs.empty()) return fail(Cause::bad_input, "a model without operators");
    REEF_CHECK(model::validate(model));
    REEF_CHECK(check_order(model));
    for (const auto& op : model.subgraphs.front().operators)
        if (backend.is_compiled(op))
            return fail(Cause::bad_input, "the model is compiled already", {},
                        "compile the plain one");
    return {};
}

std::size_t most_programs(const Backend& backend, const chip::CompileOptions& options) {
    return options.most_programs != 0 ? options.most_programs : backend.usual_programs();
}

std::vector<chip::CompiledOperator> verdicts(const Graph& graph, const Partition& partition) {
    std::vector<chip::CompiledOperator> out;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        out.push_back({i, graph.nodes[i].name, partition.reasons[i].empty(), partition.reasons[i]});
    return out;
}

std::unexpected<Error> nothing_left(std::string_view chip,
                                    const std::vector<chip::CompiledOperator>& operators) {
    constexpr std::size_t most_listed = 20;
    std::string what = fmt::format("no operator is left for {}:", chip);
    for (const auto& op : std::span(operators).first(std::min(operators.size(), most_listed)))
        what += fmt::format("\n  operator {} {}: {}", op.index, op.name, op.reason);
    return fail(Cause::unsupported, std::move(what));
}

/// The operator in which an error lies.
std::optional<std::size_t> node_at(const model::Subgraph& graph, const Error& error) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        if (error.place.starts_with(model::place_of(graph, i))) return i;
    return std::nullopt;
}

/// By `placed_as`.
bool is_wanted(const chip::CompileOptions& options, std::size_t node) {
    return !options.placed_as.empty() && options.placed_as[node].on_chip;
}

Status check_placement(const model::Model& model, const chip::CompileOptions& options) {
    const std::size_t all = model.subgraphs.front().operators.size();
    if (options.placed_as.empty() || options.placed_as.size() == all) return {};
    return fail(Cause::bad_argument,
                fmt::format("`placed_as` places {} operators, the model has {}",
                            options.placed_as.size(), all));
}

Excluded left_to_cpu(const chip::CompileOptions& options) {
    Excluded out;
    for (std::size_t i = 0; i < options.placed_as.size(); ++i)
        if (!options.placed_as[i].on_chip) out.emplace(i, options.placed_as[i].reason);
    return out;
}

/// The CPU copies what is Folded as the chip would.
Status check_followed(const Graph& graph, const Partition& parts,
                      const chip::CompileOptions& options) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        if (is_wanted(options, i) && !parts.reasons[i].empty() &&
            !std::holds_alternative<Folded>(graph.nodes[i].operation))
            return fail(Cause::unsupported,
                        fmt::format("it is to be on the chip: {}", parts.reasons[i]),
                        model::place_of(graph.subgraph(), i));
    return {};
}

/// Programs beside the largest that the CPU would have done with sooner: their nodes, with why.
Excluded islands(const Graph& graph, const Partition& parts, const Backend& backend,
                 const chip::CompileOptions& options) {
    Excluded out;
    if (options.keep_islands || parts.programs.size() < 2) return out;
    const auto largest = std::ranges::max_element(parts.programs, {}, &Program::macs);
    for (const Program& program : parts.programs) {
        if (&program == &*largest) continue;
        if (std::ranges::any_of(program.nodes, [&](auto i) { return is_wanted(options, i); }))
            continue;
        const auto number = static_cast<std::size_t>(&program - parts.programs.data());
        const std::string why = backend.sooner_on_cpu(graph, program, number);
        if (why.empty()) continue;
        for (const std::size_t node : program.nodes) out.emplace(node, why);
    }
    return out;
}

/// `left`: what the next attempt leaves to the CPU beside `excluded`; none: this was the last.
Result<Lowered> attempt(Graph graph, Backend& backend, const Excluded& excluded, Passes& passes,
                        Excluded& left) {
    passes.print(pass::read, [&] { return to_text(graph); });
    REEF_CHECK(passes.begin(pass::legalise));
    legalise(graph, excluded, backend.most_taps());
    passes.print(pass::legalise, [&] { return to_text(graph); });
    REEF_CHECK(passes.begin(pass::partition));
    const Partition parts =
        partition(graph, backend.target(), most_programs(backend, passes.options()));
    passes.print(pass::partition, [&] { return text_of(graph, parts); });
    Lowered out{.model = {}, .operators = verdicts(graph, parts), .listing = {}};
    REEF_CHECK(check_followed(graph, parts, passes.options()));
    if (parts.programs.empty()) return nothing_left(backend.chip(), out.operators);
    std::vector<ProgramOperator> operators;
    for (const Program& program : parts.programs)
        operators.push_back(REEF_TRY(backend.lower(graph, program, passes)));
    left = islands(graph, parts, backend, passes.options());
    out.model = with_programs(graph, parts, operators);
    out.listing = passes.listing();
    return out;
}

}  // namespace

std::string Backend::why_sooner(double chip_seconds, double cpu_seconds, std::string_view with) {
    if (cpu_seconds >= chip_seconds) return {};
    constexpr double us = 1e6;
    return fmt::format(
        "as a program of its own it takes {:.0f} us with {}, and the CPU {:.0f} us, by the "
        "estimates",
        chip_seconds * us, with, cpu_seconds * us);
}

Status Passes::check() {
    const auto &after = options_.print_after, &before = options_.print_before;
    if (!after.empty() && !before.empty())
        return fail(Cause::bad_argument, "a program is printed behind one pass or in front of one",
                    {}, "ask for one of the two");
    const std::string& name = after.empty() ? before : after;
    if (name.empty()) return {};
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
        return fail(Cause::bad_argument, fmt::format("no pass '{}'", name), {},
                    fmt::format("passes are {}", fmt::join(names_, ", ")));
    if (!before.empty() && found == names_.begin())
        return fail(Cause::bad_argument, fmt::format("nothing is there before '{}'", name), {},
                    "it reads the model");
    printed_ = before.empty() ? *found : *std::prev(found);
    return {};
}

Status Passes::begin(std::string_view pass) const {
    if (options_.cancelled != nullptr && options_.cancelled->load())
        return fail(Cause::cancelled, "the compilation was cancelled");
    if (options_.progress) options_.progress(pass);
    return {};
}

std::vector<std::string_view> with_common_passes(std::span<const std::string_view> own) {
    std::vector<std::string_view> all(common.begin(), common.end());
    all.insert(all.end(), own.begin(), own.end());
    return all;
}

Result<Lowered> compile(const model::Model& model, Backend& backend,
                        std::span<const std::string_view> own,
                        const chip::CompileOptions& options) {
    REEF_CHECK(check_plain(model, backend));
    REEF_CHECK(check_placement(model, options));
    Passes passes(with_common_passes(own), options);
    REEF_CHECK(passes.check());
    REEF_CHECK(passes.begin(pass::read));
    // What programs hold finds its tensors by their names.
    const std::optional<model::Model> named = model::with_distinct_names(model);
    const Graph read = read_graph(named ? *named : model);
    // Each attempt has fewer operators for the chip.
    for (Excluded excluded = left_to_cpu(options);;) {
        Excluded left;
        auto done = attempt(read, backend, excluded, passes, left);
        if (done) {
            if (left.empty()) return done;
            excluded.merge(left);
        } else {
            if (done.error().cause != Cause::unsupported) return done;
            const auto node = node_at(model.subgraphs.front(), done.error());
            if (!node || excluded.contains(*node) || is_wanted(options, *node)) return done;
            excluded.emplace(*node, done.error().what);
        }
        backend.forget();
        passes.clear();
    }
}

Result<std::vector<chip::CompiledOperator>> mapping(const model::Model& model,
                                                    const Backend& backend,
                                                    const chip::CompileOptions& options) {
    REEF_CHECK(check_plain(model, backend));
    REEF_CHECK(check_placement(model, options));
    Graph graph = read_graph(model);
    legalise(graph, left_to_cpu(options), backend.most_taps());
    return verdicts(graph, partition(graph, backend.target(), most_programs(backend, options)));
}

}  // namespace reef::compiler
