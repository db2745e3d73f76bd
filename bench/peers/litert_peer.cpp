#include "peers/litert_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "peers/child.h"
#include "peers/simd_limit.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"

extern char** environ;

namespace reef::peers {
namespace {

std::string program() {
    return find_program("REEF_LITERT_BENCHMARK", "benchmark_model");
}

std::string_view last_line(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    return text.substr(text.rfind('\n') + 1);
}

/// What a program prints on both its streams.
Result<std::string> output_of(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Cause::io_failed, "no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    const auto child = spawn(command, actions);
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t n = 0; (n = ::read(ends[0], piece.data(), piece.size())) > 0;)
        text.append(piece.data(), static_cast<std::size_t>(n));
    ::close(ends[0]);
    if (!child) return std::unexpected(child.error());
    int status = 1;
    if (::waitpid(*child, &status, 0) != *child || status != 0)
        return fail(Cause::io_failed, fmt::format("the program failed: {}", last_line(text)),
                    command[0]);
    return text;
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
