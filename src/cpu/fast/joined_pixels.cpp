#include "cpu/fast/joined_pixels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpu/fast/pixel_rows.h"

namespace reef::cpu {
namespace {

/// The same values behind each other, `times` times.
template <typename T>
void repeat(std::vector<T>& values, std::int64_t times) {
    const auto count = static_cast<std::ptrdiff_t>(values.size());
    values.resize(values.size() * static_cast<std::size_t>(times));
    for (auto to = values.begin() + count; to != values.end(); to += count)
        std::copy_n(values.begin(), count, to);
}

/// Where each pixel is one of the input's, rows of the image follow each other.
Convolution in_one_row(Convolution c) {
    if (!reads_in_order(c)) return c;
    const std::int64_t pixels = c.pixels();
    c.batch = 1;
    c.h = {};
    c.w = {.in = pixels, .out = pixels};
    return c;
}

std::int64_t joined_taps(const WindowAxis& axis, std::int64_t pixels) {
    return (pixels - 1) * axis.stride + axis.taps;
}

/// What a pixel takes that is joined of `pixels`, in instructions: to gather a window and to start
/// its sums, for each vector of them products and an output stage. Fitted to eight shapes of
/// bench/byte_bench.cpp on AVX-512; of ten others, none was slower there or with AVX2 by more than
/// the noise, and eight and five were faster. No ARM machine has timed it. Packed weights count as
/// well, for they are to stay in the first-level cache and about as large as the file's: at 16 KiB
/// the double.
double cost(const Convolution& c, std::int64_t pixels, GroupOf group, std::size_t widest) {
    constexpr double to_gather = 30, to_read = 10, of_a_stage = 12, many_bytes = 16384;
    const PackedMatrix matrix = lay_out_matrix(c, group, widest);
    const std::size_t vector = widest / 2;
    std::size_t vectors = 0;
    for (const ChannelBlock& block : matrix.blocks) vectors += (block.width + vector - 1) / vector;
    const double instructions =
        (reads_in_order(c) ? to_read : to_gather) +
        static_cast<double>(vectors) * (static_cast<double>(matrix.groups) + of_a_stage);
    return instructions / static_cast<double>(pixels) *
           (1 + static_cast<double>(matrix.packed_bytes()) / many_bytes);
}

bool can_be_joined(const Convolution& c, std::int64_t pixels) {
    const WindowAxis& w = c.w;
    // Apart, windows would have less in common than the joined one reads in vain.
    return w.out % pixels == 0 && w.stride <= w.taps && (w.dilation == 1 || w.taps == 1);
}

/// Which are no products of lanes, but sums over them: of zeros, where pixels are joined.
bool has_whole_rows(const Convolution& c, GroupOf group, std::size_t widest) {
    const PackedMatrix matrix = lay_out_matrix(c, group, widest);
    return matrix.has_whole_rows(matrix.blocks.back());
}

}  // namespace

std::int64_t pixels_to_join(const Convolution& c, GroupOf group, std::size_t widest) {
    const auto channels = static_cast<std::size_t>(c.out_channels);
    if (c.pixels() == 0 || c.depth == 0 || channels == 0 || channels > widest) return 1;
    // Float32 sums would get products of 0 and infinity, or other rows' scales.
    if (c.floats || c.groups() != 1 || group == GroupOf::floats) return 1;
    if (has_whole_rows(c, group, widest)) return 1;
    constexpr double worth = 0.9;
    const Convolution in_row = in_one_row(c);
    std::int64_t best = 1;
    double least = worth * cost(c, 1, group, widest);
    for (std::int64_t n = 2; static_cast<std::size_t>(n) * channels <= 2 * widest; ++n) {
        if (!can_be_joined(in_row, n)) continue;
        const Convolution all = joined(c, n);
        const double of_each = cost(all, n, group, widest);
        if (of_each >= least || has_whole_rows(all, group, widest)) continue;
        least = of_each;
        best = n;
    }
    return best;
}

Convolution joined(Convolution c, std::int64_t pixels) {
    if (pixels == 1) return c;
    c = in_one_row(std::move(c));
    c.out_channels *= pixels;
    if (reads_in_order(c)) {
        // Their channels follow each other, so that one tap has them all.
        c.w.in = c.w.out = c.w.out / pixels;
        c.in_channels *= pixels;
        c.depth *= pixels;
    } else {
        c.w.out /= pixels;
        c.w.taps = joined_taps(c.w, pixels);
        c.w.stride *= pixels;
        c.w.dilation = 1;
    }
    repeat(c.bias, pixels);
    repeat(c.multipliers, pixels);
    if (c.float_stage) repeat(c.float_stage->scales, pixels);
    return c;
}

SharedBytes joined_weights(const Convolution& c, std::int64_t pixels) {
    const std::int64_t window = c.w.taps * c.depth;
    const std::int64_t joined_window = joined_taps(c.w, pixels) * c.depth;
    std::vector<std::byte> all(
        static_cast<std::size_t>(pixels * c.out_channels * c.h.taps * joined_window),
        static_cast<std::byte>(c.weight_zero));
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        for (std::int64_t row = 0; row < c.out_channels * c.h.taps; ++row) {
            const std::int64_t to = (pixel * c.out_channels * c.h.taps + row) * joined_window +
                                    pixel * c.w.stride * c.depth;
            std::ranges::copy(c.weights.view().subspan(static_cast<std::size_t>(row * window),
                                                       static_cast<std::size_t>(window)),
                              all.begin() + to);
        }
    }
    return SharedBytes::copy_of(all);
}

}  // namespace reef::cpu
