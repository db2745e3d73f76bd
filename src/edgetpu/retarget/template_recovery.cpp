#include "edgetpu/retarget/template_recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/params/plain_checks.h"
#include "edgetpu/params/stored_form.h"
#include "edgetpu/sim/program/nest.h"
#include "reef/edgetpu/program_check.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

using model::Tensor;
using model::TensorIndex;
using Form = Requantisation::Form;

bool held(const std::vector<TensorInstruction>& instructions, const Requantisation& role) {
    return std::ranges::any_of(
        instructions, [&](const TensorInstruction& at) { return holds(at.instruction, role); });
}

std::vector<Requantisation> roles_of(const CompiledParameters& opened) {
    return requantisations(opened.plain(), opened.on_chip(), opened.parts(), opened.is_own());
}

bool same_scale(const Tensor& a, const Tensor& b) {
    const bool scaled = a.quantization && a.quantization->quantized();
    if (scaled != (b.quantization && b.quantization->quantized())) return false;
    return !scaled || (a.quantization->scale == b.quantization->scale &&
                       a.quantization->zero_point == b.quantization->zero_point);
}

/// Inputs and outputs of the compiled model have the plain one's scales.
bool same_interface(const CompiledParameters& opened) {
    const auto& compiled = opened.compiled().subgraphs.front();
    const auto& plain = opened.plain().subgraphs.front();
    const auto same = [&](const std::vector<TensorIndex>& a, const std::vector<TensorIndex>& b) {
        return std::ranges::equal(a, b, [&](TensorIndex x, TensorIndex y) {
            return same_scale(compiled.tensors[static_cast<std::size_t>(x)],
                              plain.tensors[static_cast<std::size_t>(y)]);
        });
    };
    return same(compiled.inputs, plain.inputs) && same(compiled.outputs, plain.outputs);
}

/// Another number, shape or type of inputs or outputs is another architecture.
Status check_interface(const CompiledParameters& opened) {
    const auto other = other_interface(opened.compiled(), opened.plain());
    if (!other) return {};
    return fail(Cause::unsupported, "another architecture: " + *other, {},
                "compile the model itself (`target` edgetpu); a segment of a pipeline needs a "
                "model whose tensors have the names of its inputs and outputs, once each");
}

/// What runs in circles is no template.
Status check_halt(const CompiledParameters& opened) {
    for (const CompiledOperator& one : opened.operators()) {
        const auto& executables = one.package.executables;
        for (std::size_t i = 0; i < executables.size(); ++i) {
            std::vector<Bytes> chunks;
            for (const auto& stream : executables[i].bitstreams)
                chunks.push_back(stream.instructions.view());
            const auto fault = check_halts(chunks);
            if (!fault || fault->unmodelled) continue;
            return fail(Cause::bad_input, fault->what,
                        fmt::format("{}: executable {}: word {:#06x}", one.place, i, fault->word),
                        "compile the model anew (`target` edgetpu)");
        }
    }
    return {};
}

/// How many input channels, by fours, an instruction takes of a tap before it goes to another one.
std::uint32_t words_in_a_row(const Instruction& instruction, std::uint32_t most) {
    const program::Tensor tensor = typed_tensor(instruction);
    sim::NestCursor cursor(tensor.in);
    std::uint32_t words = 1;
    constexpr auto word = static_cast<std::int32_t>(spec::narrow_word_bytes);
    for (std::int32_t last = cursor.address(); words < most; ++words) {
        cursor.advance();
        if (cursor.done() || cursor.address() != last + word) break;
        last = cursor.address();
    }
    return words;
}

/// The order of a layer's weights in the program, by its instruction.
Status take_form(ParameterPart& part, const Instruction& instruction) {
    if (!may_be_in_blocks(part.form)) return {};
    const std::uint32_t words = part.form.words();
    const std::uint32_t block = words_in_a_row(instruction, words);
    if (words % block != 0)
        return fail(
            Cause::unsupported,
            fmt::format(
                "the program takes {} of its {} input channels at a time, which do not divide",
                4 * block, part.form.in_channels),
            part.name, std::string(hint_for_source));
    part.form.block_words = block == words ? 0 : block;
    if (!part.form.as_is()) part.layout.shape = stored_shape(part.form);
    return {};
}

