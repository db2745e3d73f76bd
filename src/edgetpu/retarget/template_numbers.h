// What is known of the numbers that a template was compiled with: everything, from the plain model
// that it was compiled from, or what its program shows.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "edgetpu/retarget/architecture.h"
#include "edgetpu/retarget/template_recovery.h"
#include "reef/base/result.h"
#include "reef/edgetpu/compiled_parameters.h"
#include "reef/edgetpu/requantisation.h"

namespace reef::edgetpu {

/// The template with a plain model of its architecture, and the model that it is to compute.
struct RetargetModels {
    const CompiledParameters& compiled;
    const model::Model& target;
    const TensorMap& map;  ///< tensors of compiled.plain() to those of the target
};

/// Roles of the template's operators and the same of the target's, in step.
struct RetargetRoles {
    const std::vector<Requantisation>& from;
    const std::vector<Requantisation>& to;
};

class TemplateNumbers {
  public:
    virtual ~TemplateNumbers() = default;

    /// Errors: bad_argument when the template's parameters are not those that are expected.
    [[nodiscard]] virtual Status check_parameters() const = 0;
    /// Whether the scale or zero point of a tensor of the plain model may be another in the target.
    [[nodiscard]] virtual bool may_differ(model::TensorIndex tensor) const = 0;
    /// The same of its zero point alone.
    [[nodiscard]] virtual bool zero_may_differ(model::TensorIndex tensor) const = 0;
    /// Whether an instruction of the operator may hold another zero point of its input.
    [[nodiscard]] virtual bool held_zero_may_differ(std::size_t op,
                                                    const RetargetRoles& roles) const = 0;
    /// For each tensor instruction with values of an operator: which one's. `unmodelled`: an
    /// operator on the chip has values that are not known, and keeps them.
    [[nodiscard]] virtual Result<MatchedProgram> match(const RetargetRoles& roles,
                                                       bool unmodelled) const = 0;
    /// What the instructions of a role of the template hold; null: each says it itself.
    [[nodiscard]] virtual const Requantisation* held(const Requantisation& from) const = 0;
    /// The bytes that a constant of the plain model had, of which the compiled one holds `held`.
    [[nodiscard]] virtual Bytes constant(const model::Tensor& tensor, Bytes held) const = 0;
    /// An operator whose quantisation may differ has values that are not known.
    [[nodiscard]] virtual Status refuse_unknown() const = 0;
};

/// The plain model is the one that the template was compiled from. The models must outlive it.
[[nodiscard]] std::unique_ptr<TemplateNumbers> numbers_of_source(const RetargetModels& models);

/// The plain model is the target itself; the template's numbers may all be others.
[[nodiscard]] std::unique_ptr<TemplateNumbers> numbers_of_program(MatchedProgram program);

/// The same of a program that program_of_plain() says to hold the target's numbers already.
[[nodiscard]] std::unique_ptr<TemplateNumbers> numbers_of_plain(const CompiledParameters& opened,
                                                                MatchedProgram program);

/// The same values but for the operator they come from.
[[nodiscard]] bool same_values(Requantisation a, const Requantisation& b);

/// Of a copy: its two sides have different scales or zero points.
[[nodiscard]] bool rescales(const Requantisation& copy);

/// The zero point of the input that a role's instruction holds.
[[nodiscard]] std::optional<std::int32_t> input_zero(const Requantisation& role);

/// Scale and zero point in the chip's unsigned domain; zeros when the tensor has none.
[[nodiscard]] std::pair<float, std::int64_t> number_of(const model::Tensor& tensor);

}  // namespace reef::edgetpu
