#include "reef/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <system_error>
#include <utility>
#include <vector>

namespace reef {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }

    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] bool ok() const { return number_ >= 0; }

    /// close() may report a write that failed late (network file systems, quotas).
    [[nodiscard]] bool close() {
        const int number = number_;
        number_ = -1;
        return ::close(number) == 0;
    }

  private:
    int number_;
};

/// Deleter of a mapped file's owner, by which it is known.
struct Unmapping {
    void* start;
    std::size_t size;
    void operator()(const void*) const { ::munmap(start, size); }
};

std::string words_of(int error) {
    return std::generic_category().message(error);
}

std::unexpected<Error> system_failure(int error, std::string_view doing, const std::string& path) {
    switch (error) {
        case ENOENT:
            return fail(Cause::not_found, "no such file or folder", path, "check the path");
        case ENOTDIR:
            return fail(Cause::not_found, "a part of the path is not a folder", path,
                        "check the path");
        case EISDIR:
            return fail(Cause::io_failed, "is a folder, not a file", path, "name a file");
        case EACCES:
        case EPERM:
            return fail(Cause::io_failed, fmt::format("{}: permission denied", doing), path,
                        "check the owner and mode of the file and its folders");
        case ENOSPC:
        case EDQUOT:
            return fail(Cause::io_failed, fmt::format("{}: {}", doing, words_of(error)), path,
                        "free space there, or name a file elsewhere");
        default:
            return fail(Cause::io_failed, fmt::format("{}: {}", doing, words_of(error)), path);
    }
}

Status check_path(const std::string& path) {
    if (path.empty()) return fail(Cause::bad_argument, "an empty path", "", "name a file");
    if (const auto zero = path.find('\0'); zero != std::string::npos) {
        return fail(Cause::bad_argument, "a path with a zero byte", path.substr(0, zero));
    }
    return {};
}

