// Convolutions drawn at random, with one rounding, against requantisation in floating point.
// REEF_RK3588_CONVOLUTIONS: how many of each kind (default 60).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "reef/runtime/session.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/random_run.h"
#include "rk3588/compiler/small_models.h"

namespace reef {
namespace {

using test::RandomConvolution;

std::int32_t stored(std::byte b, bool is_unsigned) {
    const auto u = static_cast<std::uint8_t>(b);
    return is_unsigned ? int{u} : int{static_cast<std::int8_t>(u)};
}

std::int64_t sum_of(const RandomConvolution& c, Bytes input, std::int32_t y, std::int32_t x,
                    std::int32_t out) {
    std::int64_t sum = c.biases[static_cast<std::size_t>(out)];
    for (std::int32_t ky = 0; ky < c.kernel_h; ++ky)
        for (std::int32_t kx = 0; kx < c.kernel_w; ++kx) {
            const std::int32_t iy = y * c.stride - c.top + ky * c.dilation;
            const std::int32_t ix = x * c.stride - c.left + kx * c.dilation;
            if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width) continue;
            const std::int32_t first =
                c.depthwise ? out : out / (c.out_channels / c.groups) * c.seen();
            for (std::int32_t i = first; i < first + c.seen(); ++i) {
                const auto at = static_cast<std::size_t>((iy * c.width + ix) * c.channels + i);
                const std::int32_t tap = ky * c.kernel_w + kx;
                const auto w = static_cast<std::size_t>(
                    c.depthwise ? tap * c.channels + out
                                : (out * c.kernel_h * c.kernel_w + tap) * c.seen() + i - first);
                sum += std::int64_t{stored(input[at], c.is_unsigned) - c.input_zero} *
                       (c.weights[w] - c.weight_zero);
            }
        }
    return sum;
}

struct Share {
    std::uint64_t equal = 0, all = 0, refused = 0;
    std::int32_t most = 0;
};

void compare(const RandomConvolution& c, unsigned seed, Share& share) {
    rk3588::Options numbers;
    numbers.requant = rk3588::Options::Requant::exact;
    const auto compiled = rk3588::compile(c.model, numbers, {});
    if (!compiled) {
        ++share.refused;
        fmt::print("seed {}: {}\n", seed, compiled.error().message());
        ASSERT_EQ(compiled.error().cause, Cause::unsupported) << compiled.error().message();
        return;
    }
    const auto artifact = test::programs_of(compiled->model).at(0);
    test::ChipMemory chip(artifact);
    std::mt19937 random(seed);
    std::vector<std::byte> input(artifact.inputs[0].elements());
    for (std::byte& b : input) b = static_cast<std::byte>(random());
    chip.write(artifact.inputs[0], input);
    const auto done = chip.run(artifact.operators[0]);
    ASSERT_TRUE(done) << seed << ": " << done.error().message();
    const auto got = chip.read(artifact.outputs[0]);
    std::size_t at = 0;
    for (std::int32_t y = 0; y < c.out_height; ++y)
        for (std::int32_t x = 0; x < c.out_width; ++x)
            for (std::int32_t o = 0; o < c.out_channels; ++o, ++at) {
                const double exact = std::nearbyint(static_cast<double>(sum_of(c, input, y, x, o)) *
                                                    c.multipliers[static_cast<std::size_t>(o)]);
                const auto want = static_cast<std::int32_t>(
                    std::clamp<double>(exact + c.output_zero, c.low, std::max(c.low, c.high)));
                const std::int32_t off = std::abs(stored(got[at], c.is_unsigned) - want);
                share.equal += off == 0 ? 1 : 0;
                share.most = std::max(share.most, off);
            }
    share.all += at;
}

void compare_outputs(const RandomConvolution& c, const model::Model& compiled, unsigned seed,
                     Share& share) {
    const auto got = test::run_on(compiled, "rk3588:sim", seed),
               want = test::run_on(c.model, "cpu", seed);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        const std::int32_t off =
            std::abs(stored(got[i], c.is_unsigned) - stored(want[i], c.is_unsigned));
        share.equal += off == 0 ? 1 : 0;
        share.most = std::max(share.most, off);
    }
    share.all += got.size();
}

