#include "edgetpu/retarget/program_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "edgetpu/program/codec.h"

namespace reef::edgetpu {
namespace {

/// Equal in every field that the role sets.
bool same_values(const Instruction& a, const Instruction& b, const Requantisation& role) {
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    const program::Tensor x = typed_tensor(a), y = typed_tensor(b);
    return (!role.scale || bits(x.scale) == bits(y.scale)) &&
           (!role.clamp_min || bits(x.clamp_min) == bits(y.clamp_min)) &&
           (!role.clamp_max || bits(x.clamp_max) == bits(y.clamp_max)) &&
           (!role.weight_zero || x.par_zero == y.par_zero) &&
           (!role.in_zero || x.in_zero == y.in_zero) &&
           (!role.out_zero || x.out_zero == y.out_zero) &&
           (!role.initial || x.initial == y.initial);
}

/// Assignments of a row of instructions to a row of roles, neither of which goes back.
class Alignment {
  public:
    using Fits = std::function<bool(const Instruction&, const Requantisation&)>;
    using Alike = std::function<bool(std::size_t, std::size_t)>;

    Alignment(const std::vector<Instruction>& instructions,
              const std::vector<Requantisation>& roles, const Fits& fits)
        : instructions_(instructions), roles_(roles), required_before_(roles.size() + 1) {
        for (std::size_t role = 0; role < roles.size(); ++role) {
            required_before_[role + 1] = required_before_[role] + (roles[role].required() ? 1 : 0);
        }
        for (const Instruction& one : instructions_) {
            std::vector<bool> row;
            row.reserve(roles.size());
            for (const Requantisation& role : roles) row.push_back(fits(one, role));
            possible_.push_back(std::move(row));
        }
    }

    Result<std::vector<std::size_t>> run(const Alike& alike) {
        REEF_CHECK(keep_reachable_from_front());
        REEF_CHECK(keep_reachable_from_back());
        std::vector<std::size_t> chosen;
        for (std::size_t i = 0; i < instructions_.size(); ++i) {
            chosen.push_back(REEF_TRY(only_choice(i, alike)));
        }
        return chosen;
    }

  private:
    /// Whether the instruction of the second role may follow that of the first.
    bool may_follow(std::size_t i, std::size_t before, std::size_t role) const {
        if (before == role) {
            return same_values(instructions_[i - 1], instructions_[i], roles_[role]);
        }
        return before < role && required_before_[role] == required_before_[before + 1];
    }

    Status keep_reachable_from_front() {
        for (std::size_t i = 0; i < instructions_.size(); ++i) {
            bool any = false;
            for (std::size_t role = 0; role < roles_.size(); ++role) {
                if (!possible_[i][role]) continue;
                possible_[i][role] = i == 0 ? required_before_[role] == 0 : follows(i, role);
                any = any || possible_[i][role];
            }
            if (!any) return misfit(i);
        }
        return {};
    }

    bool follows(std::size_t i, std::size_t role) const {
        for (std::size_t before = 0; before <= role; ++before) {
            if (possible_[i - 1][before] && may_follow(i, before, role)) return true;
        }
        return false;
    }

    Status keep_reachable_from_back() {
        for (std::size_t i = instructions_.size(); i-- > 0;) {
            bool any = false;
            for (std::size_t role = 0; role < roles_.size(); ++role) {
                if (!possible_[i][role]) continue;
                possible_[i][role] = i + 1 == instructions_.size()
                                         ? required_before_.back() == required_before_[role + 1]
                                         : leads_on(i, role);
                any = any || possible_[i][role];
            }
            if (!any) return misfit(i);
        }
        return {};
    }

    bool leads_on(std::size_t i, std::size_t role) const {
        for (std::size_t after = role; after < roles_.size(); ++after) {
            if (possible_[i + 1][after] && may_follow(i + 1, role, after)) return true;
        }
        return false;
    }

    std::unexpected<Error> misfit(std::size_t i) const {
        return fail(Cause::unsupported,
                    "it does not fit the model's operators taken in their order",
                    name_of(instructions_[i]));
    }

