// Joining tensors whose bytes change on the way.
#pragma once

#include <array>
#include <cstdint>

#include "cpu/prepare/kernel.h"

namespace reef::cpu {

/// What each byte of a slice becomes, by its bits.
using SliceTable = std::array<std::uint8_t, 256>;
using MakeSliceTable = Result<SliceTable> (*)(const model::Tensor& input,
                                              const model::Tensor& output);

/// CONCATENATION of tensors of one 8-bit type, each through its own table.
[[nodiscard]] PreparedKernel concatenate_through_tables(const OperatorView& op,
                                                        MakeSliceTable table);

}  // namespace reef::cpu
