#include "outputs/array_output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "outputs/file_output.h"
#include "reef/base/file.h"

namespace reef::tool {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& place, const std::error_code& error) {
    return {Cause::io_failed, error.message(), place, {}};
}

/// A folder inside another one that goes with the object.
class StagingFolder {
  public:
    static Result<StagingFolder> in(const std::string& folder) {
        std::string path = folder + "/.reef-XXXXXX";
        if (::mkdtemp(path.data()) == nullptr) {
            return fail(Cause::io_failed, std::strerror(errno), folder);
        }
        return StagingFolder(std::move(path));
    }
    StagingFolder(StagingFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    StagingFolder& operator=(StagingFolder&&) = delete;
    ~StagingFolder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    explicit StagingFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

Status write_through_staging(const std::string& folder, const NamedArrays& arrays) {
    const StagingFolder staging = REEF_TRY(StagingFolder::in(folder));
    for (const auto& [name, array] : arrays) {
        const std::vector<std::byte> file = REEF_TRY(in_place(write_npy(array), name));
        REEF_CHECK(write_file(fmt::format("{}/{}.npy", staging.path(), name), file));
    }
    for (const auto& [name, array] : arrays) {
        std::error_code error;
        const std::string staged = fmt::format("{}/{}.npy", staging.path(), name);
        const std::string target = fmt::format("{}/{}.npy", folder, name);
        const fs::file_status before = fs::symlink_status(target, error);
        error.clear();
        if (fs::is_regular_file(before)) fs::permissions(staged, before.permissions(), error);
        if (!error) fs::rename(staged, target, error);
        if (error) return std::unexpected(system_error(target, error));
    }
    return {};
}

}  // namespace

Array array_of(const model::Tensor& tensor, Bytes bytes) {
    Array array{tensor.type, {tensor.shape.begin(), tensor.shape.end()}, {}};
    array.data.assign(bytes.begin(), bytes.end());
    return array;
}

Status write_arrays(const std::string& folder, const NamedArrays& arrays) {
    const SignalsWait wait;
    std::error_code error;
    const bool made = fs::create_directory(folder, error);
    if (error) return std::unexpected(system_error(folder, error));
    Status written = write_through_staging(folder, arrays);
    if (!written && made) fs::remove(folder, error);
    return written;
}

}  // namespace reef::tool
