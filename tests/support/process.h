// Runs a program and keeps what it said.
#pragma once

#include <string>
#include <vector>

namespace reef::test {

struct ProcessResult {
    int exit_code = -1;  ///< 128 + signal when a signal ended it
    std::string out;
    std::string err;
};

struct ProcessOptions {
    std::string stdin_text{};                ///< what standard input holds
    std::vector<std::string> environment{};  ///< "NAME=value", added to the test's own
    std::string stdout_path{};               ///< a file (/dev/full) in place of capturing
    bool terminal = false;                   ///< standard output is a terminal
    bool error_terminal = false;             ///< standard error is a terminal
    bool close_stdout_reader = false;        ///< standard output is a pipe that nobody reads
};

/// Throws std::runtime_error when the program cannot be started.
[[nodiscard]] ProcessResult run_process(const std::vector<std::string>& arguments,
                                        const ProcessOptions& options = {});

}  // namespace reef::test
