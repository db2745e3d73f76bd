// The chip's own passes in their order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "compiler/compilation.h"
#include "edgetpu/compiler/embed.h"
#include "edgetpu/compiler/settings.h"
#include "edgetpu/compiler/target.h"
#include "edgetpu/compiler/vendor_schedule.h"
#include "edgetpu/package/options.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/estimate.h"
#include "reef/edgetpu/listing.h"
#include "reef/edgetpu/program_check.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

using compiler::Graph;
using lowering::Plan;

namespace pass {
constexpr std::string_view tile = "tile", fuse = "fuse", bands = "bands", spill = "spill",
                           spread = "spread", windows = "windows", parameters = "parameters",
                           ahead = "ahead", place = "place", emit = "emit", embed = "embed";
}  // namespace pass
constexpr auto own_passes = std::to_array<std::string_view>(
    {pass::tile, pass::fuse, pass::bands, pass::spill, pass::spread, pass::windows,
     pass::parameters, pass::ahead, pass::place, pass::emit, pass::embed});

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

/// Programs that share the chip's parameter memory.
struct Sharing {
    lowering::Residency rows;  ///< up to now
    std::uint32_t first_scratch_row = spec::parameter_rows;
    std::optional<std::uint64_t> token;
};

class Backend final : public compiler::Backend {
  public:
    /// `sharing`: with what programs lie together; none: each by itself.
    Backend(const CompileOptions& options, Compiled& out, Sharing* sharing = nullptr)
        : options_(options), out_(out), sharing_(sharing) {
        if (sharing != nullptr) before_ = *sharing;
    }

