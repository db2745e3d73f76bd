// Compiled programs in any order of the chip's engines: the same bytes, and no deadlock.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "compiler/random_network.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/estimate.h"
#include "reef/runtime/session.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef {
namespace {

unsigned seeds_asked(unsigned standard) {
    const char* text = std::getenv("REEF_SEEDS");
    return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : standard;
}

std::vector<std::vector<std::byte>> outputs_in_order(const model::Model& compiled,
                                                     std::vector<runtime::Option> options) {
    std::vector<std::vector<std::byte>> out;
    auto session = runtime::Session::open(
        compiled, {.devices = {runtime::DeviceChoice("edgetpu:sim", std::move(options))}});
    EXPECT_TRUE(session) << session.error().message();
    if (!session) return out;
    std::mt19937 random(5);
    for (std::size_t i = 0; i < session->input_count(); ++i)
        for (std::byte& b : session->input(i)) b = static_cast<std::byte>(random());
    const auto done = session->run();
    EXPECT_TRUE(done) << done.error().message();
    for (std::size_t i = 0; done && i < session->output_count(); ++i)
        out.emplace_back(session->output(i).begin(), session->output(i).end());
    return out;
}

void expect_any_order(const model::Model& plain, const edgetpu::CompileOptions& options,
                      unsigned seeds) {
    const auto compiled = edgetpu::compile(plain, options);
    ASSERT_TRUE(compiled) << compiled.error().message();
    const auto fixed = outputs_in_order(compiled->model, {});
    ASSERT_FALSE(fixed.empty());
    for (unsigned seed = 1; seed <= seeds; ++seed)
        ASSERT_EQ(
            outputs_in_order(compiled->model, {{"random_seed", static_cast<std::int64_t>(seed)}}),
            fixed)
            << "seed " << seed;
}

TEST(CompiledOrder, OfANetworkInBandsMayBeAny) {
    for (unsigned network = 1; network <= 12; ++network) {
        const auto plain = test::random_network(network);
        const auto whole = edgetpu::compile(plain, {});
        if (!whole) continue;
        const std::size_t most = whole->programs.front().narrow_bytes * 3 / 4;
        const auto banded = edgetpu::compile(plain, {.most_activation_bytes = most});
        if (!banded) continue;
        expect_any_order(plain, {.most_activation_bytes = most}, seeds_asked(2));
    }
}

TEST(CompiledOrder, OfASpilledNetworkMayBeAny) {
    for (unsigned network = 1; network <= 12; ++network)
        expect_any_order(test::random_network(network), {.settings = {{"spill", "always"}}},
                         seeds_asked(2));
}

TEST(CompiledOrder, OfARecurrentNetworkMayBeAny) {
    for (unsigned network = 1; network <= 6; ++network)
        expect_any_order(test::random_recurrent_network(network), {}, seeds_asked(2));
}

TEST(CompiledOrder, OfANetworkThatDecidesMayBeAny) {
    for (unsigned network = 1; network <= 12; ++network)
        expect_any_order(test::random_deciding_network(network), {}, seeds_asked(2));
}

TEST(CompiledOrder, OfAStreamedNetworkMayBeAny) {
    for (unsigned network = 1; network <= 8; ++network)
        expect_any_order(test::random_network(network), {.stream_parameters = true},
                         seeds_asked(2));
}

TEST(CompiledOrder, OfMobilenetMayBeAny) {
    REEF_SHARED_OR_SKIP(shared);
    expect_any_order(test::load_model(shared / "data/models/mobilenet_v1_0.25_128_quant.tflite"),
                     {}, seeds_asked(2));
}

#if defined(REEF_LARGE_PROGRAMS)
TEST(CompiledOrder, OfMovenetMayBeAny) {
    REEF_SHARED_OR_SKIP(shared);
    expect_any_order(
        test::load_model(shared / "data/models/movenet_single_pose_lightning_ptq.tflite"), {},
        seeds_asked(1));
}
#endif

/// What overlaps costs nothing and changes no byte.
TEST(CompiledSchedule, OverlappedIsFasterThanPlainWithTheSameBytes) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = test::load_model(shared / "data/models/mobilenet_v1_0.25_128_quant.tflite");
    const auto fast = edgetpu::compile(plain, {});
    const auto slow = edgetpu::compile(plain, {.schedule = chip::Schedule::plain});
    ASSERT_TRUE(fast && slow);
    EXPECT_EQ(outputs_in_order(fast->model, {}), outputs_in_order(slow->model, {}));
    const auto cycles = [](const edgetpu::Compiled& compiled) {
        return compiled.programs.front().cycles;
    };
    // What its convolutions save; SOFTMAX at its end takes the same in both.
    EXPECT_GT(cycles(*slow), cycles(*fast) + 20000);
}

}  // namespace
}  // namespace reef
