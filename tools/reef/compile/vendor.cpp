// The vendor's own compiler, where it is installed.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "compile/against.h"

namespace reef::tool {
namespace {

/// What it prints goes to our diagnostics: our output is ours.
Result<int> run_program(const std::vector<std::string>& arguments) {
    std::vector<char*> words;
    for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    pid_t child = 0;
    const int error = posix_spawnp(&child, words.front(), &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return fail(error == ENOENT ? Cause::not_found : Cause::io_failed, std::strerror(error),
                    arguments.front());
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return fail(Cause::io_failed, std::strerror(errno), arguments.front());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<std::string> compile_with_vendor(const chip::Compiler& compiler, const std::string& model,
                                        const std::string& folder) {
    const auto vendor = compiler.vendor();
    if (!vendor)
        return fail(Cause::unsupported, fmt::format("no compiler of the vendor's is known for '{}'",
                                                    compiler.family()));
    std::vector<std::string> words{std::string(vendor->program)};
    for (const auto word : vendor->arguments) words.emplace_back(word);
    words.push_back(folder);
    words.push_back(model);
    const auto code = run_program(words);
    if (!code && code.error().cause == Cause::not_found)
        return fail(Cause::unsupported, fmt::format("'{}' is not installed", vendor->program), {},
                    std::string(vendor->hint));
    if (!code) return std::unexpected(code.error());
    if (*code != 0)
        return fail(Cause::io_failed, fmt::format("'{}' ended with {}", vendor->program, *code),
                    model);
    const auto stem = std::filesystem::path(model).stem().string();
    const auto made = std::filesystem::path(folder) / (stem + std::string(vendor->suffix));
    std::error_code unknown;
    if (!std::filesystem::exists(made, unknown))
        return fail(Cause::io_failed,
                    fmt::format("'{}' has not written {}", vendor->program, made.string()), model);
    return made.string();
}

}  // namespace reef::tool
