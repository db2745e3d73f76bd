// Kernels that g++ 12 would leave with the vectors' upper halves in use.
#include "support/upper_halves.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cpu/reference/add.h"
#include "cpu/reference/mul.h"
#include "cpu/simd_targets.h"

namespace reef::cpu {
namespace {

constexpr std::array<std::size_t, 4> counts = {1, 20, 64, 1000};

template <typename T>
class UpperHalves : public testing::Test {
  protected:
    void SetUp() override {
        if (!test::processor_tells_upper_halves())
            GTEST_SKIP() << "this processor does not tell whether upper halves are in use";
    }
    /// Calls kernel(a, b, out, count) on every target, of values that are sure and of such that are
    /// not, and of too few for a vector.
    void expect_clear(const auto& kernel) {
        test::on_every_target([&] {
            for (const int step : {0, 1, 37})
                for (const std::size_t count : counts) {
                    for (std::size_t i = 0; i < a_.size(); ++i)
                        a_[i] = b_[i] = static_cast<T>(static_cast<int>(i) * step);
                    EXPECT_FALSE(test::leaves_upper_halves([&] {
                        kernel(a_.data(), b_.data(), out_.data(), count);
                    })) << count
                        << " values, step " << step;
                }
        });
    }

    static constexpr ClampRange clamp{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};

  private:
    std::array<T, counts.back()> a_{}, b_{}, out_{};
};

using Types = testing::Types<std::uint8_t, std::int8_t>;
TYPED_TEST_SUITE(UpperHalves, Types);

TYPED_TEST(UpperHalves, OfAddAreClearBehindIt) {
    for (const double scale : {0.5, 0.31}) {
        const SumParameters p{
            .zero_a = 3,
            .zero_b = 5,
            .zero_out = 7,
            .a = quantize_multiplier(0.5),
            .b = quantize_multiplier(scale),
            .out = quantize_multiplier(std::ldexp(1.3, -SumParameters::spare_bits)),
            .clamp = this->clamp};
        const FastSum sum{p, in_fixed_point(p, std::numeric_limits<TypeParam>::min())};
        this->expect_clear([&](const auto* a, const auto* b, auto* out, std::size_t count) {
            add_run_fast(a, 1, b, 1, out, count, sum);
        });
    }
}

TYPED_TEST(UpperHalves, OfMulAreClearBehindIt) {
    const ProductParameters p{.zero_a = 3,
                              .zero_b = 5,
                              .zero_out = 7,
                              .multiplier = quantize_multiplier(0.0117),
                              .clamp = this->clamp};
    const FastProduct product{p, in_float(p)};
    this->expect_clear([&](const auto* a, const auto* b, auto* out, std::size_t count) {
        mul_run_fast(a, 1, b, 1, out, count, product);
    });
}

}  // namespace
}  // namespace reef::cpu
