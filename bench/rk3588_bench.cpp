// The RK3588: matrices packed for its NPU next to memcpy, what compiling and an inference on the
// simulated core cost. Processor time of one thread, medians of rounds that take turns.
#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include "quantile.h"
#include "reef/chip/compiler.h"
#include "reef/model/tflite.h"
#include "reef/rk3588/layout.h"
#include "reef/runtime/registry.h"
#include "reef/runtime/session.h"

namespace reef::rk3588 {
namespace {

using bench::median;

double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Work>
double seconds(Work&& work) {
    const double start = now();
    work();
    return now() - start;
}

/// Keeps the compiler from dropping copies whose result nobody reads.
void keep(const void* bytes) {
    asm volatile("" : : "r"(bytes) : "memory");
}

using Pack = void (*)(const MatrixStretch&, Bytes, MutableBytes);

/// A matrix of 4096 x 4096 elements, next to as many bytes by memcpy.
bool pack_matrix(const char* name, std::size_t element_bytes, bool by_columns, double bound,
                 Pack pack) {
    constexpr std::size_t side = 4096;
    constexpr int rounds = 15;
    const std::size_t size = side * side * element_bytes;
    std::vector<std::byte> matrix(size), packed(size), copy(size);
    std::mt19937 random(1);
    for (std::byte& b : matrix) b = static_cast<std::byte>(random());
    const MatrixStretch all{
        .k = side, .n = side, .first = 0, .count = side, .by_columns = by_columns};
    std::vector<double> packing, copying;
    for (int round = 0; round < rounds; ++round) {
        packing.push_back(seconds([&] {
            pack(all, matrix, packed);
            keep(packed.data());
        }));
        copying.push_back(seconds([&] {
            std::memcpy(copy.data(), matrix.data(), size);
            keep(copy.data());
        }));
    }
    const auto rate = [&](double time) { return 2 * static_cast<double>(size) / time * 1e-9; };
    const double own = rate(median(packing)), peer = rate(median(copying));
    fmt::print("pack {:<22} {:>6.2f} GB/s   memcpy {:>6.2f} GB/s   {:>5.1f} % (bound {:.0f} %)\n",
               name, own, peer, own / peer * 100, bound * 100);
    return own / peer >= bound;
}

struct Network {
    const char* name;
    double compile_ms, run_ms;  ///< bounds; 0: none
    int rounds;
};
constexpr Network networks[] = {
    {"mobilenet_v1_0.25_128_quant", 0, 150, 9},
    {"mobilenet_v1_0.5_160_quant", 100, 0, 9},
    {"deeplabv3_mnv2_dm05_pascal_quant", 500, 0, 3},
};

bool within(const char* what, const char* name, std::vector<double> times, double bound) {
    const double ms = median(std::move(times)) * 1e3;
    fmt::print("{} {:<34} {:>8.2f} ms", what, name, ms);
    if (bound != 0) fmt::print(" (bound {:.0f} ms)", bound);
    fmt::print("\n");
    return bound == 0 || ms <= bound;
}

Result<bool> measure(const Network& network, const std::string& path) {
    const auto plain = REEF_TRY(model::load_tflite(path));
    const auto* compiler = runtime::Registry::of_process().part<chip::Compiler>("rk3588");
    auto compiled = REEF_TRY(compiler->compile(plain, {})).model;
    runtime::SessionOptions options;
    options.devices = {{"rk3588:sim"}};
    options.threads = 1;
    auto session = REEF_TRY(runtime::Session::open(compiled, options));
    std::vector<double> compiling, running;
    Status done;
    for (int round = 0; round < network.rounds && done; ++round) {
        compiling.push_back(seconds([&] {
            if (const auto again = compiler->compile(plain, {}); !again)
                done = std::unexpected(again.error());
        }));
        running.push_back(seconds([&] {
            if (done) done = session.run();
        }));
    }
    REEF_CHECK(done);
    const bool compiles = within("compile", network.name, compiling, network.compile_ms);
    return within("run    ", network.name, running, network.run_ms) && compiles;
}

bool run(const char* shared) {
    // Layers keep their weights by columns; rows have to be turned, square by square.
    constexpr double bound = 0.5;
    bool kept = pack_matrix("int8 by columns", 1, true, bound, pack_int8_matrix);
    kept &= pack_matrix("int8 by rows", 1, false, bound, pack_int8_matrix);
    kept &= pack_matrix("fp16 by columns", 2, true, bound, pack_fp16_matrix);
    kept &= pack_matrix("fp16 by rows", 2, false, bound, pack_fp16_matrix);
    for (const Network& network : networks) {
        const auto path =
            std::filesystem::path(shared) / "data/models" / (std::string(network.name) + ".tflite");
        if (!std::filesystem::exists(path)) {
            fmt::print("{}: no reference data (REEF_SHARED)\n", network.name);
            continue;
        }
        const auto done = measure(network, path.string());
        if (!done) fmt::print("{}: {}\n", network.name, done.error().message());
        kept &= done && *done;
    }
    return kept;
}

}  // namespace
}  // namespace reef::rk3588

int main() {
    const char* shared = std::getenv("REEF_SHARED");
    return reef::rk3588::run(shared != nullptr ? shared : "../shared") ? 0 : 1;
}
