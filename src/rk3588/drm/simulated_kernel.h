// A kernel with one of the NPU's drivers and a simulated core behind it. It takes the ioctls that
// the driver takes, strictly: what a real one would overlook or hang at is an error here.
#pragma once

#include <map>
#include <vector>

#include "rk3588/drm/port.h"
#include "rk3588/sim/cores.h"

namespace reef::rk3588::drm {

/// A board, and what fails on it.
struct SimulatedBoard {
    KernelDriver driver = KernelDriver::rknpu;
    sim::Switches switches{};
    std::uint32_t rknpu_version = 908;
    std::uint32_t first_address = 0x10000;        ///< of the first buffer
    std::uint64_t sram_bytes = spec::sram_bytes;  ///< that the vendor's driver may give
    bool has_node = true;
    int open_error = 0, lock_error = 0;
    std::uint32_t failing_request = 0;  ///< that ends with failing_error
    int failing_error = 0;
    bool maps_half = false;
    bool hangs = false;  ///< no task ends, until a reset
};

class SimulatedKernel final : public Kernel {
  public:
    explicit SimulatedKernel(const SimulatedBoard& board);

    [[nodiscard]] std::vector<std::string> nodes(std::string_view folder,
                                                 std::string_view beginning) override;
    [[nodiscard]] int open(const std::string& path) override;
    void close(int file) override;
    [[nodiscard]] int lock(int file) override;
    [[nodiscard]] int ioctl(int file, std::uint32_t request, void* argument) override;
    [[nodiscard]] MutableBytes map(int file, std::uint64_t size, std::uint64_t offset) override;
    void unmap(MutableBytes bytes) override;
    [[nodiscard]] std::int64_t nanoseconds() override { return now_; }
    [[nodiscard]] std::string failure() const override { return failure_; }

    SimulatedBoard board;  ///< may change between calls
    [[nodiscard]] std::size_t buffers() const { return objects_.size(); }
    /// In buffers.
    [[nodiscard]] std::uint64_t used_sram() const;
    [[nodiscard]] unsigned open_files() const { return files_; }
    /// How often the kernel has started chains since the last reset.
    [[nodiscard]] std::uint64_t kicks() const { return kicks_; }

  private:
    /// A cached buffer has bytes of the CPU's and bytes of the NPU's, which only a sync makes
    /// equal.
    struct Object {
        std::vector<std::byte> cpu, npu;
        std::uint32_t address = 0, flags = 0;
        std::uint64_t sram = 0;
        bool cached = false;
    };
    [[nodiscard]] int version(void* argument) const;
    [[nodiscard]] int rknpu_ioctl(std::uint32_t request, void* argument);
    [[nodiscard]] int rocket_ioctl(std::uint32_t request, void* argument);
    [[nodiscard]] int rknpu_submit(void* argument);
    [[nodiscard]] int rocket_submit(const void* argument);
    [[nodiscard]] std::uint32_t create(std::uint64_t size, bool cached, std::uint32_t flags);
    [[nodiscard]] int destroy(std::uint32_t handle);
    [[nodiscard]] Object* find(std::uint64_t handle);
    [[nodiscard]] int refuse(std::string why);
    /// Of the mainline driver: a job's sizes and handles, as an errno, and its tasks; false: one
    /// never ends.
    [[nodiscard]] int check_job(const void* job);
    [[nodiscard]] bool run_job(const void* job);
    /// Errors: a chain never ends.
    [[nodiscard]] Result<std::vector<sim::RunReport>> kick(std::span<const sim::Start> starts);
    void reset();

    std::map<std::uint32_t, Object> objects_;  ///< by handle
    std::uint32_t next_handle_ = 1;
    std::uint64_t next_address_;
    sim::Memory memory_;
    sim::Cores cores_;
    std::int64_t now_ = 1'000'000, job_ends_ = 0;
    unsigned files_ = 0;
    std::uint64_t kicks_ = 0;
    std::string failure_;
};

}  // namespace reef::rk3588::drm
