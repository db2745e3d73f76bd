#include "peers/memory_use.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>

#include "peers/child.h"
#include "peers/networks.h"
#include "peers/random_input.h"
#include "peers/xnnpack_placer.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

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

}  // namespace

Status print_memory_of(const std::string& side, const std::string& path, const Options& options) {
    const ThreadPool pool(options.threads == 1
                              ? nullptr
                              : pthreadpool_create(static_cast<std::size_t>(options.threads)));
    auto executor = REEF_TRY(executor_of(path, pool.get(), side == "xnnpack", options.threads));
    fill(executor);
    for (int run = 0; run < 2; ++run) REEF_CHECK(executor.run());
    fmt::print("{}\n", REEF_TRY(most_resident_bytes()));
    return {};
}

Status print_memory(const Options& options) {
    constexpr double mebi = 1 << 20;
    fmt::print("{} thread{}; MiB resident at most, of a process for each\n", options.threads,
               options.threads == 1 ? "" : "s");
    fmt::print("{:<52} {:>8} {:>8} {:>6}\n", "network", "Reef", "XNNPACK", "ratio");
    for (const std::string& path : options.models) {
        const auto reef = static_cast<double>(REEF_TRY(memory_of("reef", path, options)));
        const auto xnnpack = static_cast<double>(REEF_TRY(memory_of("xnnpack", path, options)));
        fmt::print("{:<52} {:>8.1f} {:>8.1f} {:>6.2f}\n", name_of_network(path), reef / mebi,
                   xnnpack / mebi, reef / xnnpack);
    }
    return {};
}

}  // namespace reef::peers
