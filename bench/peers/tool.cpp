#include "peers/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "peers/child.h"

extern char** environ;

namespace reef::peers {
namespace {

/// What a program prints on both its streams; nothing when it does not end with 0.
std::optional<std::string> output_of(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& argument : command)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int started =
        ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t n = 0; (n = ::read(ends[0], piece.data(), piece.size())) > 0;)
        text.append(piece.data(), static_cast<std::size_t>(n));
    ::close(ends[0]);
    int status = 1;
    if (started != 0 || ::waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
    return text;
}

}  // namespace

std::vector<Tool> installed_tools(const std::string& model, int threads) {
    constexpr int runs = 50;
    std::vector<Tool> tools;
    if (const auto program = find_program("REEF_LITERT_BENCHMARK", "benchmark_model");
        !program.empty())
        tools.push_back(
            {.name = "LiteRT",
             .command = {program, "--graph=" + model, fmt::format("--num_threads={}", threads),
                         fmt::format("--num_runs={}", runs), "--use_xnnpack=true"},
             .before_average = "Inference (avg): ",
             .milliseconds = 1e-3});
    return tools;
}

std::optional<double> average_of(const Tool& tool) {
    const auto text = output_of(tool.command);
    if (!text) return std::nullopt;
    const std::size_t at = text->find(tool.before_average);
    if (at == std::string::npos) return std::nullopt;
    const double average = std::atof(text->c_str() + at + tool.before_average.size());
    return average > 0 ? std::optional(average * tool.milliseconds) : std::nullopt;
}

}  // namespace reef::peers
