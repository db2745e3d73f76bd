// A folder for the files of another program, and that program's run.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outputs/file_output.h"
#include "reef/base/result.h"

namespace reef::tool {

/// A folder of its own among the system's temporary ones, gone with it: signals wait for that.
class WorkFolder {
  public:
    /// "reef-PURPOSE-" begins its name. Errors: io_failed.
    [[nodiscard]] static Result<WorkFolder> make(const std::string& purpose);
    WorkFolder(WorkFolder&& other) noexcept
        : wait_(std::move(other.wait_)), path_(std::exchange(other.path_, {})) {}
    WorkFolder& operator=(WorkFolder&&) = delete;
    ~WorkFolder();
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    explicit WorkFolder(std::unique_ptr<SignalsWait> wait) : wait_(std::move(wait)) {}
    std::unique_ptr<SignalsWait> wait_;
    std::string path_;
};

/// Runs a program to its end, with what it prints among our diagnostics: our output is ours. A
/// signal that waits ends it and all it has started: SIGTERM, and SIGKILL after `patience`. Gives
/// its exit code, 128 + signal when one ended it. Errors: not_found, io_failed, cancelled.
[[nodiscard]] Result<int> run_program(const std::vector<std::string>& arguments,
                                      std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace reef::tool
