// An open node, its ioctls with errors in words, and what its buffers and failures have in common.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rk3588/drm/port.h"

namespace reef::rk3588::drm {

class Node {
  public:
    Node(std::shared_ptr<Kernel> kernel, std::string path, int file)
        : kernel_(std::move(kernel)), path_(std::move(path)), file_(file) {}
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() { kernel_->close(file_); }

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] Kernel& kernel() const { return *kernel_; }
    [[nodiscard]] int raw_ioctl(std::uint32_t request, void* argument) const {
        return kernel_->ioctl(file_, request, argument);
    }
    /// `what` names the call in the error: "MEM_CREATE of 4096 bytes".
    [[nodiscard]] Status ioctl(std::uint32_t request, void* argument, std::string_view what) const;
    /// Errors: device_failed when less than `size` bytes are mapped.
    [[nodiscard]] Result<MutableBytes> map(std::uint64_t size, std::uint64_t offset) const;
    /// The name that the node's driver gives itself.
    [[nodiscard]] Result<std::string> driver() const;
    [[nodiscard]] Status lock() const;

    [[nodiscard]] std::unexpected<Error> failed(int error, std::string_view what) const;

  private:
    std::shared_ptr<Kernel> kernel_;
    std::string path_;
    int file_;
};

/// "Device or resource busy".
[[nodiscard]] std::string words_of(int error);

/// Whole pages.
[[nodiscard]] std::uint64_t whole_pages(std::uint64_t bytes);

/// The NPU has addresses for a buffer of so many bytes. Error: device_failed, at `node`.
[[nodiscard]] Status check_size(std::uint64_t bytes, const std::string& node);
/// It can tell the one that the kernel has put there from none, and reach its end. Precondition:
/// the size is checked.
[[nodiscard]] Status check_address(std::uint64_t address, std::uint64_t bytes,
                                   const std::string& node);

/// The interrupts by which a task's last block tells that it has ended, as INTERRUPT_MASK has them;
/// 0: it starts no such block.
[[nodiscard]] std::uint32_t interrupts_of(std::uint32_t blocks);
/// "DPU_0, DPU_1", or "none".
[[nodiscard]] std::string interrupt_names(std::uint32_t interrupts);
/// What the kernel gave the program controller for a task, and what it waits for.
[[nodiscard]] std::string registers_of(const SubmittedTask& task, std::uint32_t started);

[[nodiscard]] Result<std::unique_ptr<Port>> make_rknpu_port(std::unique_ptr<Node> node,
                                                            Start start);
[[nodiscard]] std::unique_ptr<Port> make_rocket_port(std::unique_ptr<Node> node);

}  // namespace reef::rk3588::drm
