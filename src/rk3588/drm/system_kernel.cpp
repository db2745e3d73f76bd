#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "rk3588/drm/kernel.h"

namespace reef::rk3588::drm {
namespace {

class SystemKernel final : public Kernel {
  public:
    [[nodiscard]] std::vector<std::string> nodes(std::string_view folder,
                                                 std::string_view beginning) override {
        std::vector<std::string> found;
        std::error_code none;
        for (const auto& each : std::filesystem::directory_iterator(folder, none))
            if (each.path().filename().string().starts_with(beginning))
                found.push_back(each.path().string());
        std::ranges::sort(found);
        return found;
    }
    [[nodiscard]] int open(const std::string& path) override {
        return known(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    }
    void close(int file) override { ::close(file); }
    [[nodiscard]] int lock(int file) override { return known(::flock(file, LOCK_EX | LOCK_NB)); }
    [[nodiscard]] int ioctl(int file, std::uint32_t request, void* argument) override {
        int result;
        do result = known(::ioctl(file, request, argument));
        while (result == -EINTR || result == -EAGAIN);
        return result;
    }
    [[nodiscard]] MutableBytes map(int file, std::uint64_t size, std::uint64_t offset) override {
        void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                          static_cast<off_t>(offset));
        if (at == MAP_FAILED) return {};
        return {static_cast<std::byte*>(at), size};
    }
    void unmap(MutableBytes bytes) override { ::munmap(bytes.data(), bytes.size()); }
    [[nodiscard]] std::int64_t nanoseconds() override {
        using namespace std::chrono;
        return duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch())
            .count();
    }

  private:
    static int known(int result) { return result < 0 ? -errno : result; }
};

}  // namespace

std::shared_ptr<Kernel> system_kernel() {
    static const auto kernel = std::make_shared<SystemKernel>();
    return kernel;
}

}  // namespace reef::rk3588::drm
