// Edge TPU disassembly: instruction bytes per second, next to memcpy of the same bytes.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "reef/base/file.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/listing.h"
#include "reef/runtime/program_streams.h"

namespace reef::edgetpu {
namespace {

// The longest program of a compiled model of the reference data, or of REEF_PROGRAM.
std::vector<std::byte> program() {
    const char* named = std::getenv("REEF_PROGRAM");
    const char* shared = std::getenv("REEF_SHARED");
    const std::filesystem::path path =
        named ? named
              : std::filesystem::path(shared ? shared : "../shared") /
                    "data/models/mobilenet_v1_0.5_160_quant_edgetpu.tflite";
    const auto file = read_file(path.string());
    if (!file) return {};
    const auto programs = runtime::program_streams_of(*file, "edgetpu");
    if (!programs) return {};
    Bytes longest;
    for (const auto& p : *programs) {
        for (const auto chunk : p.chunks) {
            if (chunk.size() > longest.size()) longest = chunk;
        }
    }
    return {longest.begin(), longest.end()};
}

void count_bytes(benchmark::State& state, std::size_t size) {
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                            static_cast<std::int64_t>(size));
}

// Seconds for one memcpy of these bytes.
double copy_seconds(Bytes bytes) {
    constexpr int times = 2000;
    std::vector<std::byte> out(bytes.size());
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
        std::memcpy(out.data(), bytes.data(), bytes.size());
        benchmark::DoNotOptimize(out.data());
        benchmark::ClobberMemory();
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / times;
}

void disassemble_program(benchmark::State& state, const TextOptions& options) {
    const auto bytes = program();
    if (bytes.empty()) return state.SkipWithError("no program: set REEF_SHARED or REEF_PROGRAM");
    std::size_t text = 0;
    for (auto _ : state) {
        const auto result = disassemble(bytes, options);
        text = result.size();
        benchmark::DoNotOptimize(result.data());
    }
    count_bytes(state, bytes.size());
    state.counters["memcpy_times"] =
        benchmark::Counter(copy_seconds(bytes) * static_cast<double>(state.iterations()),
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    state.counters["text_per_byte"] = static_cast<double>(text) / static_cast<double>(bytes.size());
}

void plain(benchmark::State& state) {
    disassemble_program(state, {});
}
void symbolic(benchmark::State& state) {
    disassemble_program(state, {.symbolic = true});
}

void assemble_program(benchmark::State& state) {
    const auto bytes = program();
    if (bytes.empty()) return state.SkipWithError("no program: set REEF_SHARED or REEF_PROGRAM");
    const auto text = disassemble(bytes, {});
    for (auto _ : state) benchmark::DoNotOptimize(assemble(text));
    count_bytes(state, bytes.size());
}

void copy(benchmark::State& state) {
    const auto bytes = program();
    if (bytes.empty()) return state.SkipWithError("no program: set REEF_SHARED or REEF_PROGRAM");
    std::vector<std::byte> out(bytes.size());
    for (auto _ : state) {
        std::memcpy(out.data(), bytes.data(), bytes.size());
        benchmark::DoNotOptimize(out.data());
        benchmark::ClobberMemory();
    }
    count_bytes(state, bytes.size());
}

BENCHMARK(copy)->Name("edgetpu_text/memcpy");
BENCHMARK(plain)->Name("edgetpu_text/disassemble");
BENCHMARK(symbolic)->Name("edgetpu_text/disassemble_symbolic");
BENCHMARK(assemble_program)->Name("edgetpu_text/assemble");

}  // namespace
}  // namespace reef::edgetpu
