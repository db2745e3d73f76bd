#include "edgetpu/retarget/template_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "edgetpu/retarget/operator_matching.h"
#include "edgetpu/retarget/program_alignment.h"

namespace reef::edgetpu {

bool same_values(Requantisation a, const Requantisation& b) {
    a.op = b.op;
    return a == b;
}

bool rescales(const Requantisation& copy) {
    // A scale times its inverse is 1 up to rounding.
    return copy.in_zero != copy.out_zero || std::abs(*copy.scale - 1) > 1e-6F;
}

namespace {

using model::Tensor;
using model::TensorIndex;

bool same_quantization(const Tensor& a, const Tensor& b) {
    if (a.quantization.has_value() != b.quantization.has_value()) return false;
    return !a.quantization || (a.quantization->scale == b.quantization->scale &&
                               a.quantization->zero_point == b.quantization->zero_point);
}

class NumbersOfSource final : public TemplateNumbers {
  public:
    explicit NumbersOfSource(const RetargetModels& models) : models_(models) {}

    [[nodiscard]] Status check_parameters() const override {
        for (const PlacedPart& placed : models_.compiled.placement().placed) {
            if (placed.differing == 0) continue;
            return fail(Cause::bad_input,
                        fmt::format("{} bytes of its parameters are not those of the source",
                                    placed.differing),
                        models_.compiled.parts()[placed.part].name,
                        "give the plain model that it was compiled from");
        }
        return {};
    }

    [[nodiscard]] bool may_differ(TensorIndex tensor) const override {
        return !same_quantization(before(tensor), after(tensor));
    }

    [[nodiscard]] bool zero_may_differ(TensorIndex tensor) const override {
        return number_of(before(tensor)).second != number_of(after(tensor)).second;
    }

    [[nodiscard]] bool held_zero_may_differ(std::size_t op,
                                            const RetargetRoles& roles) const override {
        for (std::size_t i = 0; i < roles.to.size(); ++i)
            if (roles.to[i].op == op && input_zero(roles.from[i]) != input_zero(roles.to[i]))
                return true;
        return false;
    }

    [[nodiscard]] Result<MatchedProgram> match(const RetargetRoles& roles,
                                               bool unmodelled) const override {
        MatchedProgram program;
        if (roles.from == roles.to) return program;
        // Sums with one factor do not say which operand comes first; an instruction of an unknown
        // operator may hold the values of a known one by chance.
        const bool own = models_.compiled.is_own();
        bool clear = !unmodelled && std::ranges::none_of(roles.from, [&](const auto& role) {
            return !own && role.factors && role.factors->first == role.factors->second;
        });
        for (const auto& at : REEF_TRY(tensor_instructions(models_.compiled.operators()))) {
            const auto fitting = roles_of(at.instruction, roles);
            if (fitting.empty()) {
                if (independent_of_quantization(at.instruction, own) || unmodelled) continue;
                return fail(Cause::unsupported,
                            "its values belong to no operator of the source, so that they cannot "
                            "be made for another",
                            name_of(at.instruction));
            }
            clear = clear && fitting.size() == 1;
            program.push_back({at, fitting.front(), order_of_operands(models_.compiled), {}});
        }
        if (clear) return program;
        const auto alike = [&](std::size_t a, std::size_t b) {
            return a == b || (!roles.to[a].factors && same_values(roles.to[a], roles.to[b]));
        };
        return match_program(models_.compiled, REEF_TRY(program_flow(models_.compiled)), roles.from,
                             {holds, alike, true});
    }

    [[nodiscard]] const Requantisation* held(const Requantisation& from) const override {
        return &from;
    }

    [[nodiscard]] Bytes constant(const Tensor& tensor, Bytes) const override {
        return models_.compiled.plain().constant(tensor);
    }

    [[nodiscard]] Status refuse_unknown() const override {
        return fail(Cause::unsupported,
                    "its quantisation differs, and how the program holds it is not known exactly");
    }

  private:
    [[nodiscard]] const Tensor& before(TensorIndex tensor) const {
        const auto& graph = models_.compiled.plain().subgraphs.front();
        return graph.tensors[static_cast<std::size_t>(tensor)];
    }
    [[nodiscard]] const Tensor& after(TensorIndex tensor) const {
        const auto& graph = models_.target.subgraphs.front();
        return graph.tensors[static_cast<std::size_t>(models_.map.at(tensor))];
    }

