// Packed weights that kernels of one process share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "reef/base/bytes.h"

namespace reef::cpu {

using PackedBytes = std::shared_ptr<const std::byte>;

/// Zeroed and aligned for the widest vector loads.
[[nodiscard]] std::shared_ptr<std::byte> allocate_packed(std::size_t bytes);

/// Everything besides the weights that decides how they are packed.
using PackingForm = std::array<std::int64_t, 7>;

/// What pack() makes of `weights`, or what it made of equal ones in the same form, as long as a
/// kernel holds that and the weights of one of those who asked for it are alive. Weights without an
/// owner are not shared. Any thread.
[[nodiscard]] PackedBytes share_packed(const SharedBytes& weights, const PackingForm& form,
                                       const std::function<PackedBytes()>& pack);

}  // namespace reef::cpu
