// Files that a verb writes: known to be writable before the verb begins its work, never one that it
// reads, and whole or not there, whatever signal comes.
#pragma once

#include <csignal>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/base/result.h"

namespace reef::tool {

/// Refuses a file that cannot be written, and one of `inputs`. An empty path is none to write.
/// Errors: bad_argument for an input, not_found, io_failed.
[[nodiscard]] Status check_output_file(const std::string& path,
                                       const std::vector<std::string>& inputs);

/// Refuses two outputs of a verb that are one file, whether it is there yet or not; "-" and "" are
/// none. Errors: bad_argument.
[[nodiscard]] Status check_apart(const std::string& path, const std::string& other);

/// Refuses --output on standard output when JSON is to be printed there. Errors: bad_argument.
[[nodiscard]] Status check_apart_from_json(const std::string& path, bool json);

/// Refuses the file of a flag on standard output, where the verb prints in any case. Errors:
/// bad_argument.
[[nodiscard]] Status check_apart_from_print(const std::string& path, std::string_view flag);

/// Refuses a folder that can neither be written to nor made, "-", and one that holds an input under
/// a name that the verb writes: `prefix`, digits, ".npy". `inputs` may be as --input takes them.
[[nodiscard]] Status check_output_folder(const std::string& path, std::string_view prefix,
                                         const std::vector<std::string>& inputs);

/// Refuses a folder that cannot be written to, or made, with those above it, and "-". Errors:
/// bad_argument for the latter, io_failed.
[[nodiscard]] Status check_folder_and_above(const std::string& path);

/// While it lives, signals that end the command wait: they take effect with its end, when no
/// temporary file is left. Of several, the last to end is the one.
class SignalsWait {
  public:
    SignalsWait();
    SignalsWait(const SignalsWait&) = delete;
    SignalsWait& operator=(const SignalsWait&) = delete;
    ~SignalsWait();

    /// Whether one came.
    [[nodiscard]] static bool waiting();

  private:
    static constexpr int signals[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction before_[std::size(signals)] = {};
};

/// write_file() while signals wait.
[[nodiscard]] Status write_output(const std::string& path, Bytes contents);

/// All files of one command while signals wait: all are in place, or all as they were. Streams and
/// devices, which cannot be taken back, come first: where one fails no file is written. Paths that
/// are empty are none to write.
[[nodiscard]] Status write_outputs(std::span<const NamedContents> files);

/// The same below a folder, which is made with those above it and those that the names hold; what
/// was made goes again when a file cannot be written. Errors also: io_failed for a folder.
[[nodiscard]] Status write_outputs_below(const std::string& folder,
                                         std::span<const NamedContents> files);

}  // namespace reef::tool