/// The vectors that a layer has in the program, by its instruction; for the rest nothing changes.
Status take_vectors(ParameterPart& part, const Instruction& instruction) {
    const program::Tensor tensor = typed_tensor(instruction);
    const LayerVectors vectors{.multipliers = tensor.lane_scale,
                               .biases = tensor.bias,
                               .zero_points = tensor.par_zero_rows};
    part.layout = REEF_TRY(in_place(layout_of(part.layout.shape, vectors), part.name));
    part.size_bytes = part.layout.size_bytes;
    return {};
}

/// Of Reef's program: the form whose weights come in the order in which the instruction reads them,
/// with the vectors that it reads.
Status take_own_form(ParameterPart& part, const std::vector<ParameterPart>& forms,
                     const Instruction& instruction) {
    const program::Tensor tensor = typed_tensor(instruction);
    const LayerVectors vectors{.multipliers = tensor.lane_scale,
                               .biases = tensor.bias,
                               .zero_points = tensor.par_zero_rows};
    const auto fits = [&](const ParameterPart& one) {
        if (one.layout.vectors != vectors) return false;
        if (!may_be_in_blocks(one.form)) return true;
        const std::uint32_t words = one.form.words();
        return (words_in_a_row(instruction, words) == words) == (one.form.block_words == words);
    };
    const auto found = std::ranges::find_if(forms, fits);
    if (found == forms.end())
        return fail(Cause::unsupported, "the program reads its parameters in an order of its own",
                    part.name, std::string(hint_for_source));
    part = *found;
    return {};
}

/// Whether the values of an unmodelled operator are the target's cannot be read.
Status check_modelled(const CompiledParameters& opened, const std::vector<Requantisation>& roles) {
    const auto& graph = opened.plain().subgraphs.front();
    for (std::size_t op = 0; op < graph.operators.size(); ++op) {
        const bool known = std::ranges::find(roles, op, &Requantisation::op) != roles.end() ||
                           moves_only(graph.operators[op].code.builtin, opened.is_own());
        if (known || !opened.on_chip()[op]) continue;
        return fail(Cause::unsupported,
                    "whether its quantisation differs cannot be read from the program",
                    model::place_of(graph, op), std::string(hint_for_source));
    }
    return {};
}

/// The first row of all that a layer's instructions read is that of its first group's weights.
Status take_place(PartHint& hint, const ParameterPart& part, const std::vector<BlobRange>& rows) {
    for (const BlobRange& row : rows) {
        const std::size_t before = part.layout.weights;
        if (row.offset < before) return fail(Cause::unsupported, "its parameters begin too early");
        const BlobRange range{row.blob, row.offset - before, part.size_bytes};
        if (hint.place && hint.place->blob != range.blob)
            return fail(Cause::unsupported, "its parameters are cached and streamed");
        if (!hint.place || range.offset < hint.place->offset) hint.place = range;
    }
    return {};
}

Status check_names(const CompiledParameters& opened) {
    const auto& graph = opened.compiled().subgraphs.front();
    const auto on_cpu =
        std::ranges::count_if(graph.operators, [](const auto& op) { return !is_compiled(op); });
    if (on_cpu == std::ranges::count(opened.on_chip(), false)) return {};
    return fail(Cause::unsupported,
                "operators on the CPU are not found in the plain model by the names of their "
                "outputs",
                {}, std::string(hint_for_source));
}

}  // namespace

Status check_template(const CompiledParameters& opened) {
    REEF_CHECK(check_interface(opened));
    return check_halt(opened);
}

namespace {

/// Whether all parameters are there, some instruction holds each role's values, and inputs and
/// outputs have the plain model's scales.
Result<bool> has_all_values(const CompiledParameters& opened) {
    const Placement& placement = opened.placement();
    // A selection is the same for all numbers.
    const bool lacking = std::ranges::any_of(placement.missing, [&](std::size_t part) {
        return opened.parts()[part].kind != PartKind::selection;
    });
    if (lacking || !same_interface(opened)) return false;
    if (std::ranges::any_of(placement.placed, [](const auto& part) { return part.differing > 0; }))
        return false;
    const auto instructions = REEF_TRY(tensor_instructions(opened.operators()));
    return std::ranges::all_of(roles_of(opened), [&](const Requantisation& role) {
        // Copies may be transfers, and of the two ways to subtract a maximum a program takes one.
        return role.form == Form::copy || role.form == Form::difference || held(instructions, role);
    });
}

}  // namespace

