// The compiler's driver: passes in their order, again without an operator that does not fit.
#include "rk3588/compiler/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "compiler/legalise.h"
#include "compiler/remainder.h"
#include "reef/rk3588/command_words.h"
#include "rk3588/compiler/plan.h"
#include "rk3588/compiler/target.h"

namespace reef::rk3588 {
namespace {

using compiler::Graph;
using compiler::Partition;
using lowering::Plan;

namespace pass {
constexpr std::string_view read = "read", legalise = "legalise", partition = "partition",
                           lower = "lower", place = "place", emit = "emit";
}  // namespace pass
constexpr auto passes = std::to_array<std::string_view>(
    {pass::read, pass::legalise, pass::partition, pass::lower, pass::place, pass::emit});

std::string text_of(const Graph& graph, const Partition& partition) {
    std::string text;
    for (std::size_t p = 0; p < partition.programs.size(); ++p)
        text += fmt::format("program {}: operators {}\n", p,
                            fmt::join(partition.programs[p].nodes, " "));
    for (std::size_t i = 0; i < partition.reasons.size(); ++i)
        if (!partition.reasons[i].empty())
            text += fmt::format("{} {}: {}\n", i, graph.nodes[i].name, partition.reasons[i]);
    return text;
}

std::string text_of(const Plan& plan) {
    std::string text;
    for (const auto& r : report_of(plan))
        text += fmt::format("{} {}: {} tasks, {} data and {} weight banks, {} bytes\n", r.index,
                            r.name, r.tasks, r.data_banks, r.weight_banks, r.bytes.total());
    return text;
}

std::string places_of(const Plan& plan) {
    std::string text = fmt::format("{} bytes of activations\n", plan.activation_bytes);
    for (const auto& step : plan.steps) {
        const Cube cube = plan.cube(step.output);
        text += fmt::format("{:#010x} {} bytes '{}'\n", cube.offset, cube.bytes(),
                            plan.value(step.output).name);
    }
    return text;
}

bool has_sum(const lowering::Step& step) {
    const auto* conv = std::get_if<lowering::ConvolutionStep>(&step.kind);
    return conv != nullptr && conv->sum.has_value();
}

/// Errors: bad_argument.
Status check_plain(const model::Model& model) {
    if (model.subgraphs.empty()) return fail(Cause::bad_argument, "a model without operators");
    for (const auto& op : model.subgraphs.front().operators)
        if (is_compiled(op))
            return fail(Cause::bad_argument, "the model is compiled already", {},
                        "compile the plain one");
    return {};
}

Graph legal_graph(const model::Model& model, const compiler::Excluded& excluded) {
    constexpr std::int64_t most_taps = std::int64_t{lowering::most_kernel} * lowering::most_kernel;
    Graph graph = compiler::read_graph(model);
    legalise(graph, excluded, most_taps);
    return graph;
}

constexpr std::size_t all_programs = std::numeric_limits<std::size_t>::max();

std::vector<chip::CompiledOperator> verdicts(const Graph& graph, const Partition& partition) {
    std::vector<chip::CompiledOperator> out;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        out.push_back({i, graph.nodes[i].name, partition.reasons[i].empty(), partition.reasons[i]});
    return out;
}

class Compilation {
  public:
    Compilation(const model::Model& model, const CompileOptions& options)
        : model_(model), options_(options) {}

    Result<Compiled> run() {
        REEF_CHECK(check_request());
        // An operator that does not fit is left out and the rest compiled anew; each time there is
        // one fewer.
        for (;;) {
            auto done = attempt();
            if (done) return done;
            const auto node = node_at(done.error());
            if (done.error().cause != Cause::unsupported || !node || excluded_.contains(*node))
                return done;
            excluded_.emplace(*node, done.error().what);
            out_ = {};
        }
    }

  private:
    Status check_request() const {
        REEF_CHECK(check_plain(model_));
        if (!options_.print_after.empty() && !compiler::holds(passes, options_.print_after))
            return fail(Cause::bad_argument, fmt::format("no pass '{}'", options_.print_after), {},
                        fmt::format("passes are {}", fmt::join(passes, ", ")));
        return {};
    }

