// Output re-layout of the Edge TPU's outputs next to memcpy of the same bytes, as the share of
// memcpy's bandwidth that OutputUnpacker reaches: of_memcpy with the bytes in the processor's
// caches beyond the nearest, where a transfer leaves them (copies of them in turn, more than the
// nearest two caches hold); of_hot_memcpy with the same bytes again and again.
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
    std::size_t copies = 1;
    std::vector<std::byte> wire, tensor;  ///< of all copies

    Bytes wire_of(std::size_t copy) const {
        return Bytes(wire).subspan(copy % copies * unpacker.wire_bytes(), unpacker.wire_bytes());
    }
    MutableBytes tensor_of(std::size_t copy) {
        return MutableBytes(tensor).subspan(copy % copies * unpacker.tensor_bytes(),
                                            unpacker.tensor_bytes());
    }
};

/// The best mean of several passes: the machine may be busy.
template <class Work>
double seconds(std::size_t times, Work&& work) {
    double best = 1;
    for (int pass = 0; pass < 10; ++pass) {
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < times; ++i) {
            work(i);
            benchmark::ClobberMemory();
        }
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        best = std::min(best, taken.count() / static_cast<double>(times));
    }
    return best;
}

struct Times {
    double memcpy = 0, run = 0;  ///< seconds
};

Times measure(std::span<const OutputUnpacker> unpackers, std::size_t copies) {
    std::vector<Output> outputs;
    for (const OutputUnpacker& unpacker : unpackers) {
        outputs.push_back({unpacker, copies,
                           std::vector<std::byte>(unpacker.wire_bytes() * copies, std::byte{1}),
                           std::vector<std::byte>(unpacker.tensor_bytes() * copies)});
    }
    const std::size_t times = std::max<std::size_t>(copies, 500);
    Times out;
    out.memcpy = seconds(times, [&](std::size_t i) {
        for (Output& each : outputs) {
            const MutableBytes tensor = each.tensor_of(i);
            std::memcpy(tensor.data(), each.wire_of(i).data(), tensor.size());
        }
    });
    out.run = seconds(times, [&](std::size_t i) {
        for (Output& each : outputs) each.unpacker.run(each.wire_of(i), each.tensor_of(i));
    });
    return out;
}

void unpack(benchmark::State& state, std::span<const Layer> layers) {
    std::vector<OutputUnpacker> unpackers;
    std::size_t bytes = 0;
    for (const Layer& layer : layers) {
        auto unpacker = OutputUnpacker::prepare(layer);
        if (!unpacker) return state.SkipWithError(unpacker.error().message().c_str());
        bytes += unpacker->tensor_bytes();
        unpackers.push_back(std::move(*unpacker));
    }
    constexpr std::size_t beyond_near_caches = 8 << 20;
    Times far, near;
    for (auto _ : state) {
        far = measure(unpackers, 1 + beyond_near_caches / (2 * bytes));
        near = measure(unpackers, 1);
        state.SetIterationTime(far.run);
    }
    state.counters["bytes"] = static_cast<double>(bytes);
    state.counters["GB/s"] = static_cast<double>(bytes) / far.run / 1e9;
    state.counters["of_memcpy"] = far.memcpy / far.run;
    state.counters["of_hot_memcpy"] = near.memcpy / near.run;
}

void add(const std::string& name, std::vector<Layer> layers) {
    benchmark::RegisterBenchmark(
        name.c_str(),
        [layers = std::move(layers)](benchmark::State& state) { unpack(state, layers); })
        ->UseManualTime()
        ->Iterations(1);
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
