// Networks drawn at random, tensor by tensor against TFLite's kernels.
// REEF_COMPILER_SEEDS networks from REEF_COMPILER_FIRST on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "compare/layer_comparison.h"
#include "compiler/random_network.h"
#include "inputs/drawn_input.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/random_run.h"
#include "support/drawn_seeds.h"

namespace reef {
namespace {

struct Counts {
    std::size_t compiled = 0, refused = 0, tensors = 0, on_chip = 0, left = 0;
};

/// A network that failed, to look at: into the folder REEF_COMPILER_KEEP, if there is one.
void keep(const model::Model& model, const std::string& name) {
    const char* folder = std::getenv("REEF_COMPILER_KEEP");
    if (folder == nullptr) return;
    const auto bytes = model::write_tflite(model);
    ASSERT_TRUE(bytes) << bytes.error().message();
    ASSERT_TRUE(write_file(fmt::format("{}/{}.tflite", folder, name), *bytes));
}

/// What the chip makes of each operator is 1 apart at most from what TFLite's makes of the same
/// values; what it cannot do is left to the CPU.
void compile_and_compare(const model::Model& plain, unsigned seed, Counts& counts) {
    // TFLite's sums wrap around beyond their type, the chip's stay at its ends.
    const auto adds_up = [](const model::Operator& op) {
        return op.code.builtin == model::Op::sum;
    };
    if (std::ranges::any_of(plain.subgraphs[0].operators, adds_up)) return;
    rk3588::Options numbers;
    numbers.cores = static_cast<std::int32_t>(1 + seed % 3);
    numbers.assume_ppu = seed % 4 == 0;
    numbers.assume_nrdma = seed % 5 == 0;
    numbers.assume_round = seed % 7 == 0;
    numbers.assume_lut = seed % 3 != 0;
    numbers.assume_sumlut = seed % 8 < 4;
    numbers.requant =
        seed % 9 == 0 ? rk3588::Options::Requant::exact : rk3588::Options::Requant::tflite;
    const auto compiled = rk3588::compile(plain, numbers, {.keep_islands = seed % 2 == 0});
    if (!compiled) {
        ASSERT_EQ(compiled.error().cause, Cause::unsupported) << compiled.error().message();
        ++counts.refused;
        return;
    }
    ++counts.compiled;
    for (const auto& op : compiled->operators) ++(op.on_chip ? counts.on_chip : counts.left);
    const auto inputs = tool::random_inputs(plain.subgraphs[0], seed);
    ASSERT_TRUE(inputs) << inputs.error().message();
    const auto compared = tool::compare_layers(
        {.compiled = {"compiled", compiled->model}, .plain = {"plain", plain}, .inputs = *inputs});
    ASSERT_TRUE(compared) << compared.error().message();
    counts.tensors += compared->sets.tensors.size();
    for (const auto& tensor : compared->sets.tensors)
        EXPECT_TRUE(tensor.same()) << tensor.name << " " << tensor.problem;
    if (testing::Test::HasFailure()) keep(plain, fmt::format("seed_{}", seed));
}

void compare_networks(model::Model (*draw)(unsigned), unsigned standard) {
    const auto [first, count] = test::drawn_seeds(standard);
    Counts counts;
    for (unsigned seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        compile_and_compare(draw(seed), seed, counts);
    }
    fmt::print(
        "{} networks compiled, {} with nothing for the chip; {} operators on the chip, {} left; "
        "{} tensors equal within 1\n",
        counts.compiled, counts.refused, counts.on_chip, counts.left, counts.tensors);
    EXPECT_GE(counts.on_chip, counts.compiled);
}

TEST(RandomNpuNetworks, AreTflitesWithinOneTensorByTensor) {
    compare_networks(test::random_network, 120);
}
TEST(RandomNpuNetworks, OfSmallImagesAreTflitesWithinOne) {
    compare_networks(test::random_network_of_small_images, 60);
}

/// A chip that writes all planes that its arrays make needs room behind results, and nothing else.
TEST(RandomNpuNetworks, WithRoomForPlanesBehindResultsTheyMayBeWritten) {
    const auto* compiler = runtime::Registry::of_process().part<chip::Compiler>("rk3588");
    const auto [first, count] = test::drawn_seeds(40);
    std::size_t compared = 0, without_room = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const auto plain = test::random_network_of_small_images(seed);
        const auto roomy = compiler->compile(plain, {.settings = {{"assume", "planes"}}});
        if (!roomy) continue;
        const auto want = test::run_on(roomy->model, "rk3588:sim", seed);
        EXPECT_EQ(test::run_on(roomy->model, "rk3588:sim?planes=all", seed), want);
        ++compared;
        const auto tight = compiler->compile(plain, {});
        ASSERT_TRUE(tight);
        const auto there = test::try_run_on(tight->model, "rk3588:sim?planes=all", seed);
        without_room += !there || *there != want ? 1 : 0;
    }
    EXPECT_GT(compared, count / 2);
    EXPECT_GE(10 * without_room, compared);
}

/// A core's share of the rows whose windows lie in padding alone.
TEST(RandomNpuNetworks, SharesOfPaddingAloneAreNoShares) {
    Counts counts;
    compile_and_compare(test::random_network(3851), 3851, counts);
    compile_and_compare(test::random_network_of_small_images(2849), 2849, counts);
    EXPECT_EQ(counts.compiled, 2U);
}

}  // namespace
}  // namespace reef
