#include "peers/memory_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string_view>

#include "peers/child.h"
#include "peers/networks.h"
#include "peers/random_input.h"
#include "peers/scratch_folder.h"
#include "peers/tflite_peer.h"
#include "peers/xnnpack_placer.h"
#include "reef/base/file.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/tflite.h"

namespace reef::peers {
namespace {

using graph::Executor;

/// Since the process began this program: what its parent took does not count.
Result<std::uint64_t> most_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("VmHWM:")) continue;
        const auto digit = line.find_first_of("0123456789");
        std::uint64_t kilobytes = 0;
        std::from_chars(line.data() + digit, line.data() + line.size(), kilobytes);
        return kilobytes * 1024;
    }
    return fail(Cause::io_failed, "the system does not say how much memory was resident");
}

Result<Executor> executor_of(const std::string& path, pthreadpool* pool, bool xnnpack,
                             int threads) {
    const auto [name, model] = REEF_TRY(load_network(path));
    graph::ExecutorOptions options{.placers = {cpu::placer()}, .threads = threads};
    if (xnnpack) options.placers.insert(options.placers.begin(), xnnpack_placer(pool));
    return Executor::create(model, options);
}

Result<std::uint64_t> memory_of(const std::string& side, const std::string& path,
                                const Options& options) {
    Child child = REEF_TRY(Child::start({"/proc/self/exe", "--memory-of", side, "--threads",
                                         std::to_string(options.threads), path}));
    const std::string line = REEF_TRY(child.read_line());
    std::uint64_t bytes = 0;
    std::from_chars(line.data(), line.data() + line.size(), bytes);
    if (bytes == 0) return fail(Cause::io_failed, fmt::format("'{}' in place of bytes", line));
    return bytes;
}

template <class Side>
Status run_twice(Side& side) {
    for (int run = 0; run < 2; ++run) REEF_CHECK(side.run());
    return {};
}

Status run_executor(const std::string& side, const std::string& path, int threads) {
    const ThreadPool pool(threads == 1 ? nullptr
                                       : pthreadpool_create(static_cast<std::size_t>(threads)));
    auto executor = REEF_TRY(executor_of(path, pool.get(), side == "xnnpack", threads));
    fill(executor);
    return run_twice(executor);
}

Status run_tflite(const std::string& side, const std::string& path, int threads) {
    const auto kernels = side == "tflite" ? TfliteKernels::builtin : TfliteKernels::xnnpack;
    TflitePeer peer = REEF_TRY(TflitePeer::open(path, kernels, threads));
    // Of float32, too, ordinary numbers.
    constexpr std::byte any{0x3F};
    for (std::size_t i = 0; i < peer.input_count(); ++i) std::ranges::fill(peer.input(i), any);
    return run_twice(peer);
}

std::string mebibytes(const Result<std::uint64_t>& bytes) {
    constexpr double mebi = 1 << 20;
    return bytes ? fmt::format("{:.1f}", static_cast<double>(*bytes) / mebi) : "-";
}

std::string ratio(std::uint64_t ours, const Result<std::uint64_t>& theirs) {
    if (!theirs) return "-";
    return fmt::format("{:.2f}", static_cast<double>(ours) / static_cast<double>(*theirs));
}

Status print_network(const std::string& path, const Options& options) {
    const ScratchFolder folder = REEF_TRY(ScratchFolder::create());
    const std::string file = folder.file("network.tflite");
    const auto [name, model] = REEF_TRY(load_network(path));
    REEF_CHECK(write_file(file, REEF_TRY(model::write_tflite(model))));
    const std::uint64_t reef = REEF_TRY(memory_of("reef", file, options));
    fmt::print("{:<52} {:>8}", name, mebibytes(reef));
    for (const char* side : {"xnnpack", "tflite", "tflite-xnnpack"}) {
        const bool is_here = side == std::string_view("xnnpack") || why_no_tflite().empty();
        const auto theirs = is_here ? memory_of(side, file, options)
                                    : Result<std::uint64_t>(fail(Cause::not_found, ""));
        fmt::print(" {:>14} {:>6}", mebibytes(theirs), ratio(reef, theirs));
    }
    fmt::print("\n");
    return {};
}

}  // namespace

Status print_memory_of(const std::string& side, const std::string& path, const Options& options) {
    const auto run = side.starts_with("tflite") ? run_tflite : run_executor;
    REEF_CHECK(run(side, path, options.threads));
    fmt::print("{}\n", REEF_TRY(most_resident_bytes()));
    return {};
}

Status print_memory(const Options& options) {
    fmt::print("{} thread{}; MiB resident at most, of a process for each; ratios Reef / peer\n",
               options.threads, options.threads == 1 ? "" : "s");
    fmt::print("{:<52} {:>8} {:>14} {:>6} {:>14} {:>6} {:>14} {:>6}\n", "network", "Reef",
               "XNNPACK", "ratio", "TFLite", "ratio", "TFLite XNNPACK", "ratio");
    for (const std::string& path : options.models) REEF_CHECK(print_network(path, options));
    if (const std::string reason = why_no_tflite(); !reason.empty())
        fmt::print("without TFLite: {}\n", reason);
    return {};
}

}  // namespace reef::peers
