// Sessions that share chips, and what a session says when its chip stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "reef/model/tflite.h"
#include "reef/runtime/session.h"
#include "support/shared_data.h"

namespace reef::runtime {
namespace {

using ::testing::HasSubstr;

constexpr const char* simulated = "edgetpu:sim";

class SharedChips : public testing::Test {
  protected:
    static model::Model load(const std::filesystem::path& shared, const std::string& name) {
        auto model =
            model::load_tflite((shared / "data/edgetpu/templates" / (name + "_edgetpu.tflite")));
        EXPECT_TRUE(model) << (model ? "" : model.error().message());
        return std::move(*model);
    }
    static Session opened(const model::Model& model, const std::shared_ptr<DevicePool>& pool = {},
                          const std::string& device = simulated) {
        auto session = Session::open(model, {.devices = {device}, .pool = pool});
        EXPECT_TRUE(session) << (session ? "" : session.error().message());
        return std::move(*session);
    }
    /// The outputs for random inputs.
    static std::vector<std::byte> run(Session& session, unsigned seed) {
        std::mt19937 random(seed);
        for (std::size_t i = 0; i < session.input_count(); ++i)
            for (auto& byte : session.input(i)) byte = static_cast<std::byte>(random());
        const auto status = session.run();
        EXPECT_TRUE(status) << (status ? "" : status.error().message());
        std::vector<std::byte> all;
        for (std::size_t i = 0; i < session.output_count(); ++i) {
            const Bytes output = session.output(i);
            all.insert(all.end(), output.begin(), output.end());
        }
        return all;
    }
};

TEST_F(SharedChips, ModelsTakeTurnsOnOneChip) {
    REEF_SHARED_OR_SKIP(shared);
    const auto dense = load(shared, "dense_256"), gabor = load(shared, "gabor_64x64_p4");
    auto dense_alone = opened(dense), gabor_alone = opened(gabor);
    const auto pool = std::make_shared<DevicePool>();
    auto first = opened(dense, pool), second = opened(gabor, pool);
    for (unsigned seed = 0; seed < 3; ++seed) {
        EXPECT_EQ(run(first, seed), run(dense_alone, seed));
        EXPECT_EQ(run(first, seed + 10), run(dense_alone, seed + 10));
        EXPECT_EQ(run(second, seed), run(gabor_alone, seed));
    }
    const auto counters = first.counters();
    ASSERT_TRUE(counters);
    EXPECT_EQ(counters->runs, 9U);
    EXPECT_EQ(counters->parameter_loads, 6U);
    EXPECT_EQ(counters->evictions, 5U);
    EXPECT_EQ(counters->recoveries, 0U);
    EXPECT_EQ(second.counters()->runs, 9U);
    EXPECT_EQ(dense_alone.counters()->runs, 6U);
    EXPECT_EQ(dense_alone.counters()->parameter_loads, 1U);
}

TEST_F(SharedChips, NamesTellChipsApart) {
    REEF_SHARED_OR_SKIP(shared);
    const auto dense = load(shared, "dense_256");
    const auto pool = std::make_shared<DevicePool>();
    auto one = opened(dense, pool, "edgetpu:sim:1"), two = opened(dense, pool, "edgetpu:sim:2"),
         again = opened(dense, pool, "edgetpu:sim:1");
    EXPECT_EQ(run(one, 1), run(two, 1));
    run(again, 2);
    EXPECT_EQ(one.counters()->runs, 2U);
    EXPECT_EQ(two.counters()->runs, 1U);
    EXPECT_EQ(one.placements()[0].device, "edgetpu:sim:1");
}

TEST_F(SharedChips, AChipGoesWithItsLastSession) {
    REEF_SHARED_OR_SKIP(shared);
    const auto dense = load(shared, "dense_256");
    const auto pool = std::make_shared<DevicePool>();
    {
        auto session = opened(dense, pool);
        run(session, 1);
    }
    auto session = opened(dense, pool);
    EXPECT_EQ(session.counters()->runs, 0U);
}

TEST_F(SharedChips, ThreadsRunTwoSessionsOnOneChip) {
    REEF_SHARED_OR_SKIP(shared);
    const std::array models = {load(shared, "dense_256"), load(shared, "gabor_64x64_p4")};
    const auto pool = std::make_shared<DevicePool>();
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    constexpr int runs = 8;
    for (std::size_t t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            auto session = opened(models[t], pool);
            auto alone = opened(models[t]);
            for (unsigned seed = 0; seed < runs; ++seed)
                if (run(session, seed) == run(alone, seed)) ++right;
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, 2 * runs);
}

TEST_F(SharedChips, ThreadsRunOneModelOnTwoChips) {
    REEF_SHARED_OR_SKIP(shared);
    const auto model = load(shared, "dense_256");
    const auto pool = std::make_shared<DevicePool>();
    std::vector<std::vector<std::byte>> last(2);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            auto session = opened(model, pool, "edgetpu:sim:" + std::to_string(t));
            for (unsigned seed = 0; seed < 8; ++seed) last[t] = run(session, seed);
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_FALSE(last[0].empty());
    EXPECT_EQ(last[0], last[1]);
}

TEST_F(SharedChips, ASimulatedChipThatStopsSaysWhy) {
    REEF_SHARED_OR_SKIP(shared);
    SessionOptions options{.devices = {"edgetpu:sim?most_steps=2000"}};
    auto session = Session::open(load(shared, "dense_256"), options);
    ASSERT_TRUE(session) << session.error().message();
    const auto status = session->run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().cause, Cause::bad_input);
    EXPECT_THAT(status.error().message(), HasSubstr("edgetpu:sim: "));
    EXPECT_THAT(status.error().message(), HasSubstr("did not end within 2000 steps"));
}

TEST_F(SharedChips, EnginesAndOrdersGiveTheSame) {
    REEF_SHARED_OR_SKIP(shared);
    const auto model = load(shared, "gabor_64x64_p4");
    auto session = opened(model);
    const auto wanted = run(session, 4);
    const Option strict{"strict", true};
    for (const auto& device :
         {DeviceChoice("edgetpu:sim?engine=plain"), DeviceChoice("edgetpu:sim?random_seed=3"),
          DeviceChoice(simulated, {strict})}) {
        auto other = Session::open(model, {.devices = {device}});
        ASSERT_TRUE(other) << other.error().message();
        EXPECT_EQ(run(*other, 4), wanted);
        EXPECT_EQ(other->counters().has_value(), device.options.empty());
    }
}

TEST_F(SharedChips, WithoutAStickTheErrorSaysSo) {
    REEF_SHARED_OR_SKIP(shared);
    const auto session =
        Session::open(load(shared, "dense_256"), {.devices = {"edgetpu:usb:99-9"}});
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().cause, Cause::device_missing) << session.error().message();
    EXPECT_THAT(session.error().message(), HasSubstr("no Edge TPU at USB port 99-9"));
    EXPECT_THAT(session.error().hint, HasSubstr("reef doctor"));
}

}  // namespace
}  // namespace reef::runtime
