// Which operators the chip has a form for: those of 8-bit tensors.
#pragma once

#include "cpu/prepare/kernel.h"

namespace reef::edgetpu::numerics {

[[nodiscard]] constexpr bool is_byte(ElementType type) {
    return type == ElementType::uint8 || type == ElementType::int8;
}

/// The type of all inputs and outputs, where it is one and of 8 bits; else one of no kind: the
/// operator is TFLite's, or TFLite's checks refuse it.
[[nodiscard]] inline ElementType byte_type(const cpu::OperatorView& op, std::size_t inputs) {
    constexpr ElementType none = ElementType::float32;
    if (op.input_count() != inputs || op.output_count() != 1) return none;
    const ElementType type = op.output(0).type;
    for (std::size_t i = 0; i < inputs; ++i)
        if (!op.has_input(i) || op.input(i).type != type) return none;
    return is_byte(type) ? type : none;
}

/// Whether one operand, by its number, is a constant per channel of the other.
[[nodiscard]] inline bool is_by_channel(const cpu::OperatorView& op, std::size_t at = 1) {
    const auto &a = op.input(1 - at).shape, &b = op.input(at).shape;
    return !op.constant(at).empty() && !a.empty() && !b.empty() && a.back() == b.back() &&
           op.input(at).element_count() == a.back();
}

}  // namespace reef::edgetpu::numerics
