// How a program runs models, on devices that Reef knows and on one of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reef/chip/part.h"
#include "reef/cpu/placer.h"
#include "reef/cpu/support.h"
#include "reef/graph/device_operator.h"
#include "reef/graph/executor.h"
#include "reef/graph/run_control.h"
#include "reef/model/builder.h"
#include "reef/runtime/device.h"
#include "reef/runtime/device_pool.h"
#include "reef/runtime/driver.h"
#include "reef/runtime/options.h"
#include "reef/runtime/registry.h"
#include "reef/runtime/session.h"
#include "reef/runtime/uri.h"

namespace {

using reef::ElementType;
using testing::Contains;
using testing::HasSubstr;
namespace graph = reef::graph;
namespace model = reef::model;
namespace runtime = reef::runtime;

constexpr std::string_view negation = "example-negation";

model::Model relu_model() {
    model::Builder builder("what is below 128 becomes 128");
    const auto quantization = model::per_tensor(0.1F, 128);
    const auto in = builder.input("in", ElementType::uint8, {1, 4}, quantization);
    const auto out = builder.tensor("out", ElementType::uint8, {1, 4}, quantization);
    builder.add(model::Op::relu, {in}, {out});
    builder.output(out);
    return builder.finish().value();
}

void fill(reef::MutableBytes bytes, std::initializer_list<int> values) {
    std::ranges::transform(values, bytes.begin(), [](int value) { return std::byte(value); });
}
std::vector<int> numbers(reef::Bytes bytes) {
    std::vector<int> out;
    for (const auto byte : bytes) out.push_back(std::to_integer<int>(byte));
    return out;
}

TEST(Promised, SessionsRunModels) {
    auto session = runtime::Session::open(relu_model(), {.devices = {"cpu"}, .threads = 1});
    ASSERT_TRUE(session) << session.error().message();
    fill(session->input(0), {0, 127, 128, 255});
    ASSERT_TRUE(session->run());
    EXPECT_EQ(numbers(session->output(0)), (std::vector{128, 128, 128, 255}));
    EXPECT_EQ(session->placements()[0].device, "cpu");
    EXPECT_THAT(session->placements()[0].name, HasSubstr("RELU"));
}

TEST(Promised, SessionsRunInTheBackgroundAndAreCancelled) {
    auto session = runtime::Session::open(relu_model(), {}).value();
    ASSERT_TRUE(session.start());
    EXPECT_TRUE(session.wait());
    EXPECT_EQ(session.wait().error().cause, reef::Cause::bad_argument);
    session.set_deadline(std::chrono::seconds(10));
    session.cancel();  // nothing runs: the next run is as any other
    EXPECT_TRUE(session.run());
}

TEST(Promised, ExecutorsRunWithoutSessions) {
    graph::RunControl control;
    auto executor = graph::Executor::create(
        relu_model(), {.placers = {reef::cpu::placer()}, .control = &control});
    ASSERT_TRUE(executor) << executor.error().message();
    control.begin(std::nullopt);
    control.cancel();
    EXPECT_EQ(executor->run().error().cause, reef::Cause::cancelled);
    control.begin(std::nullopt);
    EXPECT_TRUE(executor->run());
    EXPECT_GT(executor->memory().arena_bytes, 0U);
}

TEST(Promised, TheCpuSaysWhatItRuns) {
    std::vector<std::string> names;
    for (const auto& each : reef::cpu::supported_operators()) names.push_back(each.name);
    EXPECT_THAT(names, Contains("CONV_2D"));
    EXPECT_FALSE(reef::cpu::simd_target().empty());
}

TEST(Promised, UrisNameDevicesAndTheirOptions) {
    const auto uri = runtime::DeviceUri::parse("family:backend:name?key=value");
    ASSERT_TRUE(uri) << uri.error().message();
    EXPECT_EQ(uri->name, "name");
    EXPECT_EQ(uri->device(), "family:backend:name");
    EXPECT_FALSE(runtime::DeviceUri::parse("two words"));
}

// A chip of the program's own: it negates bytes.
struct Negation final : runtime::Program {};

class Negator final : public graph::DeviceOperator {
  public:
    [[nodiscard]] std::string kernel() const override { return "negation"; }
    [[nodiscard]] reef::Status run(std::span<const reef::MutableBytes> inputs,
                                   std::span<const reef::MutableBytes> outputs) override {
        std::ranges::transform(inputs[0], outputs[0].begin(), std::bit_not());
        return {};
    }
};

class ExampleDevice final : public runtime::Device {
  public:
    [[nodiscard]] std::string uri() const override { return "example:chip"; }
    [[nodiscard]] reef::Result<std::unique_ptr<graph::DeviceOperator>> load(
        std::shared_ptr<const runtime::Program>, const graph::RunControl&) override {
        return std::make_unique<Negator>();
    }
};

class ExampleDriver final : public runtime::Driver {
  public:
    [[nodiscard]] std::string_view family() const override { return "example"; }
    [[nodiscard]] std::string_view sentence() const override { return "negates bytes"; }
    [[nodiscard]] std::span<const runtime::BackendInfo> backends() const override {
        return backends_;
    }
    [[nodiscard]] std::span<const runtime::OptionInfo> options() const override { return options_; }
    [[nodiscard]] const runtime::PlacementWords& words() const override { return words_; }
    [[nodiscard]] runtime::Enumeration enumerate() const override {
        return {.devices = {{"example:chip", "ready", ""}}};
    }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return op.code.custom == negation;
    }
    [[nodiscard]] reef::Result<std::shared_ptr<const runtime::Program>> prepare(
        const runtime::DeviceUri&, const runtime::OptionValues&, const model::Subgraph&,
        const model::Operator&) const override {
        return std::make_shared<Negation>();
    }
    [[nodiscard]] reef::Result<std::shared_ptr<runtime::Device>> open(const runtime::DeviceUri&,
                                                                      const runtime::OptionValues&,
                                                                      int) const override {
        return std::make_shared<ExampleDevice>();
    }

