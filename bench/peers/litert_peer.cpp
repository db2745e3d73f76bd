#include "peers/litert_peer.h"

#include <fmt/format.h>

#include <cstdlib>

#include "peers/child.h"
#include "peers/simd_limit.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"

namespace reef::peers {
namespace {

std::string program() {
    return find_program("REEF_LITERT_BENCHMARK", "benchmark_model");
}

/// The number behind `key` in "count=3 first=120 min=..."; 0: there is none.
double number_behind(std::string_view line, std::string_view key) {
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos) return 0;
    return std::atof(std::string(line.substr(at + key.size())).c_str());
}

}  // namespace

std::string why_no_litert() {
    if (program().empty())
        return "no benchmark_model on the PATH, and REEF_LITERT_BENCHMARK names none";
    // Its XNNPACK follows no option of ours.
    if (simd_is_limited())
        return "it cannot be limited to the instruction set that REEF_SIMD names";
    return {};
}

Result<double> least_microseconds(std::string_view log) {
    const std::size_t at = log.rfind("count=");
    if (at == std::string_view::npos)
        return fail(Cause::io_failed, "the program printed no line of counts");
    const std::string_view line = log.substr(at, log.find('\n', at) - at);
    // Of one run, and of equal ones, it prints "count=1 curr=120" alone.
    double least = number_behind(line, " min=");
    if (line.find(" min=") == std::string_view::npos) least = number_behind(line, " curr=");
    if (!(least > 0))
        return fail(Cause::io_failed, fmt::format("the program says no time: '{}'", line));
    return least;
}

Result<LitertPeer> LitertPeer::create(const model::Model& model, int threads) {
    ScratchFolder folder = REEF_TRY(ScratchFolder::create());
    const std::string file = folder.file("network.tflite");
    REEF_CHECK(write_file(file, REEF_TRY(model::write_tflite(model))));
    return LitertPeer(std::move(folder), {program(), "--graph=" + file, "--use_xnnpack=true",
                                          fmt::format("--num_threads={}", threads)});
}

Result<double> LitertPeer::turn(int runs) const {
    // A second at least is what it does by itself. A new process finds caches and branches cold.
    auto command = command_;
    command.insert(command.end(), {fmt::format("--num_runs={}", runs), "--min_secs=0",
                                   "--warmup_runs=3", "--warmup_min_secs=0.1"});
    const std::string log = REEF_TRY(output_of(command));
    constexpr double milliseconds = 1e-3;
    return REEF_TRY(least_microseconds(log)) * milliseconds;
}

}  // namespace reef::peers
