// A table of 256 bytes in registers, where the machine can look up 64 of its bytes at once. Include
// it per target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_BYTES_256_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_BYTES_256_INL_H
#undef REEF_CPU_FAST_BYTES_256_INL_H
#else
#define REEF_CPU_FAST_BYTES_256_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3_DL

class Bytes256 {
  public:
    static constexpr std::size_t vector = 64;
    using D = hn::CappedTag<std::uint8_t, vector>;
    using V = hn::Vec<D>;

    HWY_INLINE explicit Bytes256(const std::uint8_t* table)
        : t0_(hn::LoadU(D(), table)),
          t1_(hn::LoadU(D(), table + vector)),
          t2_(hn::LoadU(D(), table + 2 * vector)),
          t3_(hn::LoadU(D(), table + 3 * vector)) {}

    HWY_INLINE V operator[](V index) const {
        const hn::RebindToSigned<D> d;
        const auto of = [&](V low, V high)
                            HWY_ATTR { return hn::BitCast(d, of_128(low, high, index)); };
        // Of the highest bit a mask comes without a comparison.
        return hn::BitCast(
            D(), hn::IfNegativeThenElse(hn::BitCast(d, index), of(t2_, t3_), of(t0_, t1_)));
    }

  private:
    /// Of the 128 bytes in `low` and `high`, those that the lower seven bits of each index name.
    /// Highway has no such instruction; its target has been checked for it (VBMI).
    static HWY_INLINE V of_128(V low, V high, V index) {
        asm("vpermi2b %2, %1, %0" : "+v"(index.raw) : "v"(low.raw), "v"(high.raw));
        return index;
    }

    V t0_, t1_, t2_, t3_;
};

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