Result<std::optional<MatchedProgram>> program_of_plain(const CompiledParameters& opened,
                                                       const ProgramFlow& flow) {
    if (!REEF_TRY(has_all_values(opened))) return std::nullopt;
    const auto roles = roles_of(opened);
    const auto alike = [&](std::size_t a, std::size_t b) {
        Requantisation other = roles[b];
        other.op = roles[a].op;
        return a == b || (!roles[a].factors && roles[a] == other);
    };
    auto program = match_program(opened, flow, roles, {holds, alike, true});
    if (!program) return std::nullopt;
    return std::move(*program);
}

Status check_source(const CompiledParameters& opened) {
    const auto instructions = REEF_TRY(tensor_instructions(opened.operators()));
    for (const Requantisation& role : roles_of(opened)) {
        if (role.form != Form::layer || held(instructions, role)) continue;
        return fail(Cause::unsupported, "no instruction holds its scales and zero points",
                    model::place_of(opened.plain().subgraphs.front(), role.op),
                    "give the plain model that it was compiled from; when it is that one, the "
                    "program computes the operator in a way that is not known");
    }
    return {};
}

Result<MatchedProgram> match_program(const CompiledParameters& opened, const ProgramFlow& flow,
                                     const std::vector<Requantisation>& roles,
                                     const MatchingRules& rules) {
    const OperatorGraph graph(opened, roles);
    const auto matched = REEF_TRY(match_operators(opened, flow, graph, roles, rules));
    MatchedProgram program;
    for (std::size_t node = 0; node < matched.size(); ++node) {
        if (!matched[node]) continue;
        MatchedInstruction& one = program.emplace_back();
        one.at = flow.nodes[node].at;
        one.rows = flow.nodes[node].rows;
        one.role = *matched[node];
        one.second_first = order_of_operands(opened);
        if (roles[one.role].form == Form::sum && !one.second_first)
            one.second_first = takes_second_first(flow, graph, roles, matched, node);
    }
    return program;
}

Status check_readable(const CompiledParameters& opened) {
    REEF_CHECK(check_names(opened));
    return check_modelled(opened, roles_of(opened));
}

Result<Recovered> recover_program(const CompiledParameters& opened, const ProgramFlow& flow) {
    const auto roles = roles_of(opened);
    const auto alike = [&](std::size_t a, std::size_t b) {
        // Layers have parameters of their own, sums an order of operands.
        if (roles[a].form == Form::layer || roles[a].form == Form::sum) return a == b;
        Requantisation other = roles[b];
        other.op = roles[a].op;
        return roles[a] == other;
    };
    auto program = match_program(opened, flow, roles, {has_form_of, alike});
    if (!program) {
        return std::unexpected(
            std::move(program.error())
                .with_hint("is it the same architecture? then " + std::string(hint_for_source))
                .in("the compiled program"));
    }
    std::vector<ParameterPart> parts = opened.parts();
    std::vector<PartHint> hints(parts.size());
    for (const MatchedInstruction& one : *program) {
        const Requantisation& role = roles[one.role];
        const auto is_its = [&](const ParameterPart& part) {
            return part.op == role.op && part.is_layer();
        };
        const auto part = std::ranges::find_if(parts, is_its);
        if (role.form != Form::layer || part == parts.end()) continue;
        if (std::ranges::count_if(parts, is_its) > 1)
            return fail(Cause::unsupported, "which of its layers an instruction reads is not known",
                        model::place_of(opened.plain().subgraphs.front(), role.op),
                        std::string(hint_for_source));
        const auto index = static_cast<std::size_t>(part - parts.begin());
        if (opened.is_own()) {
            REEF_CHECK(take_own_form(*part, opened.forms()[index], one.at.instruction));
        } else {
            REEF_CHECK(take_form(*part, one.at.instruction));
            REEF_CHECK(take_vectors(*part, one.at.instruction));
        }
        PartHint& hint = hints[index];
        hint.weight_zero = role.per_channel ? 128 : typed_tensor(one.at.instruction).par_zero;
        REEF_CHECK(in_place(take_place(hint, *part, one.rows), part->name));
    }
    auto placed = opened.placed_as(std::move(parts), hints);
    if (!placed)
        return std::unexpected(std::move(placed.error()).with_hint(std::string(hint_for_source)));
    return Recovered{std::move(*placed), std::move(*program)};
}

}  // namespace reef::edgetpu
