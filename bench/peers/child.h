// A program that answers lines with lines.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "reef/base/result.h"

namespace reef::peers {

/// The program that the variable names, or the first of that name on the PATH; else "".
[[nodiscard]] std::string find_program(const char* variable, const char* name);

/// Starts a program by its path, with this environment; the actions are used up. Errors: io_failed.
[[nodiscard]] Result<pid_t> spawn(const std::vector<std::string>& command,
                                  posix_spawn_file_actions_t& actions);

/// What a program prints on both its streams. Errors: io_failed when it fails, with its last line,
/// and when it says nothing for so long: it is killed then.
[[nodiscard]] Result<std::string> output_of(
    const std::vector<std::string>& command,
    std::chrono::milliseconds most_silence = std::chrono::minutes(5));

class Child {
  public:
    /// Its errors go where ours go. Errors: io_failed.
    [[nodiscard]] static Result<Child> start(const std::vector<std::string>& command);
    Child(Child&& other) noexcept;
    Child& operator=(Child&&) = delete;
    /// Closes its input and waits for it.
    ~Child();

    [[nodiscard]] Status write_line(const std::string& line);
    /// Errors: io_failed when it has ended, or says nothing for so long: it is killed then.
    [[nodiscard]] Result<std::string> read_line(
        std::chrono::milliseconds most_silence = std::chrono::minutes(5));

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    using File = std::unique_ptr<std::FILE, Close>;
    Child(pid_t pid, std::string program, File to, File from)
        : pid_(pid), program_(std::move(program)), to_(std::move(to)), from_(std::move(from)) {}

    pid_t pid_;
    std::string program_;
    File to_, from_;
    std::string read_{};  ///< and not yet returned
};

}  // namespace reef::peers
