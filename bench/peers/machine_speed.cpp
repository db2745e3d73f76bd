#include "peers/machine_speed.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace reef::peers {
namespace {

template <typename Work>
double nanoseconds(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    return taken.count();
}

/// The least nanoseconds of a few tries.
template <typename Work>
double least_nanoseconds(const Work& work) {
    double least = 1e18;
    for (int i = 0; i < 5; ++i) least = std::min(least, nanoseconds(work));
    return least;
}

constexpr std::uint64_t turns = 200'000;

/// Ten additions a turn, each of which waits for the one before.
void add_in_order() {
#if defined(__x86_64__)
    std::uint64_t sum = 0, left = turns;
    asm volatile(
        "1: add $1, %0; add $1, %0; add $1, %0; add $1, %0; add $1, %0;"
        "add $1, %0; add $1, %0; add $1, %0; add $1, %0; add $1, %0; dec %1; jnz 1b"
        : "+r"(sum), "+r"(left)
        :
        : "cc");
#endif
}

#if defined(__x86_64__)
/// Sixteen sums that do not wait for each other.
#define REEF_SIXTEEN(instruction)                                                       \
    instruction "%%zmm0\n" instruction "%%zmm1\n" instruction "%%zmm2\n" instruction    \
                "%%zmm3\n" instruction "%%zmm4\n" instruction "%%zmm5\n" instruction    \
                "%%zmm6\n" instruction "%%zmm7\n" instruction "%%zmm8\n" instruction    \
                "%%zmm9\n" instruction "%%zmm10\n" instruction "%%zmm11\n" instruction  \
                "%%zmm12\n" instruction "%%zmm13\n" instruction "%%zmm14\n" instruction \
                "%%zmm15\n"
#define REEF_CLOBBERED                                                                             \
    "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

__attribute__((target("avx512f"))) void multiply_bytes(std::uint64_t left) {
    asm volatile("1:" REEF_SIXTEEN("vpdpbusd %%zmm16, %%zmm17, ") "dec %0; jnz 1b"
                 : "+r"(left)
                 :
                 : REEF_CLOBBERED);
}

/// Eight that do not wait for each other.
__attribute__((target("avx2"))) void multiply_bytes_by_avx2(std::uint64_t left) {
    asm volatile(
        "1: vpmaddubsw %%ymm8, %%ymm0, %%ymm0; vpmaddubsw %%ymm8, %%ymm1, %%ymm1;"
        "vpmaddubsw %%ymm8, %%ymm2, %%ymm2; vpmaddubsw %%ymm8, %%ymm3, %%ymm3;"
        "vpmaddubsw %%ymm8, %%ymm4, %%ymm4; vpmaddubsw %%ymm8, %%ymm5, %%ymm5;"
        "vpmaddubsw %%ymm8, %%ymm6, %%ymm6; vpmaddubsw %%ymm8, %%ymm7, %%ymm7;"
        "dec %0; jnz 1b"
        : "+r"(left)
        :
        : REEF_CLOBBERED);
}

__attribute__((target("avx512f"))) void multiply_floats() {
    std::uint64_t left = turns;
    asm volatile("1:" REEF_SIXTEEN("vfmadd231ps %%zmm16, %%zmm17, ") "dec %0; jnz 1b"
                 : "+r"(left)
                 :
                 : REEF_CLOBBERED);
}
#endif

std::uint64_t elements(const model::Subgraph& graph, model::TensorIndex index) {
    return static_cast<std::uint64_t>(
        graph.tensors[static_cast<std::size_t>(index)].element_count());
}

}  // namespace

MachineSpeed measure_machine() {
    MachineSpeed speed;
#if defined(__x86_64__)
    constexpr double adds = 10.0 * turns, registers = 16.0 * turns, bytes = 64, floats = 16;
    speed.clock_ghz = adds / least_nanoseconds(add_in_order);
    if (__builtin_cpu_supports("avx512vnni"))
        speed.byte_products_ns =
            registers * bytes / least_nanoseconds([] { multiply_bytes(turns); });
    if (__builtin_cpu_supports("avx512f"))
        speed.float_products_ns = registers * floats / least_nanoseconds(multiply_floats);
#else
    (void)add_in_order;
    (void)least_nanoseconds<void (*)()>;
#endif
    return speed;
}

std::optional<double> gain_of_two_threads() {
#if defined(__x86_64__)
    cpu_set_t cores;
    CPU_ZERO(&cores);
    const bool has_two =
        ::sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) >= 2;
    if (!has_two || !__builtin_cpu_supports("avx2")) return std::nullopt;
    const auto multiply =
        __builtin_cpu_supports("avx512vnni") ? multiply_bytes : multiply_bytes_by_avx2;
    constexpr std::size_t tries = 40;
    constexpr std::uint64_t pieces = 100;
    const auto own = [&] {
        for (std::size_t i = 0; i < tries; ++i) multiply(turns);
    };
    const double one = nanoseconds(own);
    std::atomic<std::uint64_t> of_other = 0;
    std::atomic<bool> over = false;
    const std::jthread other([&] {
        for (std::uint64_t piece = 1; !over.load(); ++piece) {
            multiply(turns / pieces);
            of_other.store(piece, std::memory_order_relaxed);
        }
    });
    // As long as the system may take to give each thread a core of its own.
    constexpr double warm_up_ns = 60e6;
    for (double warm = 0; warm < warm_up_ns;) warm += nanoseconds([&] { multiply(turns); });
    const std::uint64_t before = of_other.load();
    const double both = nanoseconds(own);
    const auto others = static_cast<double>(of_other.load() - before);
    over.store(true);
    // Under a real-time priority the system may leave it on the caller's core, where it waits.
    constexpr double owns = tries * pieces, least = 0.05;
    if (others < least * owns) return std::nullopt;
    return one / both * (1 + others / owns);
#else
    return std::nullopt;
#endif
}

std::uint64_t products_of(const model::Subgraph& graph) {
    std::uint64_t products = 0;
    for (const model::Operator& op : graph.operators) {
        if (op.inputs.size() < 2 || op.outputs.empty()) continue;
        const auto out = elements(graph, op.outputs[0]);
        const auto& weights = graph.tensors[static_cast<std::size_t>(op.inputs[1])].shape;
        if (op.code.builtin == model::Op::conv_2d && weights.size() == 4)
            products += out * static_cast<std::uint64_t>(weights[1] * weights[2] * weights[3]);
        if (op.code.builtin == model::Op::depthwise_conv_2d && weights.size() == 4)
            products += out * static_cast<std::uint64_t>(weights[1] * weights[2]);
        if (op.code.builtin == model::Op::fully_connected && weights.size() == 2)
            products += out * static_cast<std::uint64_t>(weights[1]);
    }
    return products;
}

}  // namespace reef::peers
