#include "rk3588/drm/simulated_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "rk3588/drm/node.h"
#include "rk3588/drm/uapi.h"

namespace reef::rk3588::drm {
namespace {

constexpr std::uint64_t page_bytes = 4096;
/// What an mmap offset and the vendor driver's second handle are made of, so that they are not
/// taken for handles.
constexpr unsigned offset_shift = 32;
constexpr std::uint64_t object_base = 0xffff000000000000;
constexpr std::int64_t job_time_out_ns = 500'000'000;
constexpr int the_file = 7;

std::string_view folder_of(KernelDriver driver) {
    return driver == KernelDriver::rknpu ? "/dev/dri" : "/dev/accel";
}
std::string node_of(KernelDriver driver) {
    return fmt::format("{}/{}", folder_of(driver),
                       driver == KernelDriver::rknpu ? "renderD129" : "accel0");
}

template <class Struct>
Struct read_struct(std::uint64_t address, std::size_t index = 0) {
    Struct out;
    std::memcpy(&out,
                reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(address)) +
                    index * sizeof out,
                sizeof out);
    return out;
}

}  // namespace

SimulatedKernel::SimulatedKernel(const SimulatedBoard& a_board)
    : board(a_board), next_address_(a_board.first_address), cores_(memory_, a_board.switches) {}

std::vector<std::string> SimulatedKernel::nodes(std::string_view folder,
                                                std::string_view beginning) {
    const std::string node = node_of(board.driver);
    if (!board.has_node || !node.starts_with(fmt::format("{}/{}", folder, beginning))) return {};
    return {node};
}

int SimulatedKernel::open(const std::string& path) {
    if (!board.has_node || path != node_of(board.driver)) return -ENOENT;
    if (board.open_error != 0) return -board.open_error;
    ++files_;
    return the_file;
}

void SimulatedKernel::close(int) {
    if (--files_ > 0) return;
    for (const auto& [handle, object] : objects_) memory_.remove(object.address);
    objects_.clear();
}

int SimulatedKernel::lock(int) {
    return -board.lock_error;
}

MutableBytes SimulatedKernel::map(int, std::uint64_t size, std::uint64_t offset) {
    Object* object = find(offset >> offset_shift);
    if (object == nullptr || size > object->cpu.size()) return {};
    return MutableBytes(object->cpu).first(board.maps_half ? size / 2 : size);
}

void SimulatedKernel::unmap(MutableBytes) {}

int SimulatedKernel::refuse(std::string why) {
    failure_ = std::move(why);
    return -EINVAL;
}

SimulatedKernel::Object* SimulatedKernel::find(std::uint64_t handle) {
    const auto found = objects_.find(static_cast<std::uint32_t>(handle));
    return found == objects_.end() || handle >> 32 != 0 ? nullptr : &found->second;
}

std::uint32_t SimulatedKernel::create(std::uint64_t size, bool cached, std::uint32_t flags) {
    const std::uint32_t handle = next_handle_++;
    Object& object = objects_[handle];
    object.cpu.resize(size);
    if (cached) object.npu.resize(size);
    object.cached = cached;
    object.flags = flags;
    object.address = static_cast<std::uint32_t>(next_address_);
    // A page between buffers that nobody has: what runs over an end is found.
    next_address_ += size + page_bytes;
    if (memory_.add(object.address, cached ? object.npu : object.cpu)) return handle;
    objects_.erase(handle);
    return 0;
}

std::uint64_t SimulatedKernel::used_sram() const {
    std::uint64_t bytes = 0;
    for (const auto& [handle, object] : objects_) bytes += object.sram;
    return bytes;
}

int SimulatedKernel::destroy(std::uint32_t handle) {
    const Object* object = find(handle);
    if (object == nullptr) return -ENOENT;
    memory_.remove(object->address);
    objects_.erase(handle);
    return 0;
}

void SimulatedKernel::reset() {
    cores_.reset();
    kicks_ = 0;
    board.hangs = false;
}

Result<std::vector<sim::RunReport>> SimulatedKernel::kick(std::span<const sim::Start> starts) {
    ++kicks_;
    if (board.hangs) return fail(Cause::timed_out, "the board hangs");
    return cores_.run(starts);
}

int SimulatedKernel::version(void* argument) const {
    auto& version = *static_cast<Version*>(argument);
    const std::string_view name = name_of(board.driver);
    if (version.name == nullptr) return -EFAULT;
    std::ranges::copy_n(
        name.begin(),
        static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(name.size(), version.name_size)),
        version.name);
    version.name_size = name.size();
    return 0;
}

