// Which instructions of a program have a form that no known program of the vendor has.
#pragma once

#include <optional>

#include "edgetpu/compiler/emitter.h"
#include "reef/edgetpu/compiler.h"

namespace reef::edgetpu::lowering {

/// Errors: as program::encode().
[[nodiscard]] Result<std::string> form_of_operation(const program::TypedInstruction& instruction);

/// Adds the code's instructions to `forms`.
[[nodiscard]] Status count_forms(const Emitter& code, Forms& forms);

/// The number of the first instruction of such a form, and the form.
struct UnprovenInstruction {
    std::size_t instruction = 0;
    std::string form;
};
[[nodiscard]] Result<std::optional<UnprovenInstruction>> first_unproven(const Emitter& code);

/// Why a part of a program, or any (without a name), has instructions of forms of its own.
struct FormReason {
    std::string_view part, instruction, reason;
};
[[nodiscard]] std::span<const FormReason> form_reasons();

}  // namespace reef::edgetpu::lowering
