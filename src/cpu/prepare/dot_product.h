// The sum of products that matrix products and recurrent kernels share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace reef::cpu {

/// The sum of (a[i] - zero_a) * (b[i] - zero_b), from first to last. Integer sums wrap modulo 2^32,
/// as the machine's do; each product fits int32.
template <typename Element, typename Weight,
          typename Sum = std::conditional_t<std::is_floating_point_v<Element>, float, std::int32_t>>
[[nodiscard]] Sum dot_product(const Element* a, const Weight* b, std::size_t count, Sum zero_a = 0,
                              Sum zero_b = 0) {
    using Wrapping = std::conditional_t<std::is_floating_point_v<Sum>, float, std::uint32_t>;
    Wrapping sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += static_cast<Wrapping>((static_cast<Sum>(a[i]) - zero_a) *
                                     (static_cast<Sum>(b[i]) - zero_b));
    return static_cast<Sum>(sum);
}

}  // namespace reef::cpu