Result<SharedBytes> read_stream(int descriptor, const std::string& place) {
    auto contents = std::make_shared<std::vector<std::byte>>();
    std::vector<std::byte> chunk(std::size_t{256} << 10);
    while (true) {
        const ssize_t count = ::read(descriptor, chunk.data(), chunk.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return system_failure(errno, "cannot read", place);
        if (count == 0) break;
        if (contents->size() + static_cast<std::size_t>(count) > max_stream_bytes) {
            return fail(Cause::bad_input,
                        fmt::format("a stream of more than {} bytes", max_stream_bytes), place,
                        "larger inputs must be regular files");
        }
        try {
            contents->insert(contents->end(), chunk.begin(), chunk.begin() + count);
        } catch (const std::exception&) {
            return fail(Cause::io_failed, "out of memory", place);
        }
    }
    const Bytes view(*contents);
    return SharedBytes(view, std::move(contents));
}

Status write_stream(int descriptor, Bytes contents, const std::string& place) {
    while (!contents.empty()) {
        const ssize_t count = ::write(descriptor, contents.data(), contents.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return system_failure(errno, "cannot write", place);
        contents = contents.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

std::filesystem::path temporary_name(const std::filesystem::path& folder) {
    static std::atomic<unsigned> next = 0;
    return folder / fmt::format(".reef-{}-{}.tmp", ::getpid(), next++);
}

/// A new file in `folder` that is removed with the object unless it was renamed.
class TemporaryFile {
  public:
    explicit TemporaryFile(const std::filesystem::path& folder) {
        do {
            path_ = temporary_name(folder);
            descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        } while (descriptor_ < 0 && errno == EEXIST);
        error_ = descriptor_ < 0 ? errno : 0;
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        if (error_ == 0 && !renamed_) ::unlink(path_.c_str());
    }

    /// The open file; its number goes to the caller, who closes it. errno's value on failure.
    [[nodiscard]] std::expected<int, int> descriptor() const {
        if (error_ != 0) return std::unexpected(error_);
        return descriptor_;
    }
    [[nodiscard]] bool rename_to(const std::filesystem::path& target) {
        renamed_ = ::rename(path_.c_str(), target.c_str()) == 0;
        return renamed_;
    }

  private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    int error_ = 0;
    bool renamed_ = false;
};

std::filesystem::path folder_of(const std::filesystem::path& file) {
    return file.has_parent_path() ? file.parent_path() : ".";
}

/// What a file was before another took its place, under a second name until this object ends.
class Before {
  public:
    /// Errors: errno's value.
    [[nodiscard]] static std::expected<Before, int> keep(const std::filesystem::path& target) {
        std::filesystem::path kept = temporary_name(folder_of(target));
        if (::link(target.c_str(), kept.c_str()) != 0) {
            if (errno == ENOENT || errno == ENAMETOOLONG) return Before(target, {});
            // File systems without links, and files of others that may be replaced but not linked
            // to.
            if (::rename(target.c_str(), kept.c_str()) != 0) return std::unexpected(errno);
        }
        return Before(target, std::move(kept));
    }
    Before(Before&& other) noexcept
        : target_(std::move(other.target_)), kept_(std::exchange(other.kept_, {})) {}
    Before& operator=(Before&&) = delete;
    ~Before() {
        if (!kept_.empty()) ::unlink(kept_.c_str());
    }

    void put_back() {
        if (kept_.empty())
            ::unlink(target_.c_str());
        else if (::rename(kept_.c_str(), target_.c_str()) == 0)
            kept_.clear();
    }

  private:
    Before(std::filesystem::path target, std::filesystem::path kept)
        : target_(std::move(target)), kept_(std::move(kept)) {}
    std::filesystem::path target_, kept_;  ///< kept: empty when there was no file
};

/// Contents that are written beside their file and not yet in its place.
struct Staged {
    std::string place;
    std::filesystem::path target;
    Bytes contents;
    std::optional<mode_t> mode;                ///< of the file that is replaced
    std::unique_ptr<TemporaryFile> temporary;  ///< none: the target takes the contents as it is
};

Status fill_temporary(Staged& staged) {
    const auto& target = staged.target;
    const auto folder = folder_of(target);
    staged.temporary = std::make_unique<TemporaryFile>(folder);
    const auto number = staged.temporary->descriptor();
    if (!number) {
        std::error_code unknown;
        // Such folders as /proc are there and hold no files of others.
        if (number.error() == ENOENT && std::filesystem::is_directory(folder, unknown))
            return fail(
                Cause::io_failed,
                fmt::format("cannot create a file in {}: {}", folder.string(), words_of(ENOENT)),
                staged.place, "name a file in another folder");
        if (number.error() == ENOENT) {
            return fail(Cause::not_found, fmt::format("no folder {}", folder.string()),
                        staged.place, "create the folder first");
        }
        return system_failure(number.error(), "cannot create", staged.place);
    }
    Descriptor file(*number);
    REEF_CHECK(write_stream(file.number(), staged.contents, staged.place));
    if (staged.mode && ::fchmod(file.number(), *staged.mode) != 0)
        return system_failure(errno, "cannot keep the mode", staged.place);
    if (!file.close()) return system_failure(errno, "cannot write", staged.place);
    return {};
}

Result<Staged> stage(const std::string& path, Bytes contents) {
    REEF_CHECK(check_path(path));
    Staged staged{
        .place = path, .target = path, .contents = contents, .mode = {}, .temporary = nullptr};
    if (path == "-") {
        staged.place = "standard output";
        return staged;
    }
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) return system_failure(EISDIR, "cannot write", path);
        // A device or pipe must stay what it is: /dev/null is not a place for a rename.
        if (!S_ISREG(status.st_mode)) return staged;
        staged.mode = status.st_mode & 07777;
    }
    std::error_code error;
    if (std::filesystem::is_symlink(staged.target, error)) {
        staged.target = std::filesystem::weakly_canonical(staged.target, error);
        if (error) return system_failure(error.value(), "cannot follow the link", path);
    }
    REEF_CHECK(fill_temporary(staged));
    return staged;
}

Status put_in_place(Staged& staged) {
    if (staged.temporary) {
        if (staged.temporary->rename_to(staged.target)) return {};
        return system_failure(errno, "cannot write", staged.place);
    }
    if (staged.target == "-") return write_stream(STDOUT_FILENO, staged.contents, staged.place);
    Descriptor file(::open(staged.target.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.ok()) return system_failure(errno, "cannot open", staged.place);
    REEF_CHECK(write_stream(file.number(), staged.contents, staged.place));
    if (!file.close()) return system_failure(errno, "cannot write", staged.place);
    return {};
}

}  // namespace

Result<SharedBytes> read_file(const std::string& path, FileAccess access) {
    REEF_CHECK(check_path(path));
    if (path == "-") return read_stream(STDIN_FILENO, "standard input");
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.ok()) return system_failure(errno, "cannot open", path);
    struct stat status {};
    if (::fstat(file.number(), &status) != 0) return system_failure(errno, "cannot read", path);
    if (S_ISDIR(status.st_mode)) return system_failure(EISDIR, "cannot read", path);
    if (!S_ISREG(status.st_mode) || status.st_size == 0) return read_stream(file.number(), path);

    const auto size = static_cast<std::size_t>(status.st_size);
    void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (start == MAP_FAILED) return read_stream(file.number(), path);
    if (access == FileAccess::scattered) ::madvise(start, size, MADV_RANDOM);
    std::shared_ptr<const void> owner(static_cast<const void*>(start), Unmapping{start, size});
    return SharedBytes(Bytes(static_cast<const std::byte*>(start), size), std::move(owner));
}

void will_read(Bytes mapped) {
    if (mapped.empty()) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t into = reinterpret_cast<std::uintptr_t>(mapped.data()) % page;
    // Advice alone: where it cannot be followed nothing is lost.
    ::madvise(const_cast<std::byte*>(mapped.data()) - into, into + mapped.size(), MADV_WILLNEED);
}

void will_not_read(const SharedBytes& bytes) {
    // Of other memory MADV_DONTNEED would throw the contents away.
    if (std::get_deleter<Unmapping>(bytes.owner()) == nullptr) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(bytes.view().data());
    const std::uintptr_t begin = (first + page - 1) / page * page;
    const std::uintptr_t end = (first + bytes.size()) / page * page;
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Status write_files(std::span<const NamedContents> files) {
    std::vector<Staged> all;
    all.reserve(files.size());
    for (const NamedContents& file : files) {
        all.push_back(REEF_TRY(stage(file.path, file.contents)));
    }
    std::vector<Before> before;
    const auto put = [&](Staged& staged) -> Status {
        if (all.size() == 1 || !staged.temporary) return put_in_place(staged);
        auto kept = Before::keep(staged.target);
        if (!kept) return system_failure(kept.error(), "cannot replace", staged.place);
        before.push_back(std::move(*kept));
        return put_in_place(staged);
    };
    for (Staged& staged : all) {
        Status status = put(staged);
        if (status) continue;
        for (Before& one : before | std::views::reverse) one.put_back();
        return status;
    }
    return {};
}

Status write_file(const std::string& path, Bytes contents) {
    const NamedContents file{.path = path, .contents = contents};
    return write_files({&file, 1});
}

}  // namespace reef
