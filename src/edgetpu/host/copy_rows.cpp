#include "edgetpu/host/copy_rows.h"

#include <algorithm>
#include <cstring>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "edgetpu/host/copy_rows.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::edgetpu::host::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Rows = OutputUnpacker::Rows;

constexpr std::size_t pattern_bytes = 8;

/// The bytes that are XORed in, from any place in the 8-byte pattern on.
class Pattern {
  public:
    explicit Pattern(std::uint64_t flip) {
        for (std::size_t i = 0; i < sizeof bytes_; i += 8) std::memcpy(bytes_ + i, &flip, 8);
    }
    HWY_INLINE const std::uint8_t* from(std::size_t place) const { return bytes_ + place % 8; }

  private:
    std::uint8_t bytes_[72];
};

template <class D>
HWY_INLINE void copy_vector(D d, const std::byte* from, std::byte* to, hn::Vec<D> flip) {
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from));
    hn::StoreU(hn::Xor(bytes, flip), d, reinterpret_cast<std::uint8_t*>(to));
}

/// The rows [0, done) by one vector each, which may reach beyond the row but not beyond an end.
template <std::size_t most>
std::size_t copy_short_rows(const Rows& rows, Bytes wire, MutableBytes tensor,
                            const Pattern& pattern) {
    const hn::CappedTag<std::uint8_t, most> d;
    const std::size_t width = hn::Lanes(d);
    const auto flip = hn::LoadU(d, pattern.from(0));
    if (rows.row_bytes > width) return 0;
    const auto reachable = [&](std::size_t begin, std::size_t end, std::size_t step) {
        return begin + width > end ? 0 : (end - begin - width) / step + 1;
    };
    std::size_t safe = std::min(rows.count, reachable(rows.tensor, tensor.size(), rows.row_bytes));
    if (rows.count > 1) {
        safe = std::min(safe, reachable(rows.wire, wire.size(), rows.wire_stride));
    } else if (rows.wire + width > wire.size()) {
        safe = 0;
    }
    const std::byte* from = wire.data() + rows.wire;
    std::byte* to = tensor.data() + rows.tensor;
    for (std::size_t row = 0; row < safe; ++row) {
        copy_vector(d, from, to, flip);
        from += rows.wire_stride;
        to += rows.row_bytes;
    }
    return safe;
}

/// Whole vectors, the last one again over what is left. Precondition: a vector is not longer.
HWY_INLINE void copy_long_row(const std::byte* from, std::byte* to, std::size_t bytes,
                              const Pattern& pattern) {
    const hn::CappedTag<std::uint8_t, 64> d;
    const std::size_t width = hn::Lanes(d);
    const auto flip = hn::LoadU(d, pattern.from(0));
    std::size_t at = 0;
    for (; at + 4 * width <= bytes; at += 4 * width) {
        copy_vector(d, from + at, to + at, flip);
        copy_vector(d, from + at + width, to + at + width, flip);
        copy_vector(d, from + at + 2 * width, to + at + 2 * width, flip);
        copy_vector(d, from + at + 3 * width, to + at + 3 * width, flip);
    }
    for (; at + width <= bytes; at += width) copy_vector(d, from + at, to + at, flip);
    if (at < bytes) {
        const std::size_t last = bytes - width;
        copy_vector(d, from + last, to + last, hn::LoadU(d, pattern.from(last)));
    }
}

HWY_INLINE void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes,
                           const Pattern& pattern) {
    for (std::size_t i = 0; i < bytes; ++i) {
        to[i] = from[i] ^ static_cast<std::byte>(*pattern.from(i));
    }
}

void copy_all_rows(std::span<const Rows> groups, Bytes wire, MutableBytes tensor,
                   std::uint64_t flip) {
    const hn::CappedTag<std::uint8_t, 64> d;
    const std::size_t width = hn::Lanes(d);
    const Pattern pattern(flip);
    for (const Rows& rows : groups) {
        std::size_t done = 0;
        if (rows.row_bytes <= 16) {
            done = copy_short_rows<16>(rows, wire, tensor, pattern);
        } else if (rows.row_bytes <= 32) {
            done = copy_short_rows<32>(rows, wire, tensor, pattern);
        } else if (rows.row_bytes <= 64) {
            done = copy_short_rows<64>(rows, wire, tensor, pattern);
        }
        const std::byte* from = wire.data() + rows.wire + done * rows.wire_stride;
        std::byte* to = tensor.data() + rows.tensor + done * rows.row_bytes;
        for (; done < rows.count; ++done) {
            if (rows.row_bytes >= width && width >= pattern_bytes) {
                copy_long_row(from, to, rows.row_bytes, pattern);
            } else {
                copy_bytes(from, to, rows.row_bytes, pattern);
            }
            from += rows.wire_stride;
            to += rows.row_bytes;
        }
    }
}

}  // namespace reef::edgetpu::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::edgetpu::host {

HWY_EXPORT(copy_all_rows);

void copy_rows(std::span<const OutputUnpacker::Rows> rows, Bytes wire, MutableBytes tensor,
               std::uint64_t flip) {
    HWY_DYNAMIC_DISPATCH(copy_all_rows)(rows, wire, tensor, flip);
}

}  // namespace reef::edgetpu::host
#endif  // HWY_ONCE