    /// Roles that the instruction may have; those that say the same for the target count once.
    static std::vector<std::size_t> roles_of(const Instruction& instruction,
                                             const RetargetRoles& roles) {
        std::vector<std::size_t> fitting;
        for (std::size_t role = 0; role < roles.from.size(); ++role) {
            if (!holds(instruction, roles.from[role])) continue;
            const bool known = std::ranges::any_of(fitting, [&](std::size_t other) {
                return same_values(roles.to[other], roles.to[role]);
            });
            if (!known) fitting.push_back(role);
        }
        return fitting;
    }

    RetargetModels models_;
};

class NumbersOfProgram final : public TemplateNumbers {
  public:
    NumbersOfProgram(MatchedProgram program, std::set<TensorIndex> known_zeros)
        : program_(std::move(program)), known_zeros_(std::move(known_zeros)) {}

    [[nodiscard]] Status check_parameters() const override { return {}; }
    [[nodiscard]] bool may_differ(TensorIndex) const override { return true; }
    [[nodiscard]] bool zero_may_differ(TensorIndex tensor) const override {
        return !known_zeros_.contains(tensor);
    }

    [[nodiscard]] bool held_zero_may_differ(std::size_t op,
                                            const RetargetRoles& roles) const override {
        return std::ranges::any_of(program_, [&](const MatchedInstruction& one) {
            const Requantisation& role = roles.to[one.role];
            if (role.op != op) return false;
            const program::Tensor held = typed_tensor(one.at.instruction);
            const bool average = role.form == Requantisation::Form::average;
            return (average ? held.par_zero : held.in_zero) != input_zero(role);
        });
    }

    [[nodiscard]] Result<MatchedProgram> match(const RetargetRoles&, bool) const override {
        return program_;
    }
    [[nodiscard]] const Requantisation* held(const Requantisation&) const override {
        return nullptr;
    }
    [[nodiscard]] Bytes constant(const Tensor&, Bytes held) const override { return held; }

    [[nodiscard]] Status refuse_unknown() const override {
        return fail(Cause::unsupported,
                    "whether its quantisation differs cannot be read from the program", {},
                    std::string(hint_for_source));
    }

  private:
    MatchedProgram program_;
    std::set<TensorIndex> known_zeros_;
};

/// Zero points of the plain model that inputs and outputs have, or an instruction holds that gives
/// the tensor.
std::set<TensorIndex> zeros_held(const CompiledParameters& opened, const MatchedProgram& program) {
    const auto& graph = opened.plain().subgraphs.front();
    std::set<TensorIndex> known(graph.inputs.begin(), graph.inputs.end());
    known.insert(graph.outputs.begin(), graph.outputs.end());
    const auto roles =
        requantisations(opened.plain(), opened.on_chip(), opened.parts(), opened.is_own());
    for (const MatchedInstruction& one : program) {
        const Requantisation& role = roles[one.role];
        if (role.required() && role.out_zero) known.insert(graph.operators[role.op].outputs[0]);
    }
    return known;
}

}  // namespace

std::unique_ptr<TemplateNumbers> numbers_of_source(const RetargetModels& models) {
    return std::make_unique<NumbersOfSource>(models);
}

std::unique_ptr<TemplateNumbers> numbers_of_program(MatchedProgram program) {
    return std::make_unique<NumbersOfProgram>(std::move(program), std::set<TensorIndex>{});
}

std::unique_ptr<TemplateNumbers> numbers_of_plain(const CompiledParameters& opened,
                                                  MatchedProgram program) {
    auto zeros = zeros_held(opened, program);
    return std::make_unique<NumbersOfProgram>(std::move(program), std::move(zeros));
}

std::optional<std::int32_t> input_zero(const Requantisation& role) {
    return role.form == Requantisation::Form::average ? role.weight_zero : role.in_zero;
}

std::pair<float, std::int64_t> number_of(const Tensor& tensor) {
    if (!tensor.quantization || !tensor.quantization->quantized()) return {};
    const auto& points = tensor.quantization->zero_point;
    return {tensor.quantization->scale.front(),
            (points.empty() ? 0 : points.front()) + (tensor.type == ElementType::int8 ? 128 : 0)};
}

}  // namespace reef::edgetpu
