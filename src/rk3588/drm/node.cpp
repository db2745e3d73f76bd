#include "rk3588/drm/node.h"

#include <fmt/format.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "reef_spec/rk3588_registers.h"
#include "rk3588/drm/uapi.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588::drm {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t end_of_memory = std::numeric_limits<std::uint32_t>::max();

constexpr const hw::RegisterInfo* interrupt_register() {
    for (const hw::RegisterInfo& info : spec::registers)
        if (info.name == "INTERRUPT_RAW_STATUS") return &info;
    return nullptr;
}
static_assert(interrupt_register() != nullptr);

/// The bits of a block's two groups.
consteval std::uint32_t pair_named(std::string_view first) {
    for (const hw::RegisterField& field : interrupt_register()->fields)
        if (field.name == first) return 3U << field.position;
    throw "no such interrupt";
}

struct Place {
    std::string_view folder, beginning;
};
Place place_of(KernelDriver driver) {
    // A card's first user becomes its master; a render node has none.
    if (driver == KernelDriver::rknpu) return {"/dev/dri", "renderD"};
    return {"/dev/accel", "accel"};
}

std::string_view kernel_of(KernelDriver driver) {
    return driver == KernelDriver::rknpu ? "a vendor kernel with CONFIG_ROCKCHIP_RKNPU (5.10, 6.1)"
                                         : "Linux 6.18 or later with CONFIG_DRM_ACCEL_ROCKET";
}

std::unexpected<Error> not_opened(KernelDriver driver, const std::string& path, int error) {
    if (error == EACCES || error == EPERM)
        return fail(Cause::device_denied, "it may not be opened", path,
                    "add yourself to the node's group (ls -l shows it: render, video), or ask for "
                    "a udev rule");
    if (error == ENOENT || error == ENODEV || error == ENXIO)
        return fail(Cause::device_missing,
                    fmt::format("there is no such node ({})", words_of(error)), path,
                    fmt::format("it takes {}", kernel_of(driver)));
    return fail(Cause::device_failed, fmt::format("it cannot be opened: {}", words_of(error)),
                path);
}

}  // namespace

std::string words_of(int error) {
    return std::generic_category().message(error);
}

std::uint64_t whole_pages(std::uint64_t bytes) {
    return (bytes + page - 1) / page * page;
}

Status check_size(std::uint64_t bytes, const std::string& node) {
    // A page's size less, so that whole pages are not beyond it either.
    if (bytes <= end_of_memory - page) return {};
    return fail(
        Cause::device_failed,
        fmt::format("a buffer of {} bytes is larger than the NPU's 32 bits of address", bytes),
        node, "a model with smaller tensors, or a product of fewer rows, needs less");
}

Status check_address(std::uint64_t address, std::uint64_t bytes, const std::string& node) {
    if (address == 0)
        return fail(Cause::device_failed, "a buffer lies at address 0, which means none to the NPU",
                    node, "the kernel has to keep that page for itself");
    if (address > end_of_memory - bytes)
        return fail(Cause::device_failed,
                    fmt::format("a buffer lies at {:#x}, beyond the NPU's 32 bits", address), node,
                    "the kernel has to put the NPU behind its IOMMU");
    return {};
}

std::uint32_t interrupts_of(std::uint32_t blocks) {
    if ((blocks & Blocks::ppu) != 0) return pair_named("PPU_0");
    return (blocks & Blocks::dpu) != 0 ? pair_named("DPU_0") : 0;
}

std::string interrupt_names(std::uint32_t interrupts) {
    std::string text;
    for (const hw::RegisterField& field : interrupt_register()->fields)
        if ((interrupts >> field.position & 1) != 0)
            text += fmt::format("{}{}", text.empty() ? "" : ", ", field.name);
    return text.empty() ? "none" : text;
}

std::string registers_of(const SubmittedTask& task, std::uint32_t started) {
    return fmt::format(
        "PC_BASE_ADDRESS {:#x}, PC_REGISTER_AMOUNTS {:#x}, TASK_NUMBER {}, INTERRUPT_MASK {:#x} "
        "({})",
        task.address, amount_of(task.words), started, interrupts_of(task.blocks),
        interrupt_names(interrupts_of(task.blocks)));
}

