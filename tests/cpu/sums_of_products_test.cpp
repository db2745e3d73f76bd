// The instructions for sums of products of pairs and of bytes against such sums lane by lane.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/sums_of_products_test.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "base/sums_of_products-inl.h"
#include "cpu/simd_targets.h"

#ifndef REEF_BYTE_PRODUCTS_TEST
#define REEF_BYTE_PRODUCTS_TEST
namespace reef {

/// As many as vectors of the target have, at most.
struct Products {
    std::array<std::uint8_t, 64> a{};
    std::array<std::uint8_t, 64> b{};
    std::array<std::int32_t, 16> sums{};
};

}  // namespace reef
#endif

HWY_BEFORE_NAMESPACE();
namespace reef::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

constexpr bool has_quad_products = false;
constexpr bool has_bounded_quad_products = false;
constexpr bool has_signed_pair_products = false;
constexpr bool has_widening_products = false;
constexpr bool may_have_signed_quad_products = false;
std::size_t add_pairs(Products&) {
    return 0;
}
std::size_t add_signed_pairs(Products&) {
    return 0;
}
std::size_t add_widened(Products&) {
    return 0;
}
std::size_t add_quads(Products&) {
    return 0;
}
std::size_t add_bounded_quads(Products&, bool) {
    return 0;
}
std::size_t add_matrices(Products&) {
    return 0;
}

#else
namespace hn = hwy::HWY_NAMESPACE;
namespace {

/// add(d, a, b, sums) on one vector; returns its lanes.
template <class Add>
std::size_t with_vectors(Products& p, const Add& add) {
    const hn::ScalableTag<std::int32_t> d;
    const hn::Repartition<std::uint8_t, decltype(d)> d8;
    const auto a = hn::BitCast(d, hn::LoadU(d8, p.a.data()));
    const auto b = hn::BitCast(d, hn::LoadU(d8, p.b.data()));
    hn::StoreU(add(d, a, b, hn::LoadU(d, p.sums.data())), d, p.sums.data());
    return hn::Lanes(d);
}

}  // namespace

/// Adds the products of pairs of 16-bit numbers to `p`, and returns the lanes.
std::size_t add_pairs(Products& p) {
    return with_vectors(p, [](auto d, auto a, auto b, auto sums) HWY_ATTR {
        const hn::Repartition<std::int16_t, decltype(d)> d16;
        return add_pair_products(d, hn::BitCast(d16, a), hn::BitCast(d16, b), sums);
    });
}

/// The same of pairs of signed bytes, of which half a vector is read.
std::size_t add_signed_pairs([[maybe_unused]] Products& p) {
    if constexpr (has_signed_pair_products) {
        const hn::ScalableTag<std::int32_t> d;
        const hn::Half<hn::Repartition<std::int8_t, decltype(d)> > d8;
        const auto a = hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(p.a.data()));
        const auto b = hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(p.b.data()));
        hn::StoreU(add_signed_pair_products(d, a, b, hn::LoadU(d, p.sums.data())), d,
                   p.sums.data());
        return hn::Lanes(d);
    }
    return 0;
}

/// The same of single 16-bit numbers: twice as many sums as a vector has.
std::size_t add_widened([[maybe_unused]] Products& p) {
    if constexpr (has_widening_products) {
        const hn::ScalableTag<std::int32_t> d;
        const hn::Repartition<std::int16_t, decltype(d)> d16;
        const std::size_t half = hn::Lanes(d);
        const auto a = hn::LoadU(d16, reinterpret_cast<const std::int16_t*>(p.a.data()));
        const auto b = hn::LoadU(d16, reinterpret_cast<const std::int16_t*>(p.b.data()));
        auto lo = hn::LoadU(d, p.sums.data()), hi = hn::LoadU(d, p.sums.data() + half);
        add_widening_products(a, b, lo, hi);
        hn::StoreU(lo, d, p.sums.data());
        hn::StoreU(hi, d, p.sums.data() + half);
        return 2 * half;
    }
    return 0;
}

/// Adds the products of fours to `p`, and returns the lanes; 0 without such an instruction.
std::size_t add_quads([[maybe_unused]] Products& p) {
    if constexpr (may_have_signed_quad_products) {
        if (byte_products() != ByteProducts::none)
            return with_vectors(p, [](auto d, auto a, auto b, auto sums) HWY_ATTR {
                return add_signed_quad_products(d, a, b, sums);
            });
    }
    if constexpr (may_have_quad_products) {
        if (has_quad_products || byte_products() != ByteProducts::none)
            return with_vectors(p, [](auto d, auto a, auto b, auto sums)
                                       HWY_ATTR { return add_quad_products(d, a, b, sums); });
    }
    return 0;
}

/// Fours in pairs that are added to 16 bits; of any bytes with `undivided`.
std::size_t add_bounded_quads([[maybe_unused]] Products& p, [[maybe_unused]] bool undivided) {
    if constexpr (has_bounded_quad_products)
        return with_vectors(p, [&](auto d, auto a, auto b, auto sums) HWY_ATTR {
            return undivided ? add_undivided_quad_products(d, a, b, sums)
                             : add_bounded_quad_products(d, a, b, sums);
        });
    return 0;
}

