// Pass "embed": programs into a package.
#pragma once

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {

/// Programs share the chip's memory when their tokens are equal: one is made of these bytes.
[[nodiscard]] std::uint64_t token_of(std::span<const Bytes> parts);

/// `token`: of all programs that share the chip's memory; nothing: made of this one's bytes.
[[nodiscard]] Package package_of(const Plan& plan, Programs programs,
                                 std::optional<std::uint64_t> token = {});

}  // namespace reef::edgetpu::lowering
