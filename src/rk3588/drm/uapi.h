// What two kernel drivers of the NPU are given: structs of their ioctls, which Debian's headers do
// not have. Their sizes are part of an ioctl's number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::rk3588::drm {

/// An ioctl's number: direction (1 to the kernel, 2 from it), size, DRM's letter, command.
template <class Struct>
consteval std::uint32_t request(std::uint32_t direction, std::uint32_t command) {
    return direction << 30 | std::uint32_t{sizeof(Struct)} << 16 | std::uint32_t{'d'} << 8 |
           command;
}
inline constexpr std::uint32_t to_kernel = 1, both_ways = 3;

/// What every DRM node has.
struct Version {
    std::int32_t major, minor, patch;
    std::uint64_t name_size;
    char* name;
    std::uint64_t date_size;
    char* date;
    std::uint64_t description_size;
    char* description;
};
static_assert(sizeof(void*) != 8 || (sizeof(Version) == 64 && offsetof(Version, name) == 24));
struct GemClose {
    std::uint32_t handle, zero;
};
static_assert(sizeof(GemClose) == 8);
inline constexpr auto version_request = request<Version>(both_ways, 0x00);
inline constexpr auto gem_close_request = request<GemClose>(to_kernel, 0x09);

/// The vendor's driver, 0.9.6 to 0.9.8.
namespace rknpu {

struct Action {
    std::uint32_t what, value;
};
struct MemCreate {
    std::uint32_t handle, flags;
    std::uint64_t size, object, dma_address, sram_size;
    std::int32_t iommu_domain;
    std::uint32_t core_mask;
};
struct MemMap {
    std::uint32_t handle, reserved;
    std::uint64_t offset;
};
struct MemDestroy {
    std::uint32_t handle, reserved;
    std::uint64_t object;
};
struct MemSync {
    std::uint32_t flags, reserved;
    std::uint64_t object, offset, size;
};
struct Task {
    std::uint32_t flags, op_index, enable_mask, interrupt_mask, interrupt_clear,
        interrupt_status,  ///< written by the kernel
        register_words,    ///< without the tail
        register_offset;
    std::uint64_t commands;
};
struct SubcoreTasks {
    std::uint32_t first, count;
};
struct Submit {
    std::uint32_t flags, timeout_ms, first_task, task_count, task_counter;
    std::int32_t priority;
    std::uint64_t task_object;
    std::uint32_t iommu_domain, reserved;
    std::uint64_t task_base;
    std::int64_t elapsed;
    std::uint32_t core_mask;
    std::int32_t fence;
    SubcoreTasks subcore[5];
};
static_assert(sizeof(Action) == 8);
static_assert(sizeof(MemCreate) == 48 && offsetof(MemCreate, dma_address) == 24);
static_assert(sizeof(MemMap) == 16 && offsetof(MemMap, offset) == 8);
static_assert(sizeof(MemDestroy) == 16 && offsetof(MemDestroy, object) == 8);
static_assert(sizeof(MemSync) == 32 && offsetof(MemSync, object) == 8);
static_assert(sizeof(Task) == 40 && offsetof(Task, register_words) == 24 &&
              offsetof(Task, commands) == 32);
static_assert(sizeof(Submit) == 104 && offsetof(Submit, task_object) == 24 &&
              offsetof(Submit, core_mask) == 56 && offsetof(Submit, subcore) == 64);

inline constexpr auto action_request = request<Action>(both_ways, 0x40);
inline constexpr auto submit_request = request<Submit>(both_ways, 0x41);
inline constexpr auto create_request = request<MemCreate>(both_ways, 0x42);
inline constexpr auto map_request = request<MemMap>(both_ways, 0x43);
inline constexpr auto destroy_request = request<MemDestroy>(both_ways, 0x44);
inline constexpr auto sync_request = request<MemSync>(both_ways, 0x45);
// As strace shows them of the vendor's library.
static_assert(action_request == 0xc0086440 && submit_request == 0xc0686441 &&
              create_request == 0xc0306442 && map_request == 0xc0106443 &&
              destroy_request == 0xc0106444 && sync_request == 0xc0206445);

inline constexpr std::uint32_t get_driver_version = 1, reset = 6;
inline constexpr std::uint32_t scattered = 1U << 0, cached = 1U << 1, kernel_mapping = 1U << 3,
                               translated = 1U << 4, in_sram = 1U << 8;
inline constexpr std::uint32_t sync_to_device = 1, sync_from_device = 2;
inline constexpr std::uint32_t by_commands = 1U << 0, ping_pong = 1U << 2;
/// Words of a task's tail, which the kernel adds.
inline constexpr std::uint32_t tail_words = 4;

}  // namespace rknpu

/// The mainline kernel's driver, since Linux 6.18.
namespace rocket {

struct CreateBo {
    std::uint32_t size, handle;
    std::uint64_t dma_address, offset;
};
struct PrepBo {
    std::uint32_t handle, reserved;
    std::int64_t timeout_ns;  ///< a time of CLOCK_MONOTONIC
};
struct FiniBo {
    std::uint32_t handle, reserved;
};
struct Task {
    std::uint32_t commands, words;
};
struct Job {
    std::uint64_t tasks, in_handles, out_handles;
    std::uint32_t task_count, task_size, in_count, out_count;
};
struct Submit {
    std::uint64_t jobs;
    std::uint32_t job_count, job_size;
    std::uint64_t reserved;
};
static_assert(sizeof(CreateBo) == 24 && offsetof(CreateBo, dma_address) == 8);
static_assert(sizeof(PrepBo) == 16 && offsetof(PrepBo, timeout_ns) == 8);
static_assert(sizeof(FiniBo) == 8 && sizeof(Task) == 8);
static_assert(sizeof(Job) == 40 && offsetof(Job, task_count) == 24);
static_assert(sizeof(Submit) == 24 && offsetof(Submit, job_count) == 8);

inline constexpr auto create_request = request<CreateBo>(both_ways, 0x40);
inline constexpr auto submit_request = request<Submit>(to_kernel, 0x41);
inline constexpr auto prep_request = request<PrepBo>(to_kernel, 0x42);
inline constexpr auto fini_request = request<FiniBo>(to_kernel, 0x43);
static_assert(create_request == 0xc0186440 && submit_request == 0x40186441 &&
              prep_request == 0x40106442 && fini_request == 0x40086443);

}  // namespace rocket

}  // namespace reef::rk3588::drm