/// The same of 2 x 8 and 8 x 2.
std::size_t add_matrices([[maybe_unused]] Products& p) {
    if constexpr (may_have_matrix_products) {
        if (byte_products() == ByteProducts::matrix)
            return with_vectors(p, [](auto d, auto a, auto b, auto sums)
                                       HWY_ATTR { return add_matrix_products(d, a, b, sums); });
    }
    return 0;
}

#endif

/// Whether the target alone promises products of fours.
bool promises_quads() {
    return has_quad_products;
}

bool promises_bounded_quads() {
    return has_bounded_quad_products;
}

bool promises_signed_pairs() {
    return has_signed_pair_products;
}

bool promises_widened() {
    return has_widening_products;
}

/// Whether the bytes of `a` are signed in fours.
bool has_signed_quads() {
    return may_have_signed_quad_products;
}

}  // namespace reef::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef {
namespace {

HWY_EXPORT(add_pairs);
HWY_EXPORT(add_signed_pairs);
HWY_EXPORT(promises_signed_pairs);
HWY_EXPORT(add_widened);
HWY_EXPORT(promises_widened);
HWY_EXPORT(add_quads);
HWY_EXPORT(promises_quads);
HWY_EXPORT(has_signed_quads);
HWY_EXPORT(add_bounded_quads);
HWY_EXPORT(promises_bounded_quads);
HWY_EXPORT(add_matrices);

/// Half of them of extremes, and sums that go around.
Products random_products(std::mt19937& random, int round) {
    constexpr std::array<std::uint8_t, 4> ends{0x80, 0x7F, 0xFF, 0};
    Products p;
    const auto byte = [&] {
        return round % 2 == 0 ? static_cast<std::uint8_t>(random()) : ends[random() % 4];
    };
    for (std::uint8_t& value : p.a) value = byte();
    for (std::uint8_t& value : p.b) value = byte();
    for (std::int32_t& sum : p.sums) sum = static_cast<std::int32_t>(random());
    if (round % 3 == 0) p.sums.fill(round % 6 == 0 ? INT32_MAX : INT32_MIN);
    return p;
}

std::int32_t plus_products(std::int32_t sum, std::span<const std::uint8_t> a, bool a_is_signed,
                           std::span<const std::uint8_t> b) {
    auto total = static_cast<std::uint32_t>(sum);
    for (std::size_t i = 0; i < a.size(); ++i) {
        const int left = a_is_signed ? static_cast<std::int8_t>(a[i]) : a[i];
        total += static_cast<std::uint32_t>(left * static_cast<std::int8_t>(b[i]));
    }
    return static_cast<std::int32_t>(total);
}

constexpr int rounds = 1000;

/// The forms that have products of fours, as the machine says, whatever the library makes of it.
std::vector<std::string> quads_of_machine() {
    std::vector<std::string> names;
#if defined(__x86_64__)
    [[maybe_unused]] constexpr unsigned avx_vnni = 1U << 4, avx512_vl = 1U << 31,
                                        avx512_vnni = 1U << 11;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if ((hwy::SupportedTargets() & HWY_AVX3_DL) != 0) names.emplace_back("AVX3_DL");
#if defined(REEF_AVX_VNNI_BY_AVX512)
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & avx512_vl) != 0 &&
        (c & avx512_vnni) != 0)
        names.emplace_back("AVX2_VNNI");
#else
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & avx_vnni) != 0)
        names.emplace_back("AVX2_VNNI");
#endif
#elif defined(__aarch64__) && defined(__linux__)
    if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) names.emplace_back("NEON_DOTPROD");
    if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) names.emplace_back("NEON_I8MM");
#endif
    return names;
}

bool machine_has_matrix_products() {
#if defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#else
    return false;
#endif
}

/// Of 16-bit numbers, so many in a lane.
std::int32_t plus_words(std::int32_t sum, const Products& p, std::size_t lane, std::size_t words) {
    auto total = static_cast<std::uint32_t>(sum);
    for (std::size_t i = 2 * words * lane; i < 2 * words * (lane + 1); i += 2) {
        const auto number = [i](const auto& bytes) {
            return static_cast<std::int16_t>(bytes[i] | bytes[i + 1] << 8);
        };
        total += static_cast<std::uint32_t>(number(p.a) * number(p.b));
    }
    return static_cast<std::int32_t>(total);
}

TEST(SumsOfProducts, OfPairsAreTheirSums) {
    std::mt19937 random(3);
    test::on_every_target([&] {
        const bool has_vectors = cpu::simd_target() != "SCALAR";
        for (int round = 0; round < rounds; ++round) {
            const Products p = random_products(random, round);
            Products sums = p;
            const std::size_t lanes = HWY_DYNAMIC_DISPATCH(add_pairs)(sums);
            ASSERT_EQ(lanes != 0, has_vectors);
            for (std::size_t lane = 0; lane < lanes; ++lane)
                ASSERT_EQ(sums.sums[lane], plus_words(p.sums[lane], p, lane, 2));
        }
    });
}

