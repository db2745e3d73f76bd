// What a program cannot take over of a target, operator by operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "edgetpu/retarget/template_numbers.h"
#include "edgetpu/retarget/template_recovery.h"
#include "reef/base/result.h"

namespace reef::edgetpu {

/// Of a program and a target of its architecture; refers to all that it is made of.
class OperatorChecks {
  public:
    OperatorChecks(const RetargetModels& models, const RetargetRoles& roles,
                   const TemplateNumbers& numbers)
        : models_(models), roles_(roles), numbers_(numbers) {}

    /// Whether the values of its instructions are known. Those of another are left alone, since its
    /// quantisation stays.
    [[nodiscard]] bool is_modelled(std::size_t op) const;
    /// Refuses what the target makes of an operator whose quantisation may differ.
    [[nodiscard]] Status check(std::size_t op) const;
    /// Refuses other scales of what an operator computes in between, of which no instruction is
    /// known.
    [[nodiscard]] Status check_intermediates(std::size_t op) const;
    /// A copy with another scale on either side is an instruction; one that only moves bytes may be
    /// a transfer.
    [[nodiscard]] Status check_rescaling(const MatchedProgram& program) const;

  private:
    struct EndNumbers {
        std::pair<float, std::int64_t> in, out;
        [[nodiscard]] bool one() const { return in == out && in.first != 0; }
    };

    [[nodiscard]] Status check_vendors(std::size_t index, const model::Operator& op) const;
    /// Of a program of Reef's compiler: what it takes of an operator must hold for the target, too.
    [[nodiscard]] Status check_own(std::size_t index, const model::Operator& op) const;
    /// All tensors that it computes from and to have one scale and zero point.
    [[nodiscard]] Status check_moved(const model::Operator& op) const;
    /// What it pads with is filled in for the layers that read it; others read it as it is.
    [[nodiscard]] Status check_padding(const model::Operator& op) const;
    /// An input of the output's numbers may be made in its place, without an instruction.
    [[nodiscard]] Status check_joined(const model::Operator& op) const;
    /// A constant is added as whole steps of the input, which are the output's.
    [[nodiscard]] Status check_steps(std::size_t index, const model::Operator& op) const;
    [[nodiscard]] Status check_tanh(const model::Operator& op) const;
    [[nodiscard]] Status check_sum(const model::Operator& op) const;
    /// The border of a padded pool is no part of its sums; how the program leaves it out is not
    /// known exactly.
    [[nodiscard]] Status check_border(std::size_t index, const model::Operator& op) const;
    [[nodiscard]] Result<EndNumbers> numbers_of(const model::Operator& op, bool of_target) const;
    /// A QUANTIZE that rescales is an instruction, one that only renames is none.
    [[nodiscard]] Status check_renaming(const model::Operator& op) const;
    /// PAD is the border of the layer that reads it.
    [[nodiscard]] Status check_one_quantization(const model::Operator& op) const;
    /// No scale enters, but the border is filled with the zero point.
    [[nodiscard]] Status check_resize(const model::Operator& op) const;
    [[nodiscard]] Status check_sigmoid(const model::Operator& op) const;
    [[nodiscard]] Status check_softmax(const model::Operator& op) const;
    [[nodiscard]] const model::Model& plain() const { return models_.compiled.plain(); }

    RetargetModels models_;
    RetargetRoles roles_;
    const TemplateNumbers& numbers_;
};

}  // namespace reef::edgetpu
