// One convolution, depthwise, transposed or matrix product with everything that decides its
// arithmetic, through both kernel sets.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/arithmetic.h"
#include "cpu/prepare/kernels.h"
#include "reef/model/builder.h"

namespace reef::cpu::one_convolution {

using model::Op;

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::int32_t between(std::int32_t low, std::int32_t high) {
        return std::uniform_int_distribution<std::int32_t>(low, high)(engine_);
    }
    bool chance(int percent) { return between(0, 99) < percent; }
    template <typename T>
    T one_of(std::initializer_list<T> values) {
        return *(values.begin() + between(0, static_cast<std::int32_t>(values.size()) - 1));
    }
    /// Spread over powers of two.
    float scale(int low_exponent, int high_exponent) {
        return std::ldexp(static_cast<float>(between(1 << 10, 1 << 11)) / (1 << 10),
                          between(low_exponent, high_exponent));
    }
    /// A fifth of the time extremes only, which reach the ends of the sums.
    std::vector<std::uint8_t> bytes(std::size_t count) {
        std::vector<std::uint8_t> result(count);
        const bool extremes = chance(20);
        for (std::uint8_t& value : result)
            value = extremes ? one_of<std::uint8_t>({0, 0x7F, 0x80, 0xFF})
                             : static_cast<std::uint8_t>(between(0, 255));
        return result;
    }

  private:
    std::mt19937_64 engine_;
};

/// One operator with everything that decides its arithmetic.
struct Case {
    Op op = Op::conv_2d;
    ElementType type = ElementType::uint8;
    std::vector<std::int32_t> input;
    std::vector<std::int32_t> filter;
    std::vector<std::int32_t> output;
    model::Options options;
    std::vector<float> weight_scales;
    std::int64_t input_zero = 0;
    std::int64_t weight_zero = 0;
    std::int64_t output_zero = 0;
    float input_scale = 1;
    float output_scale = 1;
    bool with_bias = true;
    /// In a thousand weights, of any value; the others are within 50 of the middle of their type.
    int any_weights = 1000;
    std::uint64_t seed = 0;

    [[nodiscard]] std::string text() const;
};

[[nodiscard]] model::Model build(const Case& c);

struct KernelChoice {
    KernelSet kernels = KernelSet::fast;
    const Arithmetic* arithmetic = nullptr;
    int threads = 1;
    [[nodiscard]] PrepareOptions options() const {
        return {.kernels = kernels, .threads = threads};
    }
};

[[nodiscard]] PreparedKernel prepare(const model::Model& model, const KernelChoice& options);
/// The output's bytes.
[[nodiscard]] std::vector<std::byte> run(const model::Model& model,
                                         std::span<const std::uint8_t> input,
                                         const KernelChoice& options, WorkerPool& pool);

/// Both kernels on every target, with one thread and with two.
void compare_kernels(const Case& c, const Arithmetic* arithmetic);

}  // namespace reef::cpu::one_convolution
