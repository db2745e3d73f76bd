#include "peers/child.h"

#include <fcntl.h>
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
    return Child(*pid, std::move(to), std::move(from));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
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
        return fail(Cause::io_failed, "the program has ended");
    return {};
}

Result<std::string> Child::read_line(std::chrono::milliseconds most_silence) {
    const int from = ::fileno(from_.get());
    std::size_t end = 0;
    while ((end = read_.find('\n')) == std::string::npos) {
        pollfd readable{.fd = from, .events = POLLIN, .revents = 0};
        if (::poll(&readable, 1, static_cast<int>(most_silence.count())) == 0) {
            ::kill(pid_, SIGKILL);
            return fail(Cause::io_failed, "the program said nothing for too long and was killed",
                        {},
                        "run the benchmark again, without a real-time priority where it has one");
        }
        std::array<char, 4096> some{};
        const ssize_t count = ::read(from, some.data(), some.size());
        if (count <= 0) return fail(Cause::io_failed, "the program has ended");
        read_.append(some.data(), static_cast<std::size_t>(count));
    }
    std::string line = read_.substr(0, end);
    read_.erase(0, end + 1);
    return line;
}

}  // namespace reef::peers
