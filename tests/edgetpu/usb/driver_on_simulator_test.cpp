// Compiled models through the whole driver on simulated chips, against the simulator alone: every
// byte, uncached, cached and after another model had the chip.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "edgetpu/usb/register_map.h"
#include "edgetpu/usb/scenarios.h"
#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::usb {
namespace {

using Tensors = std::vector<std::vector<std::byte>>;

const char* const models[] = {
    "edgetpu/templates/dense_256_edgetpu.tflite",
    "edgetpu/templates/dense_1024_edgetpu.tflite",
    "edgetpu/templates/looming_64x64_3x3_edgetpu.tflite",
    "edgetpu/templates/gabor_64x64_7k_4o_2s_edgetpu.tflite",
    "edgetpu/templates/gabor_64x64_p4_edgetpu.tflite",
    "edgetpu/templates/bright_16x16_edgetpu.tflite",
    "edgetpu/templates/bright_64x64_edgetpu.tflite",
    "edgetpu/templates/color_red_64x64_edgetpu.tflite",
    "edgetpu/templates/color_green_64x64_edgetpu.tflite",
    "edgetpu/templates/color_white_64x64_edgetpu.tflite",
    "models/mobilenet_v1_0.25_128_quant_edgetpu.tflite",
    "models/mobilenet_v1_0.25_128_quant_cocompiled_with_mobilenet_v1_0.5_160_quant_edgetpu.tflite",
    "models/split_concat_edgetpu.tflite",
    "models/keras_lstm_mnist_ptq_edgetpu.tflite",
#ifdef REEF_LARGE_PROGRAMS
    "models/mobilenet_v1_0.5_160_quant_edgetpu.tflite",
    "models/movenet_single_pose_lightning_ptq_edgetpu.tflite",
    "models/deeplabv3_mnv2_dm05_pascal_quant_edgetpu.tflite",
    "models/posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite",
    "models/ssd_mobilenet_v1_coco_quant_postprocess_segment_0_of_2_edgetpu.tflite",
    "models/ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2_edgetpu.tflite",
#endif
};

/// A model's compiled operator with tensors.
struct Compiled {
    std::string name;
    Package package;
    std::shared_ptr<const Program> program;
    Tensors inputs, outputs;

    static Result<Compiled> load(const std::filesystem::path& path) {
        const auto model = REEF_TRY(model::load_tflite(path.string()));
        auto packages = REEF_TRY(packages_of(model));
        return of(path.stem().string(), std::move(packages.at(0).package));
    }
    static Result<Compiled> of(std::string name, Package package) {
        Compiled compiled{.name = std::move(name),
                          .package = std::move(package),
                          .program = nullptr,
                          .inputs = {},
                          .outputs = {}};
        compiled.program = REEF_TRY(Program::prepare(compiled.package));
        for (const Layer& layer : compiled.program->inputs())
            compiled.inputs.emplace_back(REEF_TRY(tensor_bytes(layer)));
        for (const Layer& layer : compiled.program->outputs())
            compiled.outputs.emplace_back(REEF_TRY(tensor_bytes(layer)));
        return compiled;
    }

    void draw(unsigned seed) {
        std::mt19937 random(seed);
        for (auto& input : inputs)
            for (auto& byte : input) byte = static_cast<std::byte>(random());
    }
    [[nodiscard]] std::vector<Bytes> in() const { return {inputs.begin(), inputs.end()}; }
    [[nodiscard]] std::vector<MutableBytes> out() { return {outputs.begin(), outputs.end()}; }

    Result<Tensors> on(Device& device) {
        REEF_CHECK(in_place(device.run(program, in(), out()), name));
        return outputs;
    }
    /// On a new chip that has no other programs.
    Result<Tensors> alone() {
        Simulator chip;
        auto simulated = REEF_TRY(SimulatedPackage::prepare(package));
        REEF_CHECK(in_place(simulated.run(chip, in(), out()), name));
        return outputs;
    }
};

struct Stick {
    std::shared_ptr<SimulatedBus> bus = std::make_shared<SimulatedBus>();
    std::unique_ptr<Device> device;

    explicit Stick(const SimulatorOptions& options = {}, Speed speed = Speed::super,
                   Endpoints endpoints = Endpoints::single) {
        bus->plug({.port = "1-1", .speed = speed, .has_firmware = true, .faults = {}},
                  std::make_unique<SimulatorCore>(options));
        auto opened = Device::open(bus, {.port = {}, .endpoints = endpoints, .firmware = {}});
        EXPECT_TRUE(opened) << opened.error().message();
        device = std::move(*opened);
    }
};

class DriverOnSimulator : public testing::Test {
  protected:
    void expect_same(const Result<Tensors>& got, const Result<Tensors>& want) {
        ASSERT_TRUE(want) << want.error().message();
        ASSERT_TRUE(got) << got.error().message();
        EXPECT_TRUE(*got == *want);
    }
};

TEST_F(DriverOnSimulator, EveryModelGivesTheSimulatorsBytesAgainAndAfterOthers) {
    REEF_SHARED_OR_SKIP(shared);
    Stick stick;
    std::optional<Compiled> before;
    for (const char* path : models) {
        SCOPED_TRACE(path);
        auto loaded = Compiled::load(shared / "data" / path);
        ASSERT_TRUE(loaded) << loaded.error().message();
        for (const unsigned seed : {1U, 2U}) {
            loaded->draw(seed);
            expect_same(loaded->on(*stick.device), loaded->alone());
        }
        // The model before has its turn again, and this one after it.
        if (before) {
            before->draw(3);
            expect_same(before->on(*stick.device), before->alone());
            loaded->draw(4);
            expect_same(loaded->on(*stick.device), loaded->alone());
        }
        before = std::move(*loaded);
    }
    EXPECT_GT(stick.device->counters().evictions, std::size(models));
    EXPECT_EQ(stick.device->counters().recoveries, 0U);
}

TEST_F(DriverOnSimulator, CoCompiledModelsStayTogether) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data/edgetpu/usb"));
    const auto scenario =
        std::ranges::find(test::scenarios(), "two_cocompiled", &test::Scenario::name);
    ASSERT_NE(scenario, test::scenarios().end());
    const auto packages = test::packages_for(*scenario, test::golden(*scenario));
    auto first = Compiled::of("first", packages.at(0));
    auto second = Compiled::of("second", packages.at(1));
    ASSERT_TRUE(first && second);
    Stick stick;
    unsigned seed = 0;
    for (Compiled* each : {&*first, &*second, &*second, &*first, &*second}) {
        each->draw(++seed);
        expect_same(each->on(*stick.device), each->alone());
    }
    EXPECT_EQ(stick.device->counters().parameter_loads, 2U);
    EXPECT_EQ(stick.device->counters().evictions, 0U);
}