int SimulatedKernel::ioctl(int, std::uint32_t request, void* argument) {
    failure_.clear();
    if (request == board.failing_request) return -board.failing_error;
    if (request == version_request) return version(argument);
    if (request == gem_close_request)
        return destroy(static_cast<const GemClose*>(argument)->handle);
    return board.driver == KernelDriver::rknpu ? rknpu_ioctl(request, argument)
                                               : rocket_ioctl(request, argument);
}

int SimulatedKernel::rknpu_ioctl(std::uint32_t request, void* argument) {
    using namespace rknpu;
    if (request == action_request) {
        auto& action = *static_cast<Action*>(argument);
        if (action.what == get_driver_version)
            action.value = board.rknpu_version;
        else if (action.what == rknpu::reset)
            reset();
        else
            return refuse("an action that is not simulated");
        return 0;
    }
    if (request == create_request) {
        auto& memory = *static_cast<MemCreate*>(argument);
        if (memory.handle != 0 || memory.size == 0 || memory.size % page_bytes != 0 ||
            (memory.flags & translated) == 0)
            return refuse("a buffer that is imported, not of whole pages, or not translated");
        // As much of it as there is, in front; none is no error.
        const std::uint64_t asked =
            memory.sram_size == 0 ? memory.size : std::min(memory.size, memory.sram_size);
        memory.sram_size =
            (memory.flags & in_sram) == 0 ? 0 : std::min(asked, board.sram_bytes - used_sram());
        memory.handle = create(memory.size, (memory.flags & cached) != 0, memory.flags);
        if (memory.handle == 0) return -ENOMEM;
        find(memory.handle)->sram = memory.sram_size;
        memory.object = object_base + memory.handle;
        memory.dma_address = find(memory.handle)->address;
        return 0;
    }
    if (request == map_request) {
        auto& map = *static_cast<MemMap*>(argument);
        if (map.reserved != 0 || find(map.handle) == nullptr) return -EINVAL;
        map.offset = std::uint64_t{map.handle} << offset_shift;
        return 0;
    }
    if (request == destroy_request) {
        const auto& memory = *static_cast<const MemDestroy*>(argument);
        if (memory.object != object_base + memory.handle) return refuse("another object's handle");
        return destroy(memory.handle);
    }
    if (request == sync_request) {
        const auto& sync = *static_cast<const MemSync*>(argument);
        Object* object = find(sync.object - object_base);
        if (object == nullptr || !object->cached || sync.offset > object->cpu.size() ||
            sync.size > object->cpu.size() - sync.offset)
            return refuse("a sync of no cached bytes");
        const bool to = sync.flags == sync_to_device;
        if (!to && sync.flags != sync_from_device) return refuse("a sync in both directions");
        auto& from = to ? object->cpu : object->npu;
        std::ranges::copy(
            Bytes(from).subspan(sync.offset, sync.size),
            (to ? object->npu : object->cpu).begin() + static_cast<std::ptrdiff_t>(sync.offset));
        return 0;
    }
    return request == submit_request ? rknpu_submit(argument) : -ENOTTY;
}

int SimulatedKernel::rknpu_submit(void* argument) {
    using namespace rknpu;
    auto& submit = *static_cast<Submit*>(argument);
    Object* list = find(submit.task_object - object_base);
    if (list == nullptr || (list->flags & kernel_mapping) == 0)
        return refuse("tasks in a buffer that the kernel has not mapped");
    if (submit.flags != (by_commands | ping_pong) || submit.timeout_ms == 0 ||
        submit.iommu_domain != 0)
        return refuse("a submission of another form than blocking");
    // Other sets of cores hang a real board.
    if (submit.core_mask != 1 && submit.core_mask != 3 && submit.core_mask != 7)
        return refuse("a set of cores that is not the first one, two or three");
    const auto cores = static_cast<std::size_t>(std::popcount(submit.core_mask));
    const std::size_t place = cores == most_cores ? 2 : 0;
    std::vector<sim::Start> starts;
    std::vector<std::uint64_t> last;
    std::uint64_t count = 0;
    for (std::size_t core = 0; core < cores; ++core) {
        const SubcoreTasks& own = submit.subcore[place + core];
        const std::uint64_t end = std::uint64_t{own.first} + own.count;
        if (own.count == 0 || end * sizeof(Task) > list->cpu.size())
            return refuse("a core without tasks, or tasks beyond their buffer");
        const auto first =
            read_struct<Task>(reinterpret_cast<std::uintptr_t>(list->cpu.data()), own.first);
        if (first.commands >> 32 != 0 || first.interrupt_mask == 0)
            return refuse("a task of no form");
        starts.push_back({static_cast<std::uint32_t>(first.commands),
                          first.register_words + tail_words, own.count});
        last.push_back(end - 1);
        count += own.count;
    }
    if (count != submit.task_count || submit.first_task != submit.subcore[place].first)
        return refuse("the cores' tasks are not those of the submission");
    const auto reports = kick(starts);
    bool ended = reports.has_value();
    for (std::size_t core = 0; reports && core < cores; ++core) {
        std::byte* at = list->cpu.data() + last[core] * sizeof(Task);
        Task task;
        std::memcpy(&task, at, sizeof task);
        task.interrupt_status = (*reports)[core].interrupts;
        ended = ended && (task.interrupt_status & task.interrupt_mask) != 0;
        std::memcpy(at, &task, sizeof task);
    }
    if (ended) {
        submit.task_counter = submit.task_count;
        return 0;
    }
    failure_ = reports ? "the mask lets no interrupt through" : reports.error().message();
    return -ETIMEDOUT;
}

