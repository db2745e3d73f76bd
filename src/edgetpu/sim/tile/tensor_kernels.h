// Vector kernels of the fast tensor engine: 8-bit activations and 8 or 16-bit parameters as 16-bit
// values without their zero points, multiplied in pairs into 32-bit sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace reef::edgetpu::sim {

/// A vector of activations at most.
inline constexpr std::size_t gathered_bytes = 16;

/// Consecutive bytes of activations, relative to a position's first.
struct InputRun {
    std::int32_t offset = 0;
    std::uint32_t steps = 0;
};

/// How one step's operands lie in memory.
enum class StepForm : std::uint8_t {
    four_bytes,     ///< 4 x 8-bit activations, 4 x 8-bit parameters a lane
    two_halfwords,  ///< 2 x 8-bit activations, 2 x 16-bit parameters a lane
    single_byte,    ///< 1 x 8-bit activation, the byte of the lane that the quarter selects
};
/// 16-bit pairs of a step.
[[nodiscard]] constexpr unsigned pairs_of(StepForm form) {
    return form == StepForm::four_bytes ? 2 : 1;
}

/// From sums to stored values; see requantise.h. An entry for each lane; fewer than 16 are repeated
/// up to there.
struct OutputRows {
    alignas(64) std::int32_t bias[64];  ///< with the start value
    alignas(64) float scale[64];
    float clamp_min = 0;
    float clamp_max = 0;
    std::int32_t zero = 0;
    bool halfwords = false;
};

/// Lanes are 4, 8, 16, 32 or 64 everywhere; rows and weights are aligned to 64 bytes.
struct TensorKernels {
    /// Of each position in narrow memory a row of activations: pairs of each step in order. Rows
    /// are row_size values apart. May read gathered_bytes more, and write twice as many values.
    void (*gather)(const std::uint8_t* narrow, std::span<const std::uint32_t> positions,
                   std::span<const InputRun> runs, StepForm form, std::int32_t zero,
                   std::size_t row_size, std::int16_t* rows);
    /// Parameters of each step: [step][pair][lane][2]. `base` and `parameters`, added: where they
    /// are, four times the wide row, plus the byte of its words where steps are single bytes.
    /// `zero`: a row of 64.
    void (*pack)(const std::uint8_t* wide, std::uint32_t base,
                 std::span<const std::uint32_t> parameters, StepForm form, unsigned lanes,
                 const std::int32_t* zero, std::int16_t* weights);
    /// sums[row][lane] = (or +=) products of `pairs` pairs; rows are row_size values apart.
    void (*multiply)(const std::int16_t* rows, std::size_t row_size, std::size_t count,
                     const std::int16_t* weights, std::size_t pairs, unsigned lanes, bool add,
                     std::int32_t* sums);
    /// count * lanes values; bytes or halfwords. May write 64 bytes more.
    void (*requantise)(const std::int32_t* sums, std::size_t count, unsigned lanes,
                       const OutputRows& stage, std::uint8_t* out);
};

/// Of the best target of this machine that REEF_SIMD allows; null without vectors.
[[nodiscard]] const TensorKernels* tensor_kernels();

}  // namespace reef::edgetpu::sim
