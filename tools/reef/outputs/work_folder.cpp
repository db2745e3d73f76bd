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
    bool told = false;
    while (true) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) break;
        if (ended < 0 && errno != EINTR)
            return fail(Cause::io_failed, std::strerror(errno), arguments.front());
        if (SignalsWait::waiting() && !std::exchange(told, true)) ::kill(child, SIGTERM);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (SignalsWait::waiting())
        return fail(Cause::cancelled, "ended by a signal", arguments.front());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace reef::tool