class RandomConvolutions : public testing::TestWithParam<bool> {};

TEST_P(RandomConvolutions, AreExactButForFewBytes) {
    const char* wanted = std::getenv("REEF_RK3588_CONVOLUTIONS");
    const unsigned count = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 60;
    Share share;
    for (unsigned seed = 1; seed <= count; ++seed)
        compare(test::random_convolution(seed, GetParam()), seed, share);
    fmt::print("{} convolutions, {} refused: {:.4f} % of {} bytes equal, at most {} apart\n", count,
               share.refused,
               100 * static_cast<double>(share.equal) / static_cast<double>(share.all), share.all,
               share.most);
    EXPECT_LE(share.most, 1);
    EXPECT_GE(static_cast<double>(share.equal), 0.999 * static_cast<double>(share.all));
    EXPECT_EQ(share.refused, 0U);
}

/// As programs are compiled unless something else is asked for: against TFLite's kernels, with
/// multipliers of usual and of other sizes, up to some beyond 1.
TEST_P(RandomConvolutions, AreTflitesButForFewBytes) {
    for (const float finer : {1.0F, 60.0F, 400.0F}) {
        Share share;
        double greatest = 0;
        for (unsigned seed = 1; seed <= 40; ++seed) {
            auto c = test::random_convolution(seed, GetParam());
            auto& graph = c.model.subgraphs[0];
            auto& out = graph.tensors[static_cast<std::size_t>(graph.outputs[0])];
            out.quantization->scale[0] /= finer;
            greatest = std::max(greatest, std::ranges::max(c.multipliers) * double{finer});
            const auto compiled = rk3588::compile(c.model, {}, {});
            if (!compiled) {
                ++share.refused;
                ASSERT_EQ(compiled.error().cause, Cause::unsupported) << compiled.error().message();
                continue;
            }
            compare_outputs(c, compiled->model, seed, share);
            if (HasFatalFailure()) return;
        }
        fmt::print(
            "multipliers up to {:.2f}: {} of 40 refused, {:.3f} % of bytes equal, at most {} "
            "apart\n",
            greatest, share.refused,
            100 * static_cast<double>(share.equal) / static_cast<double>(share.all), share.most);
        EXPECT_LE(share.most, 1) << finer;
        EXPECT_GE(static_cast<double>(share.equal), 0.97 * static_cast<double>(share.all)) << finer;
        EXPECT_LT(share.refused, 5U) << finer;
    }
}

// Kernels of 7x7 pixels and 256 channels: the CBUF holds less than 32, and tasks compute 16
// channels each.
TEST_P(RandomConvolutions, OfLargeKernelsAreComputedInParts) {
    Share share;
    for (const unsigned seed : {483U, 853U}) {
        const auto c = test::random_convolution(seed, GetParam());
        const auto compiled = rk3588::compile(c.model, {}, {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        EXPECT_GE(compiled->programs.at(0).tasks, static_cast<std::size_t>(c.out_channels) / 16);
        compare(c, seed, share);
    }
    EXPECT_EQ(share.refused, 0U);
    EXPECT_LE(share.most, 1);
    EXPECT_GE(static_cast<double>(share.equal), 0.998 * static_cast<double>(share.all));
}

/// One converter for all channels: what it cannot express is left to the CPU, by name.
TEST(RandomConvolution, OfScalesFarApartIsOneApartOrRefused) {
    for (const double powers : {2.5, 3.5, 4.5}) {
        Share share;
        for (unsigned seed = 1; seed <= 40; ++seed) {
            const auto c = test::random_convolution_of_wide_scales(seed, powers);
            compare(c, seed, share);
        }
        fmt::print("scales up to 10^{} apart: {} of 40 refused, {:.3f} % of bytes equal\n", powers,
                   share.refused,
                   100 * static_cast<double>(share.equal) / static_cast<double>(share.all));
        EXPECT_LE(share.most, 1) << powers;
        EXPECT_LT(share.refused, 40U) << powers;
    }
}

INSTANTIATE_TEST_SUITE_P(Scales, RandomConvolutions, testing::Bool(),
                         [](const auto& each) { return each.param ? "by_channel" : "by_tensor"; });

}  // namespace
}  // namespace reef