    [[nodiscard]] std::string_view chip() const override { return "the Edge TPU"; }
    [[nodiscard]] const compiler::Target& target() const override { return target_; }
    [[nodiscard]] std::int64_t most_taps() const override { return lowering::most_taps; }
    /// Those beside the largest are left out where the CPU would be done sooner.
    [[nodiscard]] std::size_t usual_programs() const override {
        return std::numeric_limits<std::size_t>::max();
    }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return edgetpu::is_compiled(op);
    }
    /// A crossing costs what the host's transfers take, whatever there is to compute.
    [[nodiscard]] std::string sooner_on_cpu(const Graph& /*graph*/,
                                            const compiler::Program& program,
                                            std::size_t number) const override {
        const double here = out_.programs[number].seconds;
        const double there =
            static_cast<double>(program.macs) / spec::assumed::host_products_per_second;
        return why_sooner(here, there, "its transfers");
    }
    void forget() override {
        out_.programs.clear();
        out_.forms = {};
        if (sharing_ != nullptr) *sharing_ = before_;
    }

    Result<compiler::ProgramOperator> lower(const Graph& graph, const compiler::Program& program,
                                            compiler::Passes& passes) override {
        Package package = REEF_TRY(package_for(graph, program, passes));
        auto bytes = REEF_TRY(write_package(package));
        package = {};  // which holds all parameters once more
        return compiler::ProgramOperator{{.builtin = model::Op::custom,
                                          .custom = std::string(custom_operator_name),
                                          .version = 1},
                                         new_options(std::move(bytes))};
    }

  private:
    /// A layer finds its tensor by name.
    static Status check_names(const Graph& graph, const compiler::Program& program) {
        for (const auto* ports : {&program.inputs, &program.outputs}) {
            std::set<std::string> names;
            for (const auto& port : *ports) {
                const auto& name = graph.values[port.tensor].name;
                if (!names.insert(name).second)
                    return fail(Cause::unsupported,
                                fmt::format("an input and an output of the model are called '{}', "
                                            "and one program reads or writes both",
                                            name),
                                {}, "give each tensor a name of its own");
            }
        }
        return {};
    }

    /// With forms that no known program has, and parameters that stay on the chip.
    [[nodiscard]] bool goes_further(const Plan& plan) const {
        return plan.improvements.ahead && !options_.stream_parameters;
    }
    [[nodiscard]] bool spreads(const Plan& plan) const {
        return plan.improvements.spread && !options_.stream_parameters;
    }
    [[nodiscard]] bool fits_on_chip(Plan plan) const {
        find_windows(plan);
        lay_out_parameters(plan);
        if (goes_further(plan)) plan_ahead(plan);
        return place_tensors(plan) && place_parameters(plan, false) && plan.streamed_bytes == 0 &&
               check_emittable(plan);
    }

    Result<PackageEstimate> estimate_of(Plan plan) const {
        find_windows(plan);
        lay_out_parameters(plan);
        if (goes_further(plan)) plan_ahead(plan);
        REEF_CHECK(place_tensors(plan));
        REEF_CHECK(place_parameters(plan, options_.stream_parameters));
        auto programs = REEF_TRY(emitted(plan, {.only_computing = true}));
        constexpr std::uint64_t no_token = 0;
        return estimate(package_of(plan, std::move(programs), {.token = no_token}));
    }
    /// ... of layers of one pixel, on the tile that reads them: the plan as it is where they do not
    /// fit.
    [[nodiscard]] Plan with_rows_kept(Plan plan) const {
        if (!plan.improvements.spread || options_.stream_parameters) return plan;
        auto still = with_still_rows(plan);
        return still && fits_on_chip(*still) ? std::move(*still) : plan;
    }
    /// Where rows of layers that are spread and rows of those that are sent ahead do not fit beside
    /// one another: the faster of the two.
    [[nodiscard]] Plan narrower(Plan plan) const {
        Plan ahead = with_rows_kept(spread_channels(plan, false));
        if (!goes_further(plan)) return ahead;
        plan.improvements.ahead = false;
        Plan spread = with_rows_kept(spread_channels(std::move(plan), true));
        if (!fits_on_chip(spread)) return ahead;
        const auto with = estimate_of(ahead), without = estimate_of(spread);
        return with && without && without->computing.cycles < with->computing.cycles ? spread
                                                                                     : ahead;
    }
    [[nodiscard]] Plan with_channels_spread(Plan plan) const {
        Plan spread = with_rows_kept(spread_channels(plan, spreads(plan)));
        if (spreads(plan) && !fits_on_chip(spread)) return narrower(std::move(plan));
        return spread;
    }
    /// With their transfers.
    [[nodiscard]] bool is_faster(const Plan& plan, const Plan& than) const {
        const auto one = estimate_of(with_channels_spread(plan)),
                   other = estimate_of(with_channels_spread(than));
        return one && other && one->cached_seconds < other->cached_seconds;
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
        Plan plan =
            lowering::tile(graph, program, {.averages_as_layers = options_.known_forms_only});
        plan.improvements = REEF_TRY(lowering::improvements_of(options_));
        const lowering::Spilling spilling = REEF_TRY(lowering::spilling_of(options_));
        lowering::EmbedOptions embedding{.runtime_version =
                                             REEF_TRY(lowering::runtime_version_of(options_))};
        if (sharing_ != nullptr) plan.beside = sharing_->rows;
        if (options_.most_activation_bytes != 0)
            plan.most_narrow_bytes = static_cast<std::uint32_t>(
                std::min<std::size_t>(options_.most_activation_bytes, plan.most_narrow_bytes));
        passes.print(pass::tile, [&] { return to_text(plan); });
        plan = REEF_TRY(options_.schedule == chip::Schedule::vendor
                            ? like_the_vendors(std::move(plan), passes)
                            : arranged(std::move(plan), spilling, passes));
        REEF_CHECK(passes.begin(pass::emit));
        auto programs = REEF_TRY(emitted(plan, {.list_forms = options_.list_forms,
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
        if (sharing_ != nullptr) embedding.token = sharing_->token;
        Package package = package_of(plan, std::move(programs), embedding);
        REEF_CHECK(lowering::check_runtime(package));
        REEF_CHECK(check(package));
        passes.print(pass::embed, [&] { return lowering::to_text(package); });
        REEF_CHECK(report(plan, program, package, cached));
        return package;
    }

    [[nodiscard]] Result<lowering::Programs> emitted(const Plan& plan,
                                                     const lowering::EmitOptions& options) const {
        return options_.schedule == chip::Schedule::vendor ? emit_as_vendor(plan, options)
                                                           : emit(plan, options);
    }

    Result<Plan> like_the_vendors(Plan plan, compiler::Passes& passes) const {
        if (sharing_ != nullptr || options_.stream_parameters)
            return fail(sharing_ != nullptr ? Cause::unsupported : Cause::bad_argument,
                        "the vendor's schedule is not known of models compiled together nor of "
                        "streamed parameters");
        REEF_CHECK(passes.begin(pass::place));
        plan = REEF_TRY(placed_as_vendor(std::move(plan)));
        passes.print(pass::place, [&] { return to_text(plan); });
        return plan;
    }

    /// With tensors that lie on the host in between. `fitting`: whether the plan fits already,
    /// whole or in bands. `forms`: what it was before bands, the best first.
    Plan with_spills(lowering::Spilling spilling, Plan plan, bool fitting,
                     const std::vector<Plan>& forms) const {
        if (spilling == lowering::Spilling::never) return plan;
        if (spilling == lowering::Spilling::always && fitting) {
            Plan all = with_all_spilled(plan);
            return lowering::fits(all) ? all : plan;
        }
        const bool whole =
            fitting && std::ranges::none_of(plan.tensors, [](const auto& t) { return t.in_band; });
        if (whole || (fitting && spilling != lowering::Spilling::faster)) return plan;
        for (const Plan& form : forms) {
            auto other = spilled(form);
            if (!other || (fitting && !is_faster(*other, plan))) continue;
            return std::move(*other);
        }
        return plan;
    }

    /// Fused, in bands, spilled, spread, and placed.
    Result<Plan> arranged(Plan plan, lowering::Spilling spilling, compiler::Passes& passes) const {
        REEF_CHECK(passes.begin(pass::fuse));
        REEF_CHECK(check_whole_images(plan));
        // A concatenation whose parts are written in place is in use for longer.
        std::optional<Plan> bands;
        std::vector<Plan> forms{plan};
        if (plan.improvements.fuse) {
            forms.insert(forms.begin(), fused(plan));
            bands = in_bands(forms.front());
            if (bands) plan = forms.front();
        }
        passes.print(pass::fuse, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::bands));
        if (!bands) bands = in_bands(plan);
        if (bands) plan = std::move(*bands);
        passes.print(pass::bands, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::spill));
        plan = with_spills(spilling, std::move(plan), bands.has_value(), forms);
        passes.print(pass::spill, [&] { return to_text(plan); });
        REEF_CHECK(passes.begin(pass::spread));
        const Plan spread = with_channels_spread(std::move(plan));
        passes.print(pass::spread, [&] { return to_text(spread); });
        return placed(spread, passes);
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

    static std::vector<SpilledTensor> spilled_tensors(const Plan& plan) {
        std::vector<SpilledTensor> all;
        std::map<lowering::TensorId, std::size_t> of;
        for (const lowering::Step& step : plan.steps) {
            if (std::holds_alternative<lowering::SpillStep>(step.kind)) {
                const lowering::Tensor& there = plan.tensors[step.out];
                of[step.out] = all.size();
                all.push_back({there.name, there.host_bytes, 0});
            } else if (std::holds_alternative<lowering::FetchStep>(step.kind)) {
                ++all[of.at(step.in[0])].fetches;
            }
        }
        return all;
    }

    Status report(const Plan& plan, const compiler::Program& program, const Package& package,
                  std::size_t cached) {
        CompiledProgram& done = out_.programs.emplace_back();
        done.operators = program.nodes.size();
        done.cached_bytes = cached;
        std::size_t all =
            std::size_t{plan.first_scratch_row} * spec::row_bytes * lowering::all_tiles;
        for (const std::uint32_t rows : plan.beside.first_rows) all -= rows * spec::row_bytes;
        if (sharing_ != nullptr) {
            sharing_->rows.first_rows = plan.rows_used;
            sharing_->first_scratch_row =
                std::min(sharing_->first_scratch_row, plan.first_scratch_row);
        }
        done.remaining_bytes = all - std::min(all, cached);
        done.streamed_bytes = plan.streamed_bytes;
        done.narrow_bytes = plan.narrow_bytes;
        done.spilled = spilled_tensors(plan);
        done.host_bytes = plan.host_bytes;
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
    Sharing* sharing_;
    Sharing before_{};
};

Result<Compiled> compile_beside(const model::Model& model, const CompileOptions& options,
                                Sharing* sharing) {
    REEF_CHECK(lowering::check_settings(options));
    REEF_CHECK(lowering::check_printed(options));
    Compiled out;
    Backend backend(options, out, sharing);
    auto lowered = REEF_TRY(compiler::compile(model, backend, own_passes, options));
    out.model = std::move(lowered.model);
    out.operators = std::move(lowered.operators);
    out.listing = std::move(lowered.listing);
    return out;
}

/// Some rows of every tile are lost to layers that lie on one tile.
constexpr std::uint32_t lost_rows = 48;
/// For what layers need while they compute.
constexpr std::uint32_t least_scratch_rows = 64, most_scratch_rows = 1024;

/// Of each tile, for all programs, where each has its parameters to itself.
Result<std::uint32_t> rows_for_parameters(std::span<const model::Model> models,
                                          const CompileOptions& options) {
    std::uint32_t rows = lost_rows;
    for (std::size_t i = 0; i < models.size(); ++i) {
        Sharing alone;
        REEF_CHECK(
            in_place(compile_beside(models[i], options, &alone), fmt::format("model {}", i)));
        rows += std::ranges::max(alone.rows.first_rows);
    }
    return rows;
}

struct Together {
    std::vector<Compiled> models;
    Sharing sharing;
};

Result<Together> compile_all(std::span<const model::Model> models, const CompileOptions& options,
                             const Sharing& sharing) {
    Together all{.models = {}, .sharing = sharing};
    for (std::size_t i = 0; i < models.size(); ++i)
        all.models.push_back(REEF_TRY(in_place(compile_beside(models[i], options, &all.sharing),
                                               fmt::format("model {}", i))));
    return all;
}

std::uint64_t token_of(const Together& all) {
    std::vector<Bytes> programs;
    for (const Compiled& one : all.models)
        for (const auto& op : one.model.subgraphs.front().operators)
            if (is_compiled(op)) programs.push_back(op.custom_options.view());
    return lowering::token_of(programs);
}

}  // namespace

/// Several programs of a model take turns like several models: each would evict the others'
/// parameters with every inference, were they not placed beside one another under one token.
Result<Compiled> compile(const model::Model& model, const CompileOptions& options) {
    Compiled alone = REEF_TRY(compile_beside(model, options, nullptr));
    if (alone.programs.size() < 2 || options.stream_parameters) return alone;
    alone = {};
    auto together = compile_together(std::span(&model, 1), options);
    if (together) return std::move(together->front());
    if (together.error().cause != Cause::unsupported) return std::unexpected(together.error());
    CompileOptions one = options;
    one.most_programs = 1;
    return compile_beside(model, one, nullptr);
}

Result<std::vector<Gain>> gains_of(const model::Model& model, const CompileOptions& options) {
    if (options.schedule != chip::Schedule::overlapped)
        return fail(Cause::bad_argument, "this schedule has no passes that could be left out", {},
                    "ask for the gains of the schedule overlapped");
    std::vector<Gain> gains;
    const auto add = [&](std::string name, const CompileOptions& other) -> Status {
        const auto compiled = REEF_TRY(compile(model, other));
        Gain gain{.without = std::move(name)};
        for (const auto& op : compiled.operators) gain.operators += op.on_chip ? 1 : 0;
        for (const CompiledProgram& program : compiled.programs) gain.cycles += program.cycles;
        gains.push_back(std::move(gain));
        return {};
    };
    CompileOptions other = options;
    other.print_after.clear();
    other.print_before.clear();
    other.list_forms = false;
    REEF_CHECK(add("", other));
    for (const std::string& name : improvements()) {
        auto& list = other.settings[std::string(lowering::setting::without)] = name;
        if (const auto given = options.settings.find(std::string(lowering::setting::without));
            given != options.settings.end())
            list += "," + given->second;
        REEF_CHECK(add(name, other));
    }
    other.settings.erase(std::string(lowering::setting::without));
    other.schedule = chip::Schedule::plain;
    REEF_CHECK(add("all of them", other));
    return gains;
}

Result<std::vector<Compiled>> compile_together(std::span<const model::Model> models,
                                               const CompileOptions& options) {
    if (models.empty()) return fail(Cause::bad_argument, "no model is given");
    const std::uint32_t needed = REEF_TRY(rows_for_parameters(models, options));
    Sharing start;
    start.rows.scratch_rows = std::clamp<std::uint32_t>(
        spec::parameter_rows - std::min<std::uint32_t>(needed, spec::parameter_rows),
        least_scratch_rows, most_scratch_rows);
    // What one needs while it computes, all leave alone; then where parameters end is known.
    constexpr int most_rounds = 8;
    for (int round = 0; round < most_rounds; ++round) {
        const std::uint32_t end = spec::parameter_rows - start.rows.scratch_rows;
        if (start.rows.end == 0) start.rows.end = end;
        auto all = REEF_TRY(compile_all(models, options, start));
        const std::uint32_t used = std::ranges::max(all.sharing.rows.first_rows);
        if (all.sharing.first_scratch_row < end) {
            start.rows.scratch_rows = spec::parameter_rows - all.sharing.first_scratch_row;
            start.rows.end = 0;
        } else if (start.rows.end != used) {
            start.rows.end = used;
        } else if (!start.token) {
            start.token = token_of(all);
        } else {
            return std::move(all.models);
        }
    }
    return fail(Cause::unsupported, "the models' parameters find no place beside one another", {},
                "compile them one by one");
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
