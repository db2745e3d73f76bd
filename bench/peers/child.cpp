#include "peers/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <ranges>
#include <string_view>
#include <utility>

extern char** environ;

namespace reef::peers {

std::string find_program(const char* variable, const char* name) {
    if (const char* named = std::getenv(variable)) return named;
    const char* path = std::getenv("PATH");
    for (const auto part : std::views::split(std::string_view(path ? path : ""), ':')) {
        const std::filesystem::path file =
            std::filesystem::path(std::string(part.begin(), part.end())) / name;
        if (::access(file.c_str(), X_OK) == 0) return file.string();
    }
    return {};
}

Result<pid_t> spawn(const std::vector<std::string>& command, posix_spawn_file_actions_t& actions) {
    std::vector<char*> arguments;
    for (const std::string& argument : command)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    pid_t pid = 0;
    const int started =
        ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (started != 0) return fail(Cause::io_failed, "the program does not start", command[0]);
    return pid;
}

namespace {

/// Adds what the program says next to `text`; false: nothing more comes.
Result<bool> read_on(int from, pid_t pid, const std::string& program,
                     std::chrono::milliseconds most_silence, std::string& text) {
    pollfd readable{.fd = from, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, static_cast<int>(most_silence.count())) == 0) {
        ::kill(pid, SIGKILL);
        return fail(Cause::io_failed, "the program said nothing for too long and was killed",
                    program,
                    "run the benchmark again, without a real-time priority where it has one");
    }
    std::array<char, 4096> some{};
    const ssize_t count = ::read(from, some.data(), some.size());
    if (count <= 0) return false;
    text.append(some.data(), static_cast<std::size_t>(count));
    return true;
}

std::string_view last_line(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command,
                              std::chrono::milliseconds most_silence) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Cause::io_failed, "no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    const auto child = spawn(command, actions);
    ::close(ends[1]);
    std::string text;
    Result<bool> more = child.has_value();
    while (more && *more) more = read_on(ends[0], *child, command[0], most_silence, text);
    ::close(ends[0]);
    if (!child) return std::unexpected(child.error());
    int status = 1;
    const bool has_ended = ::waitpid(*child, &status, 0) == *child;
    if (!more) return std::unexpected(more.error());
    if (!has_ended || status != 0)
        return fail(Cause::io_failed, fmt::format("the program failed: {}", last_line(text)),
                    command[0]);
    return text;
}

Result<Child> Child::start(const std::vector<std::string>& command) {
    // A child that has ended is an error of write_line().
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0) return fail(Cause::io_failed, "no pipe");
    File to(::fdopen(in[1], "w"));
    if (::pipe2(out.data(), O_CLOEXEC) != 0) {
        ::close(in[0]);
        return fail(Cause::io_failed, "no pipe");
    }
    File from(::fdopen(out[0], "r"));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    const auto pid = spawn(command, actions);
    ::close(in[0]);
    ::close(out[1]);
    if (!pid) return std::unexpected(pid.error());
    return Child(*pid, command[0], std::move(to), std::move(from));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      program_(std::move(other.program_)),
      to_(std::move(other.to_)),
      from_(std::move(other.from_)),
      read_(std::move(other.read_)) {}

Child::~Child() {
    if (pid_ == 0) return;
    to_.reset();
    from_.reset();
    ::waitpid(pid_, nullptr, 0);
}

Status Child::write_line(const std::string& line) {
    if (std::fputs((line + "\n").c_str(), to_.get()) < 0 || std::fflush(to_.get()) != 0)
        return fail(Cause::io_failed, "the program has ended", program_);
    return {};
}

Result<std::string> Child::read_line(std::chrono::milliseconds most_silence) {
    const int from = ::fileno(from_.get());
    std::size_t end = 0;
    while ((end = read_.find('\n')) == std::string::npos) {
        if (!REEF_TRY(read_on(from, pid_, program_, most_silence, read_)))
            return fail(Cause::io_failed, "the program has ended", program_);
    }
    std::string line = read_.substr(0, end);
    read_.erase(0, end + 1);
    return line;
}

}  // namespace reef::peers