  private:
    std::vector<runtime::BackendInfo> backends_ = {
        {.backend = "chip",
         .sentence = "the only one",
         .capabilities = {runtime::Capability::computes}}};
    std::vector<runtime::OptionInfo> options_ = {
        {.name = "careful", .standard = false, .sentence = "negate twice more"}};
    runtime::PlacementWords words_ = {.taken = "an example's program",
                                      .left = "no example's program",
                                      .chip = "the example",
                                      .make = "write it for the example",
                                      .elsewhere = "run it on example:chip"};
};

class ExamplePart final : public reef::chip::Part {
  public:
    [[nodiscard]] std::string_view family() const override { return "example"; }
};

TEST(Promised, ProgramsEnrolChipsOfTheirOwn) {
    runtime::Registry registry;
    registry.add_driver(std::make_unique<ExampleDriver>());
    registry.add_part<ExamplePart>(std::make_unique<ExamplePart>());
    ASSERT_NE(registry.part<ExamplePart>("example"), nullptr);
    EXPECT_THAT(registry.forms(), Contains("example:chip"));
    const auto found = registry.find("example:chip").value();
    EXPECT_TRUE(found.backend->has(runtime::Capability::computes));
    const auto options =
        runtime::OptionValues::check(found.driver->options(), found.uri, {}).value();
    EXPECT_FALSE(options.flag("careful"));

    model::Builder builder("negates");
    const auto in = builder.input("in", ElementType::uint8, {1, 2});
    const auto out = builder.tensor("out", ElementType::uint8, {1, 2});
    builder.add_custom(std::string(negation), {in}, {out}, {});
    builder.output(out);
    const auto pool = std::make_shared<runtime::DevicePool>();
    auto session = runtime::Session::open(
        builder.finish().value(),
        {.devices = {"example:chip"}, .require_npu = true, .pool = pool, .registry = &registry});
    ASSERT_TRUE(session) << session.error().message();
    fill(session->input(0), {1, 254});
    ASSERT_TRUE(session->run());
    EXPECT_EQ(numbers(session->output(0)), (std::vector{254, 1}));
    EXPECT_NE(session->devices()[0]->as<ExampleDevice>(), nullptr);
}

}  // namespace
