// The devices of this build.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "cts/subject.h"
#include "reef/chip/compiler.h"
#include "reef/edgetpu/device/operator_inputs.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef::cts {

void enrol_subjects(runtime::Registry& registry);

namespace {

using Lists = std::map<std::string, std::string>;

/// Errors: not_found without the reference data.
Result<model::Model> shared_model(const std::string& path) {
    const auto shared = test::shared_folder();
    if (!shared) return fail(Cause::not_found, "the reference data are not here", path);
    return model::load_tflite((*shared / path).string());
}

/// Two convolutions that the product compiles itself.
Result<model::Model> compiled_for(std::string_view family) {
    constexpr std::int32_t channels = 32, side = 24;
    std::vector<std::uint8_t> weights(std::size_t{channels} * channels * 9);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::uint8_t>(i * 37);
    model::Builder builder("two convolutions");
    const auto numbers = model::per_tensor(0.05F, 120);
    const std::vector<std::int32_t> shape{1, side, side, channels};
    const auto in = builder.input("in", ElementType::uint8, shape, numbers);
    const auto middle = builder.tensor("middle", ElementType::uint8, shape, numbers);
    const auto out = builder.tensor("out", ElementType::uint8, shape, numbers);
    const auto kernels =
        builder.constant<std::uint8_t>("kernels", ElementType::uint8, {channels, 3, 3, channels},
                                       weights, model::per_tensor(0.002F, 128));
    const model::Conv2dOptions options{
        .padding = model::Padding::same, .stride_h = 1, .stride_w = 1};
    builder.add(model::Op::conv_2d, {in, kernels, model::absent_tensor}, {middle}, options);
    builder.add(model::Op::conv_2d, {middle, kernels, model::absent_tensor}, {out}, options);
    builder.output(out);
    const auto* compiler = runtime::Registry::of_process().part<chip::Compiler>(family);
    if (compiler == nullptr)
        return fail(Cause::not_found, fmt::format("nothing compiles for {}", family));
    return REEF_TRY(compiler->compile(REEF_TRY(builder.finish()), {})).model;
}

class CpuSubject final : public Subject {
  public:
    [[nodiscard]] std::string_view family() const override { return "cpu"; }
    [[nodiscard]] std::string name() const override { return "cpu"; }
    [[nodiscard]] runtime::DeviceChoice device() const override { return {"cpu"}; }
    /// Its output may lie where its input was.
    [[nodiscard]] Result<model::Model> model() const override {
        model::Builder builder("twice twice");
        const auto in = builder.input("in", ElementType::float32, {1, 64});
        const auto twice = builder.tensor("twice", ElementType::float32, {1, 64});
        const auto out = builder.tensor("out", ElementType::float32, {1, 64});
        builder.add(model::Op::add, {in, in}, {twice}, model::AddOptions{});
        builder.add(model::Op::add, {twice, twice}, {out}, model::AddOptions{});
        builder.output(out);
        return builder.finish();
    }
    /// One filter that remembers two sums of its input.
    [[nodiscard]] std::optional<Result<model::Model>> stateful_model() const override {
        const float features[] = {0.5F, -1, 2}, time[] = {1, 3};
        model::Builder builder("remembers");
        const auto in = builder.input("in", ElementType::float32, {1, 3});
        const auto feature = builder.constant("features", ElementType::float32, {1, 3},
                                              std::span<const float>(features));
        const auto over_time =
            builder.constant("time", ElementType::float32, {1, 2}, std::span<const float>(time));
        const auto state = builder.variable("state", ElementType::float32, {1, 2});
        const auto out = builder.tensor("out", ElementType::float32, {1, 1});
        builder.add(model::Op::svdf, {in, feature, over_time, model::absent_tensor, state}, {out},
                    model::SvdfOptions{.rank = 1});
        builder.output(out);
        return builder.finish();
    }
    [[nodiscard]] Lists not_supported() const override {
        return {{"refuses_ill_typed_options", "it has no options"},
                {"can_be_required", "it is no NPU"},
                {"counts_during_runs", "it is not counted"},
                {"serves_two_sessions", "each session has kernels of its own"}};
    }
};

constexpr const char* compiled_model = "data/edgetpu/templates/dense_256_edgetpu.tflite";

/// A program of the vendor's compiler; without the reference data one of Reef's.
Result<model::Model> chip_model() {
    return test::shared_folder() ? shared_model(compiled_model) : compiled_for("edgetpu");
}

class ChipSubject : public Subject {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] Result<model::Model> model() const override { return chip_model(); }
};

class SimulatedSubject final : public ChipSubject {
  public:
    [[nodiscard]] std::string name() const override { return "edgetpu_sim"; }
    [[nodiscard]] runtime::DeviceChoice device() const override { return {"edgetpu:sim"}; }
    [[nodiscard]] std::optional<Result<model::Model>> stateful_model() const override {
        return shared_model("data/models/keras_lstm_mnist_ptq_edgetpu.tflite");
    }
    [[nodiscard]] std::optional<runtime::Option> wrong_option() const override {
        return runtime::Option{"random_seed", std::string("seven")};
    }
    [[nodiscard]] Lists not_supported() const override { return {}; }
};

