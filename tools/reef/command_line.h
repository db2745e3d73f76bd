// The reef command: its verbs and its exit codes.
#pragma once

namespace reef::tool {

/// Parses the command line, runs the verb, prints its text or its error; gives the exit code.
[[nodiscard]] int run_command(int argc, const char* const* argv);

}  // namespace reef::tool
