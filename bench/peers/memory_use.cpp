#include "peers/memory_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

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

struct Peer {
    const char* side;  ///< of print_memory_of()
    const char* name;
    bool is_tflite;
};
constexpr std::array<Peer, 3> peers{{{"xnnpack", "XNNPACK", false},
                                     {"tflite", "TFLite", true},
                                     {"tflite-xnnpack", "TFLite XNNPACK", true}}};

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

/// Most resident bytes of a network, by side; nothing where a side is not here or does not take it.
struct Use {
    std::string network;
    std::uint64_t reef = 0;
    std::array<std::optional<std::uint64_t>, peers.size()> others{};
};

Result<Use> use_of(const std::string& path, const Options& options) {
    const ScratchFolder folder = REEF_TRY(ScratchFolder::create());
    const std::string file = folder.file("network.tflite");
    const auto [name, model] = REEF_TRY(load_network(path));
    REEF_CHECK(write_file(file, REEF_TRY(model::write_tflite(model))));
    Use use{.network = name, .reef = REEF_TRY(memory_of("reef", file, options))};
    for (std::size_t i = 0; i < peers.size(); ++i) {
        if (peers[i].is_tflite && !why_no_tflite().empty()) continue;
        if (const auto bytes = memory_of(peers[i].side, file, options)) use.others[i] = *bytes;
    }
    return use;
}

void print_head(const Options& options) {
    fmt::print("{} thread{}; MiB resident at most, of a process for each; ratios Reef / peer\n",
               options.threads, options.threads == 1 ? "" : "s");
    fmt::print("{:<52} {:>8}", "network", "Reef");
    for (const Peer& peer : peers) fmt::print(" {:>14} {:>6}", peer.name, "ratio");
    fmt::print("\n");
}

void print_text(const Use& use) {
    constexpr double mebi = 1 << 20;
    fmt::print("{:<52} {:>8.1f}", use.network, static_cast<double>(use.reef) / mebi);
    for (const auto& bytes : use.others) {
        if (bytes)
            fmt::print(" {:>14.1f} {:>6.2f}", static_cast<double>(*bytes) / mebi,
                       static_cast<double>(use.reef) / static_cast<double>(*bytes));
        else
            fmt::print(" {:>14} {:>6}", "-", "-");
    }
    fmt::print("\n");
}

nlohmann::ordered_json json_of(const Use& use) {
    nlohmann::ordered_json sides = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < peers.size(); ++i)
        if (use.others[i])
            sides.push_back(
                {{"name", peers[i].name},
                 {"bytes", *use.others[i]},
                 {"ratio", static_cast<double>(use.reef) / static_cast<double>(*use.others[i])}});
    return {{"network", use.network}, {"reef_bytes", use.reef}, {"peers", sides}};
}

}  // namespace

Status print_memory_of(const std::string& side, const std::string& path, const Options& options) {
    const auto run = side.starts_with("tflite") ? run_tflite : run_executor;
    REEF_CHECK(run(side, path, options.threads));
    fmt::print("{}\n", REEF_TRY(most_resident_bytes()));
    return {};
}

Status print_memory(const Options& options) {
    auto networks = nlohmann::ordered_json::array();
    if (!options.json) print_head(options);
    for (const std::string& path : options.models) {
        const Use use = REEF_TRY(in_place(use_of(path, options), path));
        if (options.json)
            networks.push_back(json_of(use));
        else
            print_text(use);
    }
    const std::string reason = why_no_tflite();
    if (!options.json) {
        if (!reason.empty()) fmt::print("without TFLite: {}\n", reason);
        return {};
    }
    const nlohmann::ordered_json document{
        {"schema_version", 1},
        {"threads", options.threads},
        {"without_tflite", reason.empty() ? nullptr : nlohmann::ordered_json(reason)},
        {"networks", networks}};
    fmt::print("{}\n", document.dump(2));
    return {};
}

}  // namespace reef::peers