class NullSubject final : public ChipSubject {
  public:
    [[nodiscard]] std::string name() const override { return "edgetpu_null"; }
    [[nodiscard]] runtime::DeviceChoice device() const override { return {"edgetpu:null"}; }
    [[nodiscard]] std::optional<runtime::Option> wrong_option() const override {
        return runtime::Option{"clock", true};
    }
    [[nodiscard]] Lists not_supported() const override {
        return {{"computes", "its outputs are a pattern"},
                {"resets_state", "it computes nothing of its inputs, state included"}};
    }
};

class ReplaySubject final : public ChipSubject {
  public:
    [[nodiscard]] std::string name() const override { return "edgetpu_replay"; }
    [[nodiscard]] runtime::DeviceChoice device() const override {
        static const Recorded recorded;
        return {"edgetpu:replay:" + recorded.path};
    }
    [[nodiscard]] std::optional<runtime::Option> wrong_option() const override {
        return runtime::Option{"clock", std::string("slow")};
    }
    [[nodiscard]] Lists not_supported() const override {
        return {{"computes", "other inputs were not recorded"},
                {"resets_state", "the recorded model has none"},
                {"serves_two_sessions", "what two sessions do together was not recorded"}};
    }

  private:
    /// A simulated stick that runs the usual input more often than any promise does.
    struct Recorded {
        Recorded() {
            if (const auto done = record(); !done)
                fmt::print(stderr, "nothing is recorded: {}\n", done.error().message());
        }
        Status record() const;
        test::TemporaryFolder folder;
        std::string path = (folder.path() / "traffic.log").string();
    };
};

Status ReplaySubject::Recorded::record() const {
    using namespace edgetpu;
    const auto model = REEF_TRY(chip_model());
    const auto packages = REEF_TRY(packages_of(model));
    std::mt19937 random(1);
    std::vector<std::vector<std::byte>> inputs;
    const auto& graph = model.subgraphs[0];
    for (const auto input : graph.inputs) {
        const auto& tensor = graph.tensors[static_cast<std::size_t>(input)];
        auto& bytes =
            inputs.emplace_back(static_cast<std::size_t>(tensor.byte_count().value_or(0)));
        for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    }
    auto tensors = REEF_TRY(tensors_of_operator(model, packages[0], inputs));
    const auto program = REEF_TRY(usb::Program::prepare(packages[0].package));
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.has_firmware = true, .faults = {}}, std::make_unique<usb::SimulatorCore>());
    auto recorder = std::make_shared<usb::RecordingBus>(bus);
    {
        const auto device = REEF_TRY(usb::Device::open(recorder, {.port = {}, .firmware = {}}));
        tensors.bind();
        constexpr int runs = 8;
        for (int run = 0; run < runs; ++run)
            REEF_CHECK(device->run(program, tensors.binding.inputs(), tensors.binding.outputs()));
    }
    return usb::write_recording(path, recorder->recording());
}

/// The RK3588's simulated core, with convolutions that are compiled for it.
class NpuSubject : public Subject {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] std::string name() const override { return "rk3588_sim"; }
    [[nodiscard]] runtime::DeviceChoice device() const override { return {"rk3588:sim"}; }
    [[nodiscard]] Result<model::Model> model() const override { return compiled_for(family()); }
    [[nodiscard]] std::optional<runtime::Option> wrong_option() const override {
        return runtime::Option{"output_rounding", true};
    }
    [[nodiscard]] Lists not_supported() const override { return {{"resets_state", "it has none"}}; }
};

/// The same core behind a kernel's driver, of which the kernel is simulated, too.
class KernelSubject final : public NpuSubject {
  public:
    explicit KernelSubject(std::string driver) : driver_(std::move(driver)) {}
    [[nodiscard]] std::string name() const override { return "rk3588_" + driver_; }
    [[nodiscard]] runtime::DeviceChoice device() const override {
        return {"rk3588:" + driver_ + "?kernel=simulated"};
    }
    [[nodiscard]] std::optional<runtime::Option> wrong_option() const override {
        return runtime::Option{"kernel", true};
    }
    [[nodiscard]] Lists not_supported() const override {
        return {{"resets_state", "it has none"},
                {"serves_two_sessions", "each session has a simulated kernel of its own"}};
    }

  private:
    std::string driver_;
};

}  // namespace

void enrol_subjects(runtime::Registry& registry) {
    registry.add_part<Subject>(std::make_unique<CpuSubject>());
    registry.add_part<Subject>(std::make_unique<SimulatedSubject>());
    registry.add_part<Subject>(std::make_unique<NullSubject>());
    registry.add_part<Subject>(std::make_unique<ReplaySubject>());
    registry.add_part<Subject>(std::make_unique<NpuSubject>());
    registry.add_part<Subject>(std::make_unique<KernelSubject>("rknpu"));
    registry.add_part<Subject>(std::make_unique<KernelSubject>("rocket"));
}

}  // namespace reef::cts