TEST(SumsOfProducts, OfSingleNumbersAreTheirSums) {
    std::mt19937 random(7);
    test::on_every_target([&] {
        for (int round = 0; round < rounds; ++round) {
            const Products p = random_products(random, round);
            Products sums = p;
            const std::size_t lanes = HWY_DYNAMIC_DISPATCH(add_widened)(sums);
            ASSERT_EQ(lanes != 0, HWY_DYNAMIC_DISPATCH(promises_widened)());
            for (std::size_t lane = 0; lane < lanes; ++lane)
                ASSERT_EQ(sums.sums[lane], plus_words(p.sums[lane], p, lane, 1));
        }
    });
}

TEST(SumsOfProducts, OfFoursInPairsOf16BitsAreTheirSums) {
    std::mt19937 random(6);
    test::on_every_target([&] {
        for (int round = 0; round < rounds; ++round) {
            const bool undivided = round % 2 == 0;
            Products p = random_products(random, round / 2);
            for (std::size_t i = 0; i < p.b.size() && !undivided; i += 2) {
                const int first = static_cast<std::int8_t>(p.b[i]);
                const int second = static_cast<std::int8_t>(p.b[i + 1]);
                if (std::abs(first + second) <= 128) continue;
                p.b[i] = static_cast<std::uint8_t>(first / 2);
                p.b[i + 1] = static_cast<std::uint8_t>(second / 2);
            }
            Products sums = p;
            const std::size_t lanes = HWY_DYNAMIC_DISPATCH(add_bounded_quads)(sums, undivided);
            ASSERT_EQ(lanes != 0, HWY_DYNAMIC_DISPATCH(promises_bounded_quads)());
            for (std::size_t lane = 0; lane < lanes; ++lane)
                ASSERT_EQ(sums.sums[lane],
                          plus_products(p.sums[lane], std::span(p.a).subspan(4 * lane, 4), false,
                                        std::span(p.b).subspan(4 * lane, 4)));
        }
    });
}

TEST(SumsOfProducts, OfPairsOfBytesAreTheirSums) {
    std::mt19937 random(4);
    test::on_every_target([&] {
        for (int round = 0; round < rounds; ++round) {
            const Products p = random_products(random, round);
            Products sums = p;
            const std::size_t lanes = HWY_DYNAMIC_DISPATCH(add_signed_pairs)(sums);
            ASSERT_EQ(lanes != 0, HWY_DYNAMIC_DISPATCH(promises_signed_pairs)());
            for (std::size_t lane = 0; lane < lanes; ++lane)
                ASSERT_EQ(sums.sums[lane],
                          plus_products(p.sums[lane], std::span(p.a).subspan(2 * lane, 2), true,
                                        std::span(p.b).subspan(2 * lane, 2)));
        }
    });
}

TEST(SumsOfProducts, OfFoursAreTheirSums) {
    std::mt19937 random(1);
    std::vector<std::string> used;
    test::on_every_target([&] {
        const bool has_quads =
            HWY_DYNAMIC_DISPATCH(promises_quads)() || byte_products() != ByteProducts::none;
        if (has_quads) used.emplace_back(cpu::simd_target());
        for (int round = 0; round < rounds; ++round) {
            const Products p = random_products(random, round);
            Products sums = p;
            const std::size_t lanes = HWY_DYNAMIC_DISPATCH(add_quads)(sums);
            ASSERT_EQ(lanes != 0, has_quads);
            const bool is_signed = HWY_DYNAMIC_DISPATCH(has_signed_quads)();
            for (std::size_t lane = 0; lane < lanes; ++lane)
                ASSERT_EQ(sums.sums[lane],
                          plus_products(p.sums[lane], std::span(p.a).subspan(4 * lane, 4),
                                        is_signed, std::span(p.b).subspan(4 * lane, 4)));
        }
    });
    if (std::getenv("REEF_SIMD") == nullptr) {
        EXPECT_THAT(used, testing::UnorderedElementsAreArray(quads_of_machine()));
    }
    for (const char* form : {"AVX3_DL", "AVX2_VNNI", "NEON_DOTPROD", "NEON_I8MM"})
        if (std::ranges::find(used, form) == used.end())
            fmt::print("products of bytes as {} has them were not run: not on this machine\n",
                       form);
}

TEST(SumsOfProducts, OfMatricesAreTheirSums) {
    std::mt19937 random(2);
    bool used = false;
    test::on_every_target([&] {
        for (int round = 0; round < rounds; ++round) {
            const Products p = random_products(random, round);
            Products sums = p;
            const std::size_t lanes = HWY_DYNAMIC_DISPATCH(add_matrices)(sums);
            ASSERT_EQ(lanes != 0, byte_products() == ByteProducts::matrix);
            used |= lanes != 0;
            for (std::size_t lane = 0; lane < lanes; ++lane)
                ASSERT_EQ(sums.sums[lane],
                          plus_products(p.sums[lane], std::span(p.a).subspan(lane / 2 * 8, 8), true,
                                        std::span(p.b).subspan(lane % 2 * 8, 8)));
        }
    });
    EXPECT_EQ(used, machine_has_matrix_products());
}

}  // namespace
}  // namespace reef
#endif