int SimulatedKernel::rocket_ioctl(std::uint32_t request, void* argument) {
    using namespace rocket;
    if (request == create_request) {
        auto& bo = *static_cast<CreateBo*>(argument);
        if (bo.size == 0) return -EINVAL;
        // The driver rounds up to pages; 0 is an address like others to it.
        if (next_address_ == 0) {
            bo.handle = next_handle_++;
            objects_[bo.handle].cpu.resize(bo.size);
            next_address_ = page_bytes + bo.size;
        } else {
            bo.handle = create(bo.size, true, 0);
        }
        if (bo.handle == 0) return -ENOMEM;
        bo.dma_address = find(bo.handle)->address;
        bo.offset = std::uint64_t{bo.handle} << offset_shift;
        return 0;
    }
    if (request == fini_request) {
        const auto& fini = *static_cast<const FiniBo*>(argument);
        Object* object = find(fini.handle);
        if (fini.reserved != 0) return -EINVAL;
        if (object == nullptr) return -ENOENT;
        std::ranges::copy(object->cpu, object->npu.begin());
        return 0;
    }
    if (request == prep_request) {
        const auto& prep = *static_cast<const PrepBo*>(argument);
        Object* object = find(prep.handle);
        if (prep.reserved != 0) return -EINVAL;
        if (object == nullptr) return -ENOENT;
        if (prep.timeout_ns < std::max(now_, job_ends_)) {
            now_ = std::max(now_, prep.timeout_ns);
            return -ETIMEDOUT;
        }
        now_ = std::max(now_, job_ends_);
        std::ranges::copy(object->npu, object->cpu.begin());
        return 0;
    }
    return request == submit_request ? rocket_submit(argument) : -ENOTTY;
}

int SimulatedKernel::rocket_submit(const void* argument) {
    using namespace rocket;
    const auto& submit = *static_cast<const Submit*>(argument);
    if (submit.reserved != 0 || submit.job_size != sizeof(Job) || submit.job_count == 0)
        return refuse("another size of a job, or no jobs");
    job_ends_ = now_;
    for (std::uint32_t i = 0; i < submit.job_count; ++i) {
        const auto job = read_struct<Job>(submit.jobs, i);
        if (const int error = check_job(&job); error != 0) return error;
        // Jobs of one file take turns, each on a core of the kernel's choice.
        if (!run_job(&job)) {
            reset();
            job_ends_ += job_time_out_ns;
        }
    }
    return 0;
}

int SimulatedKernel::check_job(const void* argument) {
    using namespace rocket;
    const auto& job = *static_cast<const Job*>(argument);
    if (job.task_size != sizeof(Task) || job.task_count == 0)
        return refuse("another size of a task");
    std::vector<std::uint32_t> handles;
    for (std::uint32_t i = 0; i < job.in_count; ++i)
        handles.push_back(read_struct<std::uint32_t>(job.in_handles, i));
    for (std::uint32_t i = 0; i < job.out_count; ++i) {
        const auto handle = read_struct<std::uint32_t>(job.out_handles, i);
        if (std::ranges::find(handles, handle) != handles.end())
            return refuse("a buffer that is read and written: such jobs end without running");
        handles.push_back(handle);
    }
    for (const std::uint32_t handle : handles)
        if (find(handle) == nullptr) return -ENOENT;
    return 0;
}

bool SimulatedKernel::run_job(const void* argument) {
    using namespace rocket;
    const auto& job = *static_cast<const Job*>(argument);
    const std::uint32_t mask = interrupts_of(Blocks::dpu);
    // Another core than the last job's: what that one's CBUF keeps is nothing to rely on.
    cores_.reset();
    for (std::uint32_t i = 0; i < job.task_count; ++i) {
        const auto task = read_struct<Task>(job.tasks, i);
        const sim::Start start{task.commands, task.words, 1};
        const auto done = kick({&start, 1});
        if (done && (done->front().interrupts & mask) != 0) continue;
        failure_ = done ? "no interrupt of the DPU came" : done.error().message();
        return false;
    }
    return true;
}

}  // namespace reef::rk3588::drm
