#include "outputs/work_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

namespace reef::tool {

namespace fs = std::filesystem;

Result<WorkFolder> WorkFolder::make(const std::string& purpose) {
    std::error_code error;
    WorkFolder folder(std::make_unique<SignalsWait>());
    std::string name = (fs::temp_directory_path(error) / ("reef-" + purpose + "-XXXXXX")).string();
    if (error || ::mkdtemp(name.data()) == nullptr)
        return fail(Cause::io_failed, "no temporary folder can be made", name);
    folder.path_ = std::move(name);
    return folder;
}

WorkFolder::~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
}

namespace {

/// Starts a program in a process group of its own, so that a signal reaches all that it starts; it
/// reads nothing, as only the terminal's own group may.
Result<pid_t> start(const std::vector<std::string>& arguments) {
    std::vector<char*> words;
    for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t child = 0;
    const int error =
        posix_spawnp(&child, words.front(), &actions, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return child;
    return fail(error == ENOENT ? Cause::not_found : Cause::io_failed, std::strerror(error),
                arguments.front());
}

/// Sends a process group SIGTERM once, and SIGKILL when it has not ended in time.
class Ending {
  public:
    Ending(pid_t group, std::chrono::milliseconds patience) : group_(group), patience_(patience) {}

    void insist() {
        const auto now = std::chrono::steady_clock::now();
        if (!told_) {
            told_ = now;
            ::kill(-group_, SIGTERM);
        } else if (now - *told_ > patience_) {
            ::kill(-group_, SIGKILL);
        }
    }

  private:
    pid_t group_;
    std::chrono::milliseconds patience_;
    std::optional<std::chrono::steady_clock::time_point> told_;
};

}  // namespace

Result<int> run_program(const std::vector<std::string>& arguments,
                        std::chrono::milliseconds patience) {
    const pid_t child = REEF_TRY(start(arguments));
    int status = 0;
    Ending ending(child, patience);
    while (true) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) break;
        if (ended < 0 && errno != EINTR)
            return fail(Cause::io_failed, std::strerror(errno), arguments.front());
        if (SignalsWait::waiting()) ending.insist();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (SignalsWait::waiting()) {
        // What it started and did not wait for.
        ::kill(-child, SIGKILL);
        return fail(Cause::cancelled, "ended by a signal", arguments.front());
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace reef::tool
