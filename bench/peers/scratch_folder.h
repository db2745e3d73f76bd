// A folder for the files that another program reads and writes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "reef/base/result.h"

namespace reef::peers {

/// It goes with the object.
class ScratchFolder {
  public:
    static Result<ScratchFolder> create() {
        std::string name = (std::filesystem::temp_directory_path() / "reef_peer_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            return fail(Cause::io_failed, "no temporary folder", name);
        return ScratchFolder(name);
    }
    ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchFolder& operator=(ScratchFolder&& other) noexcept {
        std::swap(path_, other.path_);
        return *this;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

  private:
    explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
    std::filesystem::path path_;
};

}  // namespace reef::peers
