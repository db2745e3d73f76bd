// Output re-layout of the Edge TPU's outputs next to memcpy of the same bytes. The counter
// of_memcpy is the share of memcpy's bandwidth that OutputUnpacker reaches: for all outputs of a
// model in turn, as a run does it, and for each output alone in the processor's nearest cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "reef/edgetpu/layer_tensor.h"
#include "reef/model/tflite.h"

namespace reef::edgetpu {
namespace {

constexpr const char* models[] = {
    "posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite",
    "deeplabv3_mnv2_dm05_pascal_quant_edgetpu.tflite",
    "movenet_single_pose_lightning_ptq_edgetpu.tflite",
    "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2_edgetpu.tflite",
};

struct Output {
    OutputUnpacker unpacker;
    std::vector<std::byte> wire, tensor;
};

template <class Work>
double seconds(Work&& work) {
    constexpr int times = 1000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
        work();
        benchmark::ClobberMemory();
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / times;
}

void unpack(benchmark::State& state, std::span<const Layer> layers) {
    std::vector<Output> outputs;
    std::size_t bytes = 0;
    for (const Layer& layer : layers) {
        auto unpacker = OutputUnpacker::prepare(layer);
        if (!unpacker) return state.SkipWithError(unpacker.error().message().c_str());
        std::vector<std::byte> wire(unpacker->wire_bytes(), std::byte{1});
        std::vector<std::byte> tensor(unpacker->tensor_bytes());
        bytes += tensor.size();
        outputs.push_back({std::move(*unpacker), std::move(wire), std::move(tensor)});
    }
    // The machine may be busy: the best of a few passes on either side.
    double copy = 1, run = 1;
    for (auto _ : state) {
        copy = std::min(copy, seconds([&] {
                            for (Output& out : outputs) {
                                std::memcpy(out.tensor.data(), out.wire.data(), out.tensor.size());
                                benchmark::DoNotOptimize(out.tensor.data());
                            }
                        }));
        const double taken = seconds([&] {
            for (Output& out : outputs) {
                out.unpacker.run(out.wire, out.tensor);
                benchmark::DoNotOptimize(out.tensor.data());
            }
        });
        run = std::min(run, taken);
        state.SetIterationTime(taken);
    }
    state.counters["bytes"] = static_cast<double>(bytes);
    state.counters["GB/s"] = static_cast<double>(bytes) / run / 1e9;
    state.counters["of_memcpy"] = copy / run;
}

void add(const std::string& name, std::vector<Layer> layers) {
    benchmark::RegisterBenchmark(
        name.c_str(),
        [layers = std::move(layers)](benchmark::State& state) { unpack(state, layers); })
        ->UseManualTime()
        ->Iterations(20);
}

void add_model(const std::filesystem::path& path) {
    const auto model = model::load_tflite(path.string());
    if (!model) {
        fmt::print(stderr, "{}\n", model.error().message());
        return;
    }
    const auto packages = packages_of(*model);
    if (!packages) return;
    for (const auto& op : *packages) {
        const Executable* executable = op.package.find(ExecutableType::execution_only);
        if (executable == nullptr) continue;
        const std::string name = path.filename().string().substr(0, 12);
        add(fmt::format("{} all outputs", name), executable->outputs);
        for (const Layer& layer : executable->outputs) {
            add(fmt::format("{} {:.24} {}x{}x{}", name, layer.name, layer.y_dim, layer.x_dim,
                            layer.z_dim),
                {layer});
        }
    }
}

}  // namespace
}  // namespace reef::edgetpu

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    const char* shared = std::getenv("REEF_SHARED");
    for (const char* name : reef::edgetpu::models) {
        reef::edgetpu::add_model(std::filesystem::path(shared ? shared : "../shared") /
                                 "data/models" / name);
    }
    benchmark::RunSpecifiedBenchmarks();
}
