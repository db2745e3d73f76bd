// The chip's own passes in their order.
#include "rk3588/compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "compiler/compilation.h"
#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/plan.h"
#include "rk3588/compiler/target.h"

namespace reef::rk3588 {
namespace {

using compiler::Graph;
using lowering::Plan;

namespace pass {
constexpr std::string_view lower = "lower", divide = "divide", place = "place", emit = "emit";
}  // namespace pass
constexpr auto own_passes =
    std::to_array<std::string_view>({pass::lower, pass::divide, pass::place, pass::emit});

std::string text_of(const Plan& plan) {
    std::string text;
    for (const auto& r : report_of(plan))
        text += fmt::format("{} {}: {} tasks, {} data and {} weight banks, {} bytes\n", r.index,
                            r.name, r.tasks, r.data_banks, r.weight_banks, r.bytes.total());
    return text;
}

std::string stages_text(const Plan& plan) {
    std::string text;
    for (const auto& step : plan.steps) {
        const auto works = work_of(plan, step);
        for (std::size_t core = 0; core < works.size(); ++core)
            text += fmt::format("stage {} core {}: {} {}, {} tasks, {} bytes\n", step.stage,
                                static_cast<std::size_t>(step.core) + core, step.node,
                                plan.graph->nodes[step.node].name, works[core].tasks,
                                works[core].bytes.total());
    }
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

/// How sums become bytes.
std::string text_of(const Options& options) {
    std::string text = options.requant == Options::Requant::tflite
                           ? "tflite: two roundings where a tensor has one scale"
                           : "exact: one rounding of the exact product";
    for (const auto& [assumed, name] :
         {std::pair(options.assume_round, "round"), std::pair(options.assume_nrdma, "nrdma")})
        if (assumed) text += fmt::format(", assumes {}", name);
    return text;
}

/// What the operators' tasks move to and from the chip's SRAM.
Status add_sram(const Artifact& artifact, std::vector<OperatorReport>& reports) {
    if (artifact.sram_bytes == 0) return {};
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const ArtifactOperator& op = artifact.operators[i];
        for (std::uint32_t task = op.first_task; task < op.first_task + op.tasks; ++task)
            reports[i].sram_bytes += bytes_in_sram(REEF_TRY(task_of(artifact, task)), artifact);
    }
    return {};
}

constexpr std::size_t all_programs = std::numeric_limits<std::size_t>::max();

class Backend final : public compiler::Backend {
  public:
    Backend(const Options& numbers, Compiled& out)
        : numbers_(numbers), target_(numbers), out_(out) {}

    [[nodiscard]] std::string_view chip() const override { return "the RK3588"; }
    [[nodiscard]] const compiler::Target& target() const override { return target_; }
    [[nodiscard]] std::int64_t most_taps() const override {
        return std::int64_t{lowering::most_kernel} * lowering::most_kernel;
    }
    [[nodiscard]] std::size_t usual_programs() const override { return all_programs; }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return rk3588::is_compiled(op);
    }
    /// Each program is handed to the kernel by itself, which costs more than small operators do.
    /// Convolutions stay: what their programs take has not been measured on a board.
    [[nodiscard]] std::string sooner_on_cpu(const Graph& graph, const compiler::Program& program,
                                            std::size_t number) const override {
        const auto convolves = [&](std::size_t node) {
            return std::holds_alternative<compiler::Convolution>(graph.nodes[node].operation);
        };
        if (std::ranges::any_of(program.nodes, convolves)) return {};
        const double here =
            static_cast<double>(out_.programs[number].cycles) / spec::assumed::clock_hz +
            spec::assumed::submission_seconds;
        const double there =
            static_cast<double>(program.macs) / spec::assumed::host_products_per_second;
        return why_sooner(here, there, "its submission");
    }
    void forget() override {
        out_.programs.clear();
        out_.unproven.clear();
    }

    Result<compiler::ProgramOperator> lower(const Graph& graph, const compiler::Program& program,
                                            compiler::Passes& passes) override {
        const Artifact artifact = REEF_TRY(artifact_for(graph, program, passes));
        if (artifact.tasks.empty())
            return fail(Cause::unsupported,
                        "beside nothing that the chip computes, it would be copied there and back",
                        model::place_of(graph.subgraph(), program.nodes.front()));
        return compiler::ProgramOperator{{.builtin = model::Op::custom,
                                          .custom = std::string(custom_operator_name),
                                          .version = static_cast<std::int32_t>(artifact_version)},
                                         SharedBytes::copy_of(write_artifact(artifact))};
    }

  private:
    Result<Artifact> artifact_for(const Graph& graph, const compiler::Program& program,
                                  compiler::Passes& passes) {
        REEF_CHECK(passes.begin(pass::lower));
        Plan plan = REEF_TRY(lowering::lower(graph, program, numbers_));
        passes.print(pass::lower, [&] { return text_of(plan); });
        REEF_CHECK(passes.begin(pass::divide));
        lowering::divide(plan, numbers_.cores);
        passes.print(pass::divide, [&] { return stages_text(plan); });
        REEF_CHECK(passes.begin(pass::place));
        REEF_CHECK(lowering::place(plan, numbers_.sram_bytes));
        passes.print(pass::place, [&] { return places_of(plan); });
        REEF_CHECK(passes.begin(pass::emit));
        Artifact artifact = REEF_TRY(lowering::emit(plan));
        artifact.requantisation = text_of(numbers_);
        passes.print(pass::emit, [&] {
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
        REEF_CHECK(add_sram(artifact, done.operators));
        done.sram_bytes = artifact.sram_bytes;
        done.tasks = artifact.tasks.size();
        done.cores = cores_of(artifact);
        done.barriers = artifact.stages.size();
        done.cycles = cycles_of(plan);
        done.fused_sums = static_cast<std::size_t>(std::ranges::count_if(plan.steps, has_sum));
        done.activation_bytes = artifact.activation_bytes;
        done.constant_bytes = artifact.constants.size();
        done.command_bytes = artifact.commands.size() * sizeof(std::uint64_t);
        add_unproven(plan, out_.unproven);
        return artifact;
    }

    const Options& numbers_;
    lowering::Target target_;
    Compiled& out_;
};

}  // namespace

Result<Compiled> compile(const model::Model& model, const Options& numbers,
                         const chip::CompileOptions& options) {
    Compiled out;
    Backend backend(numbers, out);
    auto lowered = REEF_TRY(compiler::compile(model, backend, own_passes, options));
    out.model = std::move(lowered.model);
    out.operators = std::move(lowered.operators);
    out.listing = std::move(lowered.listing);
    return out;
}

Result<std::vector<chip::CompiledOperator>> mapping(const model::Model& model,
                                                    const Options& numbers,
                                                    const chip::CompileOptions& options) {
    Compiled nothing;
    return compiler::mapping(model, Backend(numbers, nothing), options);
}

std::vector<std::string_view> compiler_passes() {
    return compiler::with_common_passes(own_passes);
}

}  // namespace reef::rk3588
