// Programs for several cores give the bytes of those for one, on every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reef/model/builder.h"
#include "reef/runtime/session.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/small_models.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef {
namespace {

model::Model for_cores(const model::Model& plain, std::int32_t cores) {
    rk3588::Options numbers;
    numbers.cores = cores;
    auto compiled = rk3588::compile(plain, numbers, {});
    EXPECT_TRUE(compiled) << compiled.error().message();
    return std::move(compiled->model);
}

std::vector<std::byte> bytes_on(const model::Model& model, const std::string& device) {
    runtime::SessionOptions options;
    options.devices = {{device}};
    auto session = runtime::Session::open(model, options);
    EXPECT_TRUE(session) << session.error().message();
    if (!session) return {};
    auto input = session->input(0);
    for (std::size_t i = 0; i < input.size(); ++i)
        input[i] = static_cast<std::byte>(i * 53 + i / 7);
    const auto done = session->run();
    EXPECT_TRUE(done) << device << ": " << done.error().message();
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < session->output_count(); ++i)
        all.insert(all.end(), session->output(i).begin(), session->output(i).end());
    return all;
}

/// Three layers that read one tensor, as the heads of a detector do.
model::Model three_heads() {
    model::Builder b("heads");
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto in = b.input("in", ElementType::uint8, {1, 20, 20, 32}, numbers);
    std::vector<std::uint8_t> weights(32 * 32);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::uint8_t>(i * 31);
    for (const char* name : {"a", "b", "c"}) {
        const auto w =
            b.constant<std::uint8_t>(std::string(name) + " weights", ElementType::uint8,
                                     {32, 1, 1, 32}, weights, model::per_tensor(0.01F, 128));
        const auto out = b.tensor(name, ElementType::uint8, {1, 20, 20, 32}, numbers);
        b.add(model::Op::conv_2d, {in, w, model::absent_tensor}, {out},
              model::Conv2dOptions{.stride_h = 1, .stride_w = 1});
        b.output(out);
        weights.front() = 7;
    }
    return b.finish().value();
}

TEST(SeveralCores, GiveTheBytesOfOneOnEveryDevice) {
    std::size_t shared_by_rows = 0, shared_by_channels = 0;
    for (unsigned seed = 100; seed < 116; ++seed) {
        const auto plain = test::random_convolution(seed, seed % 2 == 0).model;
        const auto one = bytes_on(for_cores(plain, 1), "rk3588:sim");
        for (const std::int32_t cores : {2, 3}) {
            const auto model = for_cores(plain, cores);
            const auto artifact = test::programs_of(model).at(0);
            if (artifact.stages.empty()) continue;
            const auto words = std::span(artifact.commands);
            const auto& stage = artifact.stages.at(0);
            // Shares by rows have the same weights.
            const auto weights = [&](std::size_t part) {
                const auto& task = artifact.tasks[stage[part].first_task];
                const auto stream = words.subspan(task.first_word, task.words);
                return rk3588::read_task(std::as_bytes(stream))
                    .value()
                    .registers.get<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">();
            };
            ++(weights(0) == weights(1) ? shared_by_rows : shared_by_channels);
            for (const char* device :
                 {"rk3588:sim", "rk3588:rknpu?kernel=simulated",
                  "rk3588:rknpu?kernel=simulated&start=chain", "rk3588:rocket?kernel=simulated"})
                EXPECT_EQ(bytes_on(model, device), one) << seed << " " << device;
        }
    }
    EXPECT_GT(shared_by_rows, 3U);
    EXPECT_GT(shared_by_channels, 3U);
}

TEST(SeveralCores, RunWholeOperatorsAtOnce) {
    const auto plain = three_heads();
    const auto model = for_cores(plain, 3);
    const auto artifact = test::programs_of(model).at(0);
    ASSERT_EQ(artifact.stages.size(), 1U);
    ASSERT_EQ(artifact.stages[0].size(), 3U);
    for (const auto& op : artifact.operators) EXPECT_EQ(op.tasks, 1U);
    const auto one = bytes_on(for_cores(plain, 1), "rk3588:sim");
    EXPECT_EQ(bytes_on(model, "rk3588:sim"), one);
    EXPECT_EQ(bytes_on(model, "rk3588:rknpu?kernel=simulated"), one);
    // Two of three: the third one behind a barrier, or all of them shared.
    EXPECT_EQ(bytes_on(for_cores(plain, 2), "rk3588:sim"), one);
}

TEST(SeveralCores, ThatMeetAreFoundInsteadOfOrdered) {
    const auto model = for_cores(three_heads(), 3);
    auto artifact = test::programs_of(model).at(0);
    // The second head writes where the first one does.
    const auto find = [&](std::size_t task) {
        const auto first = artifact.tasks[task].first_word;
        for (std::uint32_t w = first; w < first + artifact.tasks[task].words; ++w)
            if ((artifact.commands[w] & 0xffff) == 0x4020) return w;
        return std::uint32_t{0};
    };
    artifact.commands[find(1)] = artifact.commands[find(0)];
    auto broken = model;
    broken.subgraphs[0].operators[0].custom_options =
        SharedBytes::copy_of(rk3588::write_artifact(artifact));
    for (const char* device : {"rk3588:sim", "rk3588:rknpu?kernel=simulated"}) {
        runtime::SessionOptions options;
        options.devices = {{device}};
        auto session = runtime::Session::open(broken, options);
        ASSERT_TRUE(session) << session.error().message();
        const auto done = session->run();
        ASSERT_FALSE(done);
        EXPECT_THAT(done.error().message(), testing::HasSubstr("no barrier between them"));
    }
}

// Where the memory is what they wait for, a third one is no use.
TEST(SeveralCores, OfANetworkAreEstimatedFasterAndGiveTheSameBytes) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = test::load_model(shared / "data/models/mobilenet_v1_0.25_128_quant.tflite");
    rk3588::Options numbers;
    const auto one = rk3588::compile(plain, numbers, {});
    ASSERT_TRUE(one);
    const auto bytes = bytes_on(one->model, "rk3588:sim");
    std::uint64_t cycles = one->programs.at(0).cycles;
    for (const std::int32_t cores : {2, 3}) {
        numbers.cores = cores;
        const auto several = rk3588::compile(plain, numbers, {});
        ASSERT_TRUE(several);
        EXPECT_GE(several->programs.at(0).cores, 2U);
        EXPECT_LT(several->programs.at(0).cycles, one->programs.at(0).cycles);
        EXPECT_LE(several->programs.at(0).cycles, cycles);
        cycles = several->programs.at(0).cycles;
        EXPECT_EQ(bytes_on(several->model, "rk3588:sim"), bytes);
    }
}

}  // namespace
}  // namespace reef