#ifdef REEF_LARGE_PROGRAMS
// Their token is the same, and so are the rows of their parameters.
TEST_F(DriverOnSimulator, PartsOfAModelForTwoChipsTakeTurnsOnOne) {
    REEF_SHARED_OR_SKIP(shared);
    const auto part = [&](int number) {
        return Compiled::load(shared / "data/models" /
                              ("ssd_mobilenet_v1_coco_quant_postprocess_segment_" +
                               std::to_string(number) + "_of_2_edgetpu.tflite"));
    };
    auto first = part(0), second = part(1);
    ASSERT_TRUE(first && second);
    ASSERT_EQ(first->program->token(), second->program->token());
    Stick stick;
    for (Compiled* each : {&*first, &*second, &*first}) {
        each->draw(7);
        expect_same(each->on(*stick.device), each->alone());
    }
    EXPECT_EQ(stick.device->counters().evictions, 2U);
}
#endif

TEST_F(DriverOnSimulator, TheNextInputTravelsWhileTheChipWorks) {
    REEF_SHARED_OR_SKIP(shared);
    auto model = Compiled::load(shared / "data" / models[0]);
    ASSERT_TRUE(model) << model.error().message();
    Stick stick;
    std::vector<Tensors> wanted;
    for (unsigned seed = 0; seed < 6; ++seed) {
        model->draw(seed);
        wanted.push_back(model->alone().value());
    }
    const auto start = [&](unsigned seed) {
        model->draw(seed);
        return stick.device->start(model->program, model->in());
    };
    ASSERT_TRUE(start(0));
    for (unsigned seed = 1; seed < 6; ++seed) {
        ASSERT_TRUE(start(seed));
        ASSERT_TRUE(stick.device->finish(model->out()));
        EXPECT_EQ(model->outputs, wanted[seed - 1]);
    }
    ASSERT_TRUE(stick.device->finish(model->out()));
    EXPECT_EQ(model->outputs, wanted[5]);
}

TEST_F(DriverOnSimulator, Usb2AndRandomOrderOfEnginesGiveTheSame) {
    REEF_SHARED_OR_SKIP(shared);
    auto model = Compiled::load(shared / "data/edgetpu/templates/gabor_64x64_p4_edgetpu.tflite");
    ASSERT_TRUE(model) << model.error().message();
    model->draw(1);
    const auto want = model->alone();
    for (unsigned seed = 1; seed < 4; ++seed) {
        Stick stick({.random_seed = seed}, Speed::high);
        expect_same(model->on(*stick.device), want);
    }
}

// The simulated stick takes no headers then, and refuses inputs and parameters on endpoint 1.
TEST_F(DriverOnSimulator, AnEndpointForEachKindOfDataGivesTheSame) {
    REEF_SHARED_OR_SKIP(shared);
    Stick stick({}, Speed::super, Endpoints::multiple);
    for (const char* name : {"edgetpu/templates/dense_1024_edgetpu.tflite",
                             "models/mobilenet_v1_0.25_128_quant_edgetpu.tflite",
                             "models/split_concat_edgetpu.tflite"}) {
        auto model = Compiled::load(shared / "data" / name);
        ASSERT_TRUE(model) << model.error().message();
        for (const unsigned seed : {1U, 2U}) {
            model->draw(seed);
            const auto want = model->alone();
            expect_same(model->on(*stick.device), want);
        }
    }
    // A host that keeps to one endpoint is told what is wrong.
    const Stick single;
    ASSERT_TRUE(single.device->write_register(*csr::multi_bo_ep, 1));
    auto model = Compiled::load(shared / "data" / "edgetpu/templates/dense_1024_edgetpu.tflite");
    ASSERT_TRUE(model);
    EXPECT_FALSE(model->on(*single.device));
}

TEST_F(DriverOnSimulator, AChipThatStopsIsADeviceThatFailsAndRunsAgainAfterwards) {
    REEF_SHARED_OR_SKIP(shared);
    auto model = Compiled::load(shared / "data" / models[0]);
    ASSERT_TRUE(model) << model.error().message();
    model->draw(1);
    // Enough for the parameters, not for the rest.
    Stick stick({.most_steps = 2000});
    const auto stopped = model->on(*stick.device);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().cause, Cause::device_failed);
    EXPECT_THAT(stick.bus->standstill("1-1"), testing::HasSubstr("did not end within 2000 steps"));
    const auto again = model->on(*stick.device);
    ASSERT_FALSE(again);
    EXPECT_EQ(stick.device->counters().recoveries, 1U);
}

}  // namespace
}  // namespace reef::edgetpu::usb