    Result<std::size_t> only_choice(std::size_t i, const Alike& alike) const {
        std::optional<std::size_t> chosen;
        for (std::size_t role = 0; role < roles_.size(); ++role) {
            if (!possible_[i][role]) continue;
            if (chosen && !alike(*chosen, role)) {
                return fail(Cause::unsupported,
                            fmt::format("it may belong to operator {} or to operator {}, which "
                                        "need other values",
                                        roles_[*chosen].op, roles_[role].op),
                            name_of(instructions_[i]));
            }
            if (!chosen) chosen = role;
        }
        return *chosen;
    }

    const std::vector<Instruction>& instructions_;
    const std::vector<Requantisation>& roles_;
    std::vector<std::size_t> required_before_;  ///< required roles below an index
    std::vector<std::vector<bool>> possible_;   ///< by instruction and role
};

}  // namespace

std::string name_of(const Instruction& instruction) {
    return fmt::format("{} at word {:#x}",
                       instruction.info == nullptr ? "data" : instruction.info->name,
                       instruction.word);
}

bool requantises(const Instruction& instruction) {
    const auto kind = instruction.info - spec::instructions;
    return kind >= spec::op::tensor_0 && kind <= spec::op::tensor_4;
}

program::Tensor typed_tensor(const Instruction& instruction) {
    return std::get<program::Tensor>(program::decode(instruction).operation);
}

namespace {

/// Of SOFTMAX in Reef's programs: 255 less how far a value is below the largest.
bool is_distance(const program::Tensor& tensor) {
    return tensor.par_zero == 0 && tensor.in_zero == 1 && tensor.initial == 1 &&
           tensor.out_zero == 255 && tensor.scale == 1.0F && tensor.clamp_min == -255 &&
           tensor.clamp_max == 0;
}

/// Bytes as they are: the zero point is taken off and put on again.
bool keeps_bytes(const program::Tensor& tensor) {
    return tensor.par_zero == 0 && tensor.in_zero == tensor.out_zero && tensor.initial == 0 &&
           tensor.scale == 1.0F && std::isinf(tensor.clamp_max) && std::isinf(tensor.clamp_min);
}

}  // namespace

bool independent_of_quantization(const Instruction& instruction, bool own) {
    const program::Tensor tensor = typed_tensor(instruction);
    if (own && (is_distance(tensor) || keeps_bytes(tensor))) return true;
    if (tensor.par_zero != 0 || tensor.in_zero != 0 || tensor.out_zero != 0 || tensor.initial != 0)
        return false;
    const float scale = tensor.scale, max = tensor.clamp_max, min = tensor.clamp_min;
    constexpr float per_16_bit_step = 1.0F / 65535.0F;
    constexpr float blend_of_sixteen = 1.0F / 16;
    if (std::isinf(max) && std::isinf(min))
        return scale == 1.0F || scale == per_16_bit_step || (own && scale == blend_of_sixteen);
    if (min != 0) return false;
    return (scale == per_16_bit_step && max == 32768.0F) || (scale == 1.0F && max == 65535.0F) ||
           (scale == 1.1921416387394856e-07F && max == 255.0F);
}

Result<std::vector<TensorInstruction>> tensor_instructions(
    const std::vector<CompiledOperator>& operators) {
    std::vector<TensorInstruction> found;
    for (std::size_t op = 0; op < operators.size(); ++op) {
        const auto& executables = operators[op].package.executables;
        for (std::size_t i = 0; i < executables.size(); ++i) {
            if (executables[i].type == ExecutableType::parameter_caching) continue;
            const auto& streams = executables[i].bitstreams;
            for (std::size_t j = 0; j < streams.size(); ++j) {
                const auto decoded = REEF_TRY(decode(streams[j].instructions.view()));
                for (const Instruction& one : decoded) {
                    if (requantises(one)) found.push_back({op, i, j, one});
                }
            }
        }
    }
    return found;
}

Result<std::vector<std::size_t>> align_in_order(
    const std::vector<Instruction>& instructions, const std::vector<Requantisation>& roles,
    const std::function<bool(const Instruction&, const Requantisation&)>& fits,
    const std::function<bool(std::size_t, std::size_t)>& alike) {
    if (instructions.empty()) return std::vector<std::size_t>{};
    return Alignment(instructions, roles, fits).run(alike);
}

}  // namespace reef::edgetpu
