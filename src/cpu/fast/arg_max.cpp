#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/arg_max.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "base/worker_pool.h"
#include "cpu/prepare/arg_max.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Index of the first largest of `length` bytes; `flip` (0x80 for int8) makes them unsigned.
/// value * 256 + (255 - index) is largest exactly there. `ranks` holds 255 - index.
HWY_INLINE std::size_t first_largest(const std::uint8_t* HWY_RESTRICT in, std::size_t length,
                                     std::uint16_t flip, const std::uint16_t* HWY_RESTRICT ranks) {
    // Half a register of 16-bit lanes suits the class counts of segmentation networks.
    const hn::CappedTag<std::uint16_t, 8> d;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    if (length < lanes) {
        std::size_t largest = 0;
        for (std::size_t i = 1; i < length; ++i)
            if ((in[i] ^ flip) > (in[largest] ^ flip)) largest = i;
        return largest;
    }
    const auto flips = hn::Set(d, flip);
    const auto keys_at = [&](std::size_t i) HWY_ATTR {
        const auto values = hn::Xor(hn::PromoteTo(d, hn::LoadU(d8, in + i)), flips);
        return hn::Or(hn::ShiftLeft<8>(values), hn::LoadU(d, ranks + i));
    };
    auto keys = keys_at(length - lanes);
    for (std::size_t i = 0; i + lanes < length; i += lanes) keys = hn::Max(keys, keys_at(i));
    return 255U - (hn::GetLane(hn::MaxOfLanes(d, keys)) & 0xFFU);
}

template <typename Index>
HWY_INLINE void arg_max(const std::uint8_t* HWY_RESTRICT in, std::size_t rows, std::size_t length,
                        std::uint16_t flip, const std::uint16_t* HWY_RESTRICT ranks,
                        Index* HWY_RESTRICT out) {
    for (std::size_t i = 0; i < rows; ++i)
        out[i] = static_cast<Index>(first_largest(in + i * length, length, flip, ranks));
}

void arg_max_i32(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                 const std::uint16_t* ranks, std::int32_t* out) {
    arg_max(in, rows, length, flip, ranks, out);
}
void arg_max_i64(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                 const std::uint16_t* ranks, std::int64_t* out) {
    arg_max(in, rows, length, flip, ranks, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>

namespace reef::cpu {
namespace {

HWY_EXPORT(arg_max_i32);
HWY_EXPORT(arg_max_i64);

constexpr auto ranks = [] {
    std::array<std::uint16_t, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint16_t>(255 - i);
    return table;
}();

void arg_max_fast(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                  std::int32_t* out) {
    HWY_DYNAMIC_DISPATCH(arg_max_i32)(in, rows, length, flip, ranks.data(), out);
}
void arg_max_fast(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                  std::int64_t* out) {
    HWY_DYNAMIC_DISPATCH(arg_max_i64)(in, rows, length, flip, ranks.data(), out);
}

template <typename Index>
class FastArgMax final : public Kernel {
  public:
    FastArgMax(const ArgMaxShape& shape, ElementType type)
        : shape_(shape), flip_(type == ElementType::int8 ? 0x80 : 0) {}

    [[nodiscard]] std::string name() const override {
        return "arg_max fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        frame.pool.parallel_for(
            shape_.outer, 1024, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                arg_max_fast(frame.in<std::uint8_t>(0) + begin * shape_.length, end - begin,
                             shape_.length, flip_, frame.out<Index>(0) + begin);
            });
        return {};
    }

  private:
    ArgMaxShape shape_;
    std::uint16_t flip_;
};

}  // namespace

std::unique_ptr<Kernel> fast_arg_max(const ArgMaxShape& shape, ElementType type,
                                     ElementType index_type) {
    if (index_type == ElementType::int64)
        return std::make_unique<FastArgMax<std::int64_t>>(shape, type);
    return std::make_unique<FastArgMax<std::int32_t>>(shape, type);
}

}  // namespace reef::cpu
#endif
