// The chip's own passes in their order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "compiler/compilation.h"
#include "edgetpu/compiler/embed.h"
#include "edgetpu/compiler/target.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/estimate.h"
#include "reef/edgetpu/listing.h"
#include "reef/edgetpu/program_check.h"

namespace reef::edgetpu {
namespace {

using compiler::Graph;
using lowering::Plan;

namespace pass {
constexpr std::string_view tile = "tile", bands = "bands", spread = "spread", windows = "windows",
                           parameters = "parameters", ahead = "ahead", place = "place",
                           emit = "emit", embed = "embed";
}  // namespace pass
constexpr auto own_passes = std::to_array<std::string_view>(
    {pass::tile, pass::bands, pass::spread, pass::windows, pass::parameters, pass::ahead,
     pass::place, pass::emit, pass::embed});

/// Errors of our own making: no input should come here.
std::unexpected<Error> broken_rule(const std::vector<ProgramFault>& faults) {
    return fail(Cause::unsupported,
                fmt::format("the program breaks a rule at word {:#06x}: {}", faults.front().word,
                            faults.front().what),
                {}, "this is a bug of Reef's compiler: please report the model");
}

Status check(const Package& package) {
    for (const Executable& e : package.executables) {
        std::vector<Bytes> streams;
        for (const auto& s : e.bitstreams) streams.push_back(s.instructions.view());
        for (const auto& rule : {check_program, check_synchronisation, unmodelled_instructions})
            if (const auto faults = rule(streams); !faults.empty()) return broken_rule(faults);
    }
    return {};
}

class Backend final : public compiler::Backend {
  public:
    Backend(const CompileOptions& options, Compiled& out) : options_(options), out_(out) {}

    [[nodiscard]] std::string_view chip() const override { return "the Edge TPU"; }
    [[nodiscard]] const compiler::Target& target() const override { return target_; }
    [[nodiscard]] std::int64_t most_taps() const override { return lowering::most_taps; }
    [[nodiscard]] std::size_t usual_programs() const override { return 1; }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return edgetpu::is_compiled(op);
    }
    void forget() override {
        out_.programs.clear();
        out_.forms = {};
    }

    Result<compiler::ProgramOperator> lower(const Graph& graph, const compiler::Program& program,
                                            compiler::Passes& passes) override {
        const Package package = REEF_TRY(package_for(graph, program, passes));
        auto options = REEF_TRY(custom_options_of(package));
        return compiler::ProgramOperator{{.builtin = model::Op::custom,
                                          .custom = std::string(custom_operator_name),
                                          .version = 1},
                                         SharedBytes::copy_of(options)};
    }

  private:
    /// A layer finds its tensor by name.
    static Status check_names(const Graph& graph, const compiler::Program& program) {
        for (const auto* ports : {&program.inputs, &program.outputs}) {
            std::set<std::string> names;
            for (const auto& port : *ports) {
                const auto& name = graph.values[port.tensor].name;
                if (name.empty() || !names.insert(name).second)
                    return fail(Cause::unsupported,
                                fmt::format("two tensors at the program's border are called '{}', "
                                            "or one has no name",
                                            name),
                                {}, "give each tensor a name of its own");
            }
        }
        return {};
    }

    /// With forms that no known program has, and parameters that stay on the chip.
    [[nodiscard]] bool goes_further(const Plan& plan) const {
        return plan.overlaps && !options_.known_forms_only && !options_.stream_parameters;
    }
    [[nodiscard]] bool fits_on_chip(Plan plan) const {
        find_windows(plan);
        lay_out_parameters(plan);
        plan_ahead(plan);
        return place_tensors(plan) && place_parameters(plan, false) && plan.streamed.empty();
    }