    Status begin(std::string_view name) const {
        if (options_.cancelled != nullptr && options_.cancelled->load())
            return fail(Cause::cancelled, "the compilation was cancelled");
        if (options_.progress) options_.progress(name);
        return {};
    }

    void print(std::string_view name, const auto& text) {
        if (options_.print_after == name) out_.listing += text();
    }

    Result<Compiled> attempt() {
        REEF_CHECK(begin(pass::read));
        print(pass::read, [&] { return to_text(compiler::read_graph(model_)); });
        REEF_CHECK(begin(pass::legalise));
        const Graph graph = legal_graph(model_, excluded_);
        print(pass::legalise, [&] { return to_text(graph); });
        REEF_CHECK(begin(pass::partition));
        const lowering::Target target(options_.numbers);
        const std::size_t most =
            options_.most_programs == 0 ? all_programs : options_.most_programs;
        const Partition partition = compiler::partition(graph, target, most);
        print(pass::partition, [&] { return text_of(graph, partition); });
        out_.operators = verdicts(graph, partition);
        if (partition.programs.empty()) return nothing_left();
        std::vector<compiler::ProgramOperator> operators;
        for (const auto& program : partition.programs) {
            const Artifact artifact = REEF_TRY(lower(graph, program));
            operators.push_back({{.builtin = model::Op::custom,
                                  .custom = std::string(custom_operator_name),
                                  .version = static_cast<std::int32_t>(artifact_version)},
                                 SharedBytes::copy_of(write_artifact(artifact))});
        }
        out_.model = with_programs(graph, partition, operators);
        return std::move(out_);
    }

    Result<Artifact> lower(const Graph& graph, const compiler::Program& program) {
        REEF_CHECK(begin(pass::lower));
        Plan plan = REEF_TRY(lowering::lower(graph, program, options_.numbers));
        print(pass::lower, [&] { return text_of(plan); });
        REEF_CHECK(begin(pass::place));
        REEF_CHECK(lowering::place(plan));
        print(pass::place, [&] { return places_of(plan); });
        REEF_CHECK(begin(pass::emit));
        Artifact artifact = REEF_TRY(lowering::emit(plan));
        print(pass::emit, [&] {
            std::string text;
            for (const TaskPlace& task : artifact.tasks)
                text += disassemble(
                    std::as_bytes(
                        std::span(artifact.commands).subspan(task.first_word, task.words)),
                    {.symbolic = true});
            return text;
        });
        CompiledProgram& done = out_.programs.emplace_back();
        done.operators = report_of(plan);
        done.tasks = artifact.tasks.size();
        done.fused_sums = static_cast<std::size_t>(std::ranges::count_if(plan.steps, has_sum));
        done.activation_bytes = artifact.activation_bytes;
        done.constant_bytes = artifact.constants.size();
        done.command_bytes = artifact.commands.size() * sizeof(std::uint64_t);
        add_unproven(plan, out_.unproven);
        return artifact;
    }

    [[nodiscard]] std::unexpected<Error> nothing_left() const {
        std::string what = "no operator is left for the RK3588:";
        std::size_t listed = 0;
        for (const auto& op : out_.operators)
            if (listed++ < 20)
                what += fmt::format("\n  operator {} {}: {}", op.index, op.name, op.reason);
        return fail(Cause::unsupported, std::move(what));
    }

    [[nodiscard]] std::optional<std::size_t> node_at(const Error& error) const {
        const auto& graph = model_.subgraphs.front();
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
            if (error.place.starts_with(model::place_of(graph, i))) return i;
        return std::nullopt;
    }

    const model::Model& model_;
    const CompileOptions& options_;
    compiler::Excluded excluded_;
    Compiled out_;
};

}  // namespace

Result<Compiled> compile(const model::Model& model, const CompileOptions& options) {
    return Compilation(model, options).run();
}

Result<std::vector<chip::CompiledOperator>> operators_of(const model::Model& model,
                                                         const Options& options,
                                                         std::size_t most_programs) {
    REEF_CHECK(check_plain(model));
    const Graph graph = legal_graph(model, {});
    const std::size_t most = most_programs == 0 ? all_programs : most_programs;
    return verdicts(graph, compiler::partition(graph, lowering::Target(options), most));
}

std::vector<std::string_view> compiler_passes() {
    return {passes.begin(), passes.end()};
}

}  // namespace reef::rk3588
