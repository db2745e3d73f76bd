#include "outputs/file_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "reef/base/file.h"

namespace reef::tool {
namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t waiting_signal = 0;
int waits = 0;  ///< SignalsWait that live

void remember(int signal) {
    waiting_signal = signal;
}

/// The file in "FILE", "NAME=FILE", "NAME=1x2xu8=@FILE".
fs::path file_of(std::string_view input) {
    std::error_code ignored;
    if (fs::exists(input, ignored)) return input;
    const std::size_t equal = input.rfind('=');
    if (equal != std::string_view::npos) input.remove_prefix(equal + 1);
    if (input.starts_with('@')) input.remove_prefix(1);
    return input;
}

bool same_file(const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored);
}

Status cannot_write(const std::string& path) {
    return fail(Cause::io_failed, fmt::format("cannot write: {}", std::strerror(errno)), path,
                "nothing was computed yet; name another place");
}

/// Of a file that is replaced, or made, in its folder.
Status check_folder_of(const std::string& path) {
    const fs::path file(path);
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
        return fail(Cause::not_found, fmt::format("no folder {}", folder), path,
                    "create the folder first");
    return ::access(folder.c_str(), W_OK | X_OK) == 0 ? Status() : cannot_write(path);
}

Status refuse_stream(const std::string& folder) {
    if (folder != "-") return {};
    return fail(Cause::bad_argument, "'-' is standard output, which holds no folder", {},
                "name a folder, or write ./-");
}

/// A folder and those above it that are not there, the innermost first.
std::vector<fs::path> missing_folders(fs::path folder) {
    std::vector<fs::path> missing;
    std::error_code ignored;
    for (; !folder.empty() && !fs::exists(folder, ignored); folder = folder.parent_path())
        missing.push_back(folder);
    return missing;
}

bool is_written_name(const fs::path& file, std::string_view prefix) {
    const std::string stem = file.stem().string();
    return file.extension() == ".npy" && stem.size() > prefix.size() && stem.starts_with(prefix) &&
           std::ranges::all_of(stem.substr(prefix.size()),
                               [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Status check_output_file(const std::string& path, const std::vector<std::string>& inputs) {
    if (path.empty() || path == "-") return {};
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (fs::is_directory(status))
        return fail(Cause::io_failed, "is a folder, not a file", path, "name a file");
    if (fs::exists(status) && !fs::is_regular_file(status))
        return ::access(path.c_str(), W_OK) == 0 ? Status() : cannot_write(path);
    for (const std::string& input : inputs)
        if (!input.empty() && same_file(path, file_of(input)))
            return fail(Cause::bad_argument, "is read, and would be overwritten", path,
                        "name another file");
    return check_folder_of(path);
}

Status check_apart(const std::string& path, const std::string& other) {
    if (path.empty() || path == "-" || other.empty() || other == "-") return {};
    std::error_code ignored;
    const bool same = same_file(path, other) ||
                      fs::weakly_canonical(path, ignored) == fs::weakly_canonical(other, ignored);
    if (!same) return {};
    return fail(Cause::bad_argument, "two outputs would be written to it", path,
                "name another file for one of them");
}

Status check_apart_from_json(const std::string& path, bool json) {
    if (!json || path != "-") return {};
    return fail(Cause::bad_argument, "standard output cannot hold the file and JSON", {},
                "give --output a name");
}

Status check_apart_from_print(const std::string& path, std::string_view flag) {
    if (path != "-") return {};
    return fail(Cause::bad_argument, "standard output cannot hold the file and what is printed",
                std::string(flag), "name a file");
}

Status check_output_folder(const std::string& path, std::string_view prefix,
                           const std::vector<std::string>& inputs) {
    if (path.empty()) return {};
    REEF_CHECK(refuse_stream(path));
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (!fs::exists(status)) return check_folder_of(path);
    if (!fs::is_directory(status))
        return fail(Cause::io_failed, "is a file, not a folder", path, "name a folder");
    for (const std::string& input : inputs) {
        // A link to a file that is written is not what is overwritten.
        const fs::path file = fs::weakly_canonical(file_of(input), ignored);
        if (is_written_name(file, prefix) && same_file(fs::path(path) / file.filename(), file))
            return fail(Cause::bad_argument,
                        fmt::format("{} is read, and would be overwritten", file.string()), path,
                        "name another folder");
    }
    return ::access(path.c_str(), W_OK | X_OK) == 0 ? Status() : cannot_write(path);
}

Status check_folder_and_above(const std::string& path) {
    REEF_CHECK(refuse_stream(path));
    std::error_code ignored;
    fs::path there(path);
    while (!there.empty() && !fs::exists(there, ignored)) there = there.parent_path();
    if (there.empty()) there = ".";
    if (!fs::is_directory(there, ignored))
        return fail(Cause::io_failed, fmt::format("{} is no folder", there.string()), path,
                    "nothing was computed yet; name another folder");
    return ::access(there.c_str(), W_OK | X_OK) == 0 ? Status() : cannot_write(path);
}

SignalsWait::SignalsWait() {
    if (waits++ > 0) return;
    waiting_signal = 0;
    struct sigaction action {};
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < std::size(signals); ++i) {
        ::sigaction(signals[i], nullptr, &before_[i]);
        // Who started the command may have had it ignore them.
        if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
    }
}

SignalsWait::~SignalsWait() {
    if (--waits > 0) return;
    for (std::size_t i = 0; i < std::size(signals); ++i)
        ::sigaction(signals[i], &before_[i], nullptr);
    if (waiting_signal != 0) std::raise(waiting_signal);
}

bool SignalsWait::waiting() {
    return waits > 0 && waiting_signal != 0;
}

Status write_output(const std::string& path, Bytes contents) {
    // Nothing stays of what is written as it is, and a pipe may be full for ever.
    std::error_code ignored;
    if (path == "-" || fs::is_other(path, ignored)) return write_file(path, contents);
    const SignalsWait wait;
    return write_file(path, contents);
}

Status write_outputs(std::span<const NamedContents> files) {
    std::vector<NamedContents> regular;
    std::error_code ignored;
    for (const NamedContents& file : files) {
        if (file.path == "-" || fs::is_other(file.path, ignored))
            REEF_CHECK(write_file(file.path, file.contents));
        else if (!file.path.empty())
            regular.push_back(file);
    }
    const SignalsWait wait;
    return write_files(regular);
}

Status write_outputs_below(const std::string& folder, std::span<const NamedContents> files) {
    const SignalsWait wait;
    std::vector<NamedContents> placed;
    std::vector<fs::path> made;  // the innermost first
    const auto write_all = [&]() -> Status {
        for (const NamedContents& file : files) {
            const fs::path path = fs::path(folder) / file.path;
            const auto missing = missing_folders(path.parent_path());
            made.insert(made.begin(), missing.begin(), missing.end());
            std::error_code error;
            fs::create_directories(path.parent_path(), error);
            if (error)
                return fail(Cause::io_failed,
                            fmt::format("cannot make the folder: {}", error.message()),
                            path.parent_path().string(), "name another folder");
            placed.push_back({path.string(), file.contents});
        }
        return write_files(placed);
    };
    Status status = write_all();
    std::error_code ignored;
    if (!status)
        for (const fs::path& one : made) fs::remove(one, ignored);
    return status;
}

}  // namespace reef::tool