    Result<Plan> placed(Plan plan, compiler::Passes& passes) const {
        REEF_CHECK(passes.begin(pass::windows));
        find_windows(plan);
        passes.print(pass::windows, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::parameters));
        lay_out_parameters(plan);
        passes.print(pass::parameters, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::ahead));
        if (goes_further(plan)) plan_ahead(plan);
        passes.print(pass::ahead, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::place));
        REEF_CHECK(place_tensors(plan));
        REEF_CHECK(place_parameters(plan, options_.stream_parameters));
        passes.print(pass::place, [&] { return to_text(plan); });
        return plan;
    }

    Result<Package> package_for(const Graph& graph, const compiler::Program& program,
                                compiler::Passes& passes) {
        REEF_CHECK(check_names(graph, program));
        REEF_CHECK(passes.begin(pass::tile));
        Plan plan = lowering::tile(graph, program);
        plan.overlaps = options_.schedule == chip::Schedule::overlapped;
        if (options_.most_activation_bytes != 0)
            plan.most_narrow_bytes = static_cast<std::uint32_t>(
                std::min<std::size_t>(options_.most_activation_bytes, plan.most_narrow_bytes));
        passes.print(pass::tile, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::bands));
        REEF_CHECK(check_whole_images(plan));
        plan = in_bands(std::move(plan));
        passes.print(pass::bands, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::spread));
        Plan spread = spread_channels(plan, goes_further(plan));
        if (goes_further(plan) && !fits_on_chip(spread)) spread = spread_channels(plan, false);
        passes.print(pass::spread, [&] { return to_text(spread); });
        plan = REEF_TRY(placed(std::move(spread), passes));
        REEF_CHECK(passes.begin(pass::emit));
        auto programs = REEF_TRY(emit(plan, {.list_forms = options_.list_forms,
                                             .known_forms_only = options_.known_forms_only}));
        add_forms(programs.forms);
        passes.print(pass::emit, [&] {
            std::string text;
            for (const auto& stream : programs.computing.streams)
                text += disassemble(stream.bytes, {.symbolic = true});
            return text;
        });
        REEF_CHECK(passes.begin(pass::embed));
        const std::size_t cached = programs.cached.size();
        Package package = package_of(plan, std::move(programs));
        REEF_CHECK(check(package));
        REEF_CHECK(report(plan, program, package, cached));
        return package;
    }

    void add_forms(Forms& forms) {
        out_.forms.instructions += forms.instructions;
        out_.forms.known += forms.known;
        for (UnprovenForm& f : forms.unproven) {
            const auto same = [&](const UnprovenForm& o) {
                return o.part == f.part && o.form == f.form;
            };
            const auto known = std::ranges::find_if(out_.forms.unproven, same);
            if (known != out_.forms.unproven.end())
                known->count += f.count;
            else
                out_.forms.unproven.push_back(std::move(f));
        }
    }

    Status report(const Plan& plan, const compiler::Program& program, const Package& package,
                  std::size_t cached) {
        CompiledProgram& done = out_.programs.emplace_back();
        done.operators = program.nodes.size();
        done.cached_bytes = cached;
        const std::size_t all =
            std::size_t{plan.first_scratch_row} * spec::row_bytes * lowering::all_tiles;
        done.remaining_bytes = all - std::min(all, cached);
        done.streamed_bytes = plan.streamed.size();
        done.narrow_bytes = plan.narrow_bytes;
        for (const auto& e : package.executables)
            for (const auto& s : e.bitstreams) done.instruction_bytes += s.instructions.size();
        const auto time = REEF_TRY(estimate(package));
        done.cycles = time.computing.cycles;
        done.seconds = time.cached_seconds;
        return {};
    }

    const CompileOptions& options_;
    lowering::Target target_;
    Compiled& out_;
};

}  // namespace

Result<Compiled> compile(const model::Model& model, const CompileOptions& options) {
    Compiled out;
    Backend backend(options, out);
    auto lowered = REEF_TRY(compiler::compile(model, backend, own_passes, options));
    out.model = std::move(lowered.model);
    out.operators = std::move(lowered.operators);
    out.listing = std::move(lowered.listing);
    return out;
}

Result<std::vector<chip::CompiledOperator>> mapping(const model::Model& model,
                                                    const CompileOptions& options) {
    Compiled nothing;
    return compiler::mapping(model, Backend(options, nothing), options);
}

std::vector<std::string_view> compiler_passes() {
    return compiler::with_common_passes(own_passes);
}

}  // namespace reef::edgetpu
