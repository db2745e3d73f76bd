// Functions of a byte as a table of its 256 results.
#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/byte_table.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/bytes_256-inl.h"
#include "cpu/reference/byte_table.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void flip(const std::uint8_t* HWY_RESTRICT in, std::uint8_t* HWY_RESTRICT out, std::size_t count) {
    const hn::ScalableTag<std::uint8_t> d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(hn::Xor(hn::LoadU(d, in + i), hn::Set(d, 0x80)), d, out + i);
    for (; i < count; ++i) out[i] = in[i] ^ 0x80;
}

#if HWY_TARGET == HWY_AVX3_DL

void look_up(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out,
             std::size_t count) {
    const hn::CappedTag<std::uint8_t, Bytes256::vector> d;
    const Bytes256 bytes(table);
    std::size_t i = 0;
    for (; i + Bytes256::vector <= count; i += Bytes256::vector)
        hn::StoreU(bytes[hn::LoadU(d, in + i)], d, out + i);
    for (; i < count; ++i) out[i] = table[in[i]];
}

#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Shuffles look at an index's lower four bits and give 0 where its highest one is set. Each block
/// of 16 results but the first of a half is kept as what it differs in from the block before: those
/// up to an index's own add up to its result, and in those above the index lies below their first
/// position, which makes it negative. With vectors of 16 bytes it takes as long as the loop below.
void look_up(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out,
             std::size_t count) {
    constexpr std::size_t block = 16, half = 128;
    const hn::ScalableTag<std::uint8_t> d;
    const hn::RebindToSigned<decltype(d)> signed_d;
    const hn::Full128<std::uint8_t> block_d;
    const std::size_t lanes = hn::Lanes(d);
    HWY_ALIGN std::uint8_t differences[2 * half];
    for (std::size_t at = 0; at < 2 * half; at += block) {
        const auto own = hn::LoadU(block_d, table + at);
        const bool first = at % half == 0;
        hn::Store(first ? own : hn::Xor(own, hn::LoadU(block_d, table + at - block)), block_d,
                  differences + at);
    }
    const auto results = [&](hn::Vec<decltype(d)> index) HWY_ATTR {
        const auto step = hn::Set(signed_d, block);
        auto low = hn::BitCast(signed_d, index);
        auto high = hn::BitCast(signed_d, hn::Xor(index, hn::Set(d, half)));
        auto result = hn::Zero(d);
        REEF_UNROLL
        for (std::size_t at = 0; at < half; at += block) {
            const auto below = hn::LoadDup128(d, differences + at);
            const auto above = hn::LoadDup128(d, differences + half + at);
            result = hn::Xor(result, hn::Xor(hn::TableLookupBytes(below, hn::BitCast(d, low)),
                                             hn::TableLookupBytes(above, hn::BitCast(d, high))));
            low = hn::SaturatedSub(low, step);
            high = hn::SaturatedSub(high, step);
        }
        return result;
    };
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(results(hn::LoadU(d, in + i)), d, out + i);
    for (; i < count; ++i) out[i] = table[in[i]];
}

#else

void look_up(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out,
             std::size_t count) {
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const std::uint8_t a = table[in[i]], b = table[in[i + 1]];
        const std::uint8_t c = table[in[i + 2]], e = table[in[i + 3]];
        out[i] = a;
        out[i + 1] = b;
        out[i + 2] = c;
        out[i + 3] = e;
    }
    for (; i < count; ++i) out[i] = table[in[i]];
}

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(flip);
HWY_EXPORT(look_up);

void flip_high_bits(const std::uint8_t* in, std::uint8_t* out, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(flip)(in, out, count);
}

void look_up_bytes(const ByteTable& table, const std::uint8_t* in, std::uint8_t* out,
                   std::size_t count) {
    HWY_DYNAMIC_DISPATCH(look_up)(table.data(), in, out, count);
}

}  // namespace reef::cpu
#endif
