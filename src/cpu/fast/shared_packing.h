// Packed weights that kernels of one process share.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "reef/base/bytes.h"

namespace reef::cpu {

using PackedBytes = std::shared_ptr<const std::byte>;

/// Everything besides the weights that decides how they are packed.
struct PackingForm {
    enum class Kind : std::uint8_t { matrix, depthwise, float_depthwise };
    Kind kind = Kind::matrix;
    std::vector<std::int64_t> numbers;

    friend auto operator<=>(const PackingForm&, const PackingForm&) = default;
};

/// `bytes` bytes, aligned for the widest vector loads, that pack() makes of `weights` out of zeros;
/// or what it made of equal ones in the same form, as long as a kernel holds that. Ones that have
/// been overwritten since count as what they were then. Where the
/// weights of all who asked for it are gone, pack() is called to see whether it makes the same. Who
/// asks while another thread packs the same waits for it, and packs where that failed. Weights
/// without an owner are not shared. Any thread.
[[nodiscard]] PackedBytes share_packed(const SharedBytes& weights, const PackingForm& form,
                                       std::size_t bytes,
                                       const std::function<void(std::byte*)>& pack);

/// All that kernels hold now of what share_packed() would share.
struct SharedPackings {
    std::size_t count = 0;
    std::size_t bytes = 0;

    friend bool operator==(const SharedPackings&, const SharedPackings&) = default;
};
[[nodiscard]] SharedPackings shared_packings();

}  // namespace reef::cpu
