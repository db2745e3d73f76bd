// The compiler's driver: passes in their order, again without an operator that does not fit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "compiler/legalise.h"
#include "compiler/remainder.h"
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
using compiler::Partition;
using lowering::Plan;

namespace pass {
constexpr std::string_view read = "read", legalise = "legalise", partition = "partition",
                           tile = "tile", bands = "bands", windows = "windows",
                           parameters = "parameters", ahead = "ahead", place = "place",
                           emit = "emit", embed = "embed";
}  // namespace pass
constexpr auto passes = std::to_array<std::string_view>(
    {pass::read, pass::legalise, pass::partition, pass::tile, pass::bands, pass::windows,
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

class Driver {
  public:
    Driver(const model::Model& model, const CompileOptions& options)
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

    Result<std::vector<chip::CompiledOperator>> map() {
        REEF_CHECK(check_request());
        Graph graph = compiler::read_graph(model_);
        legalise(graph, excluded_, lowering::most_taps);
        report(graph, compiler::partition(graph, lowering::Target(),
                                          std::max<std::size_t>(1, options_.most_programs)));
        return std::move(out_.operators);
    }

  private:
    Status check_request() const {
        if (model_.subgraphs.empty()) return fail(Cause::bad_argument, "a model without operators");
        for (const auto& op : model_.subgraphs.front().operators)
            if (is_compiled(op))
                return fail(Cause::bad_argument, "the model is compiled already", {},
                            "compile the plain one");
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
        Graph graph = compiler::read_graph(model_);
        print(pass::read, [&] { return to_text(graph); });
        REEF_CHECK(begin(pass::legalise));
        legalise(graph, excluded_, lowering::most_taps);
        print(pass::legalise, [&] { return to_text(graph); });
        REEF_CHECK(begin(pass::partition));
        const lowering::Target target;
        const Partition partition =
            compiler::partition(graph, target, std::max<std::size_t>(1, options_.most_programs));
        print(pass::partition, [&] { return text_of(graph, partition); });
        report(graph, partition);
        if (partition.programs.empty()) return nothing_left();
        std::vector<compiler::ProgramOperator> operators;
        for (const auto& program : partition.programs) {
            const Package package = REEF_TRY(lower(graph, program));
            auto options = REEF_TRY(custom_options_of(package));
            operators.push_back({{.builtin = model::Op::custom,
                                  .custom = std::string(custom_operator_name),
                                  .version = 1},
                                 SharedBytes::copy_of(options)});
        }
        out_.model = with_programs(graph, partition, operators);
        return std::move(out_);
    }

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

    Result<Package> lower(const Graph& graph, const compiler::Program& program) {
        REEF_CHECK(check_names(graph, program));
        REEF_CHECK(begin(pass::tile));
        Plan plan = lowering::tile(graph, program);
        plan.overlaps = options_.schedule == chip::Schedule::overlapped;
        if (options_.most_activation_bytes != 0)
            plan.most_narrow_bytes = static_cast<std::uint32_t>(
                std::min<std::size_t>(options_.most_activation_bytes, plan.most_narrow_bytes));
        print(pass::tile, [&] { return to_text(plan); });
        REEF_CHECK(begin(pass::bands));
        plan = in_bands(std::move(plan));
        print(pass::bands, [&] { return to_text(plan); });
        REEF_CHECK(begin(pass::windows));
        find_windows(plan);
        print(pass::windows, [&] { return to_text(plan); });
        REEF_CHECK(begin(pass::parameters));
        lay_out_parameters(plan);
        print(pass::parameters, [&] { return to_text(plan); });
        REEF_CHECK(begin(pass::ahead));
        if (plan.overlaps && !options_.known_forms_only && !options_.stream_parameters)
            plan_ahead(plan);
        print(pass::ahead, [&] { return to_text(plan); });
        REEF_CHECK(begin(pass::place));
        REEF_CHECK(place_tensors(plan));
        REEF_CHECK(place_parameters(plan, options_.stream_parameters));
        print(pass::place, [&] { return to_text(plan); });
        REEF_CHECK(begin(pass::emit));
        auto programs = REEF_TRY(emit(plan, {.list_forms = options_.list_forms,
                                             .known_forms_only = options_.known_forms_only}));
        add_forms(programs.forms);
        print(pass::emit, [&] {
            std::string text;
            for (const auto& stream : programs.computing.streams)
                text += disassemble(stream.bytes, {.symbolic = true});
            return text;
        });
        REEF_CHECK(begin(pass::embed));
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

    void report(const Graph& graph, const Partition& partition) {
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            out_.operators.push_back(
                {i, graph.nodes[i].name, partition.reasons[i].empty(), partition.reasons[i]});
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

    [[nodiscard]] std::unexpected<Error> nothing_left() const {
        std::string what = "no operator is left for the Edge TPU:";
        std::size_t listed = 0;
        for (const auto& op : out_.operators)
            if (listed++ < 20)
                what += fmt::format("\n  operator {} {}: {}", op.index, op.name, op.reason);
        return fail(Cause::unsupported, std::move(what));
    }

    [[nodiscard]] std::optional<std::size_t> node_at(const Error& error) const {
        const auto& graph = model_.subgraphs.front();
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
            if (error.place == model::place_of(graph, i)) return i;
        return std::nullopt;
    }

    const model::Model& model_;
    const CompileOptions& options_;
    compiler::Excluded excluded_;
    Compiled out_;
};

}  // namespace

Result<Compiled> compile(const model::Model& model, const CompileOptions& options) {
    return Driver(model, options).run();
}

Result<std::vector<chip::CompiledOperator>> mapping(const model::Model& model,
                                                    const CompileOptions& options) {
    return Driver(model, options).map();
}

std::vector<std::string_view> compiler_passes() {
    return {passes.begin(), passes.end()};
}

}  // namespace reef::edgetpu