std::unexpected<Error> Node::failed(int error, std::string_view what) const {
    std::string why = kernel_->failure();
    if (!why.empty()) why = "; " + why;
    const auto text = fmt::format("{}: {}{}", what, words_of(error), why);
    if (error == ENODEV) return fail(Cause::device_missing, text, path_, "the NPU has gone away");
    if (error == EPERM || error == EACCES)
        return fail(Cause::device_denied, text, path_, "this process may not use the NPU");
    if (error == ETIMEDOUT || error == EBUSY) return fail(Cause::timed_out, text, path_);
    return fail(Cause::device_failed, text, path_, "the kernel's log (dmesg) may say more");
}

Status Node::ioctl(std::uint32_t request, void* argument, std::string_view what) const {
    const int result = raw_ioctl(request, argument);
    if (result < 0) return failed(-result, what);
    return {};
}

Result<MutableBytes> Node::map(std::uint64_t size, std::uint64_t offset) const {
    const MutableBytes bytes = kernel_->map(file_, size, offset);
    if (bytes.size() >= size) return bytes.first(size);
    if (!bytes.empty()) kernel_->unmap(bytes);
    return fail(Cause::device_failed,
                fmt::format("{} of {} bytes of a buffer are mapped", bytes.size(), size), path_,
                "the machine may be short of memory");
}

Result<std::string> Node::driver() const {
    char name[32] = {};
    Version version{};
    version.name = name;
    version.name_size = sizeof name - 1;
    REEF_CHECK(ioctl(version_request, &version, "VERSION"));
    return std::string(name);
}

Status Node::lock() const {
    const int result = kernel_->lock(file_);
    if (result == 0) return {};
    if (result == -EWOULDBLOCK)
        return fail(Cause::device_denied, "another process of Reef uses the NPU", path_,
                    "wait until it has ended");
    return failed(-result, "flock");
}

std::string_view name_of(KernelDriver driver) {
    return driver == KernelDriver::rknpu ? "rknpu" : "rocket";
}

std::vector<std::string> find_nodes(Kernel& kernel, KernelDriver driver) {
    std::vector<std::string> found;
    const Place place = place_of(driver);
    // The nodes outlive no kernel: this one is not theirs to keep.
    const std::shared_ptr<Kernel> lent(std::shared_ptr<Kernel>(), &kernel);
    for (const auto& path : kernel.nodes(place.folder, place.beginning)) {
        const int file = kernel.open(path);
        if (file < 0) continue;
        const Node node(lent, path, file);
        if (const auto name = node.driver(); name && *name == name_of(driver))
            found.push_back(path);
    }
    return found;
}

Result<std::unique_ptr<Port>> open_port(std::shared_ptr<Kernel> kernel, KernelDriver driver,
                                        const std::string& node, Start start) {
    std::vector<std::string> paths{node};
    const Place place = place_of(driver);
    if (node.empty()) paths = kernel->nodes(place.folder, place.beginning);
    std::unexpected<Error> last =
        fail(Cause::device_missing,
             fmt::format("no node {}/{}* is one of the driver {}", place.folder, place.beginning,
                         name_of(driver)),
             {},
             fmt::format("it takes an RK3588 and {}; `device` rk3588:sim runs programs without",
                         kernel_of(driver)));
    for (const std::string& path : paths) {
        const int file = kernel->open(path);
        if (file < 0) {
            // What no one may open could be the NPU; what is not there could not.
            if (!node.empty() || file == -EACCES || file == -EPERM)
                last = not_opened(driver, path, -file);
            continue;
        }
        auto opened = std::make_unique<Node>(kernel, path, file);
        const auto name = opened->driver();
        if (!name && !node.empty())
            return fail(Cause::device_missing,
                        fmt::format("it is no node of the driver {}: {}", name_of(driver),
                                    name.error().what),
                        path, fmt::format("nodes are {}/{}*", place.folder, place.beginning));
        if (!name || *name != name_of(driver)) {
            if (!node.empty())
                return fail(Cause::device_missing,
                            fmt::format("its driver is {}, not {}", *name, name_of(driver)), path);
            continue;
        }
        REEF_CHECK(opened->lock());
        if (driver == KernelDriver::rknpu) return make_rknpu_port(std::move(opened), start);
        return make_rocket_port(std::move(opened));
    }
    return last;
}

}  // namespace reef::rk3588::drm
