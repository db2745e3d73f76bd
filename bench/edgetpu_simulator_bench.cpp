// What one inference on the simulated Edge TPU costs, alone and behind a simulated stick: in
// processor time of one thread, next to the plain model's on the CPU floor in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <vector>

#include "reef/cpu/placer.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/graph/executor.h"
#include "reef/model/tflite.h"

namespace reef::edgetpu {
namespace {

struct Case {
    const char* model;
    double bound_ms;
    int rounds;
};
constexpr Case cases[] = {
    {"mobilenet_v1_0.25_128_quant", 15, 31},
    {"mobilenet_v1_0.5_160_quant", 40, 21},
    {"movenet_single_pose_lightning_ptq", 120, 9},
    {"deeplabv3_mnv2_dm05_pascal_quant", 250, 7},
    {"posenet_mobilenet_v1_075_353_481_16_quant_decoder", 250, 7},
};

double processor_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double wall_ms() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

template <class Work>
double wall(Work&& work) {
    const double start = wall_ms();
    work();
    return wall_ms() - start;
}

template <class Work>
double once(Work&& work) {
    const double start = processor_ms();
    work();
    return processor_ms() - start;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// A package with its tensors on a chip.
struct Chip {
    Simulator simulator;
    SimulatedPackage package;
    std::vector<std::vector<std::byte>> in;
    std::vector<std::vector<std::byte>> out;
    double prepare_ms = 0;

    Status run() {
        std::vector<Bytes> inputs(in.begin(), in.end());
        std::vector<MutableBytes> outputs(out.begin(), out.end());
        return package.run(simulator, inputs, outputs);
    }
};

Result<Chip> load_chip(const std::filesystem::path& path, const SimulatorOptions& options) {
    const double start = processor_ms();
    const auto model = REEF_TRY(model::load_tflite(path.string()));
    const auto packages = REEF_TRY(packages_of(model));
    auto package = REEF_TRY(SimulatedPackage::prepare(packages.at(0).package));
    const double prepare_ms = processor_ms() - start;
    Chip chip{Simulator(options), std::move(package), {}, {}, prepare_ms};
    for (const Layer& layer : chip.package.executable().inputs) {
        const auto bytes = REEF_TRY(tensor_bytes(layer));
        chip.in.emplace_back(bytes, std::byte{77});
    }
    for (const Layer& layer : chip.package.executable().outputs) {
        const auto bytes = REEF_TRY(tensor_bytes(layer));
        chip.out.emplace_back(bytes);
    }
    return chip;
}

/// The same chip behind a simulated stick, driven as a real one.
struct Driven {
    std::unique_ptr<usb::Device> device;
    std::shared_ptr<const usb::Program> program;

    Status run(Chip& tensors) {
        const std::vector<Bytes> inputs(tensors.in.begin(), tensors.in.end());
        const std::vector<MutableBytes> outputs(tensors.out.begin(), tensors.out.end());
        return device->run(program, inputs, outputs);
    }
};

Result<Driven> load_driven(const std::filesystem::path& path) {
    const auto model = REEF_TRY(model::load_tflite(path.string()));
    const auto packages = REEF_TRY(packages_of(model));
    auto program = REEF_TRY(usb::Program::prepare(packages.at(0).package));
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.port = "1-1", .has_firmware = true, .faults = {}},
              std::make_unique<usb::SimulatorCore>());
    auto device = REEF_TRY(usb::Device::open(bus, {}));
    return Driven{std::move(device), std::move(program)};
}

Status measure(const std::filesystem::path& models, const Case& tested) {
    const std::string name = tested.model;
    auto chip = REEF_TRY(load_chip(models / (name + "_edgetpu.tflite"), {}));
    auto pair = REEF_TRY(load_chip(models / (name + "_edgetpu.tflite"), {.threads = 2}));
    auto driven = REEF_TRY(load_driven(models / (name + "_edgetpu.tflite")));
    auto slow =
        REEF_TRY(load_chip(models / (name + "_edgetpu.tflite"), {.engine = EngineKind::plain}));
    const auto plain = REEF_TRY(model::load_tflite((models / (name + ".tflite")).string()));
    auto cpu = REEF_TRY(graph::Executor::create(plain, {.placers = {cpu::placer()}}));
    // The first inference loads the parameters.
    REEF_CHECK(chip.run());
    REEF_CHECK(pair.run());
    REEF_CHECK(driven.run(chip));
    REEF_CHECK(cpu.run());
    std::vector<double> on_chip, through_driver, on_cpu, by_one, by_two;
    Status status;
    for (int round = 0; round < tested.rounds && status; ++round) {
        on_chip.push_back(once([&] { status = chip.run(); }));
        if (status) through_driver.push_back(once([&] { status = driven.run(chip); }));
        if (status) by_one.push_back(wall([&] { status = chip.run(); }));
        if (status) by_two.push_back(wall([&] { status = pair.run(); }));
        if (status) on_cpu.push_back(once([&] { status = cpu.run(); }));
    }
    REEF_CHECK(status);
    const double by_plain_engine = once([&] { status = slow.run(); });
    REEF_CHECK(status);
    const double ours = median(on_chip);
    fmt::print("{:50} {:9.2f} {:9.2f} {:9.2f} {:7.2f} {:10.1f} {:9.2f} {:9.2f}  {:5.0f} {}\n", name,
               ours, median(through_driver), median(on_cpu), ours / median(on_cpu), by_plain_engine,
               chip.prepare_ms, median(by_one) / median(by_two), tested.bound_ms,
               ours <= tested.bound_ms ? "kept" : "NOT KEPT");
    return {};
}

}  // namespace
}  // namespace reef::edgetpu

int main() {
    const char* shared = std::getenv("REEF_SHARED");
    if (shared == nullptr) {
        fmt::print(stderr, "no reference data: set REEF_SHARED to its folder\n");
        return 2;
    }
    fmt::print("{:50} {:>9} {:>9} {:>9} {:>7} {:>10} {:>9} {:>9}  {:>5}   vectors: {}\n",
               "processor ms", "simulator", "driver", "CPU floor", "ratio", "plain eng.", "prepare",
               "2 threads", "bound", reef::cpu::simd_target());
    for (const auto& tested : reef::edgetpu::cases) {
        const auto status =
            reef::edgetpu::measure(std::filesystem::path(shared) / "data/models", tested);
        if (!status) {
            fmt::print(stderr, "{}: {}\n", tested.model, status.error().message());
            return 1;
        }
    }
    return 0;
}
