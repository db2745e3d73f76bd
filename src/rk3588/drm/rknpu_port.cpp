// The vendor's driver: a submission is one ioctl that returns when the tasks have ended.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "rk3588/drm/node.h"
#include "rk3588/drm/uapi.h"

namespace reef::rk3588::drm {
namespace rknpu {
namespace {

/// MAJOR * 10000 + MINOR * 100 + PATCH.
constexpr std::uint32_t least_version = 906, next_minor = 1000;
constexpr std::uint32_t most_tasks = 4095;
constexpr std::uint32_t all_interrupts = 0x1ffff;

/// The place of the first core's tasks among those of a submission: three cores have places of
/// their own behind those of one and two.
constexpr std::size_t first_place(std::size_t cores) {
    return cores == most_cores ? 2 : 0;
}

class RknpuPort final : public Port {
  public:
    RknpuPort(std::unique_ptr<Node> node, Start start) : node_(std::move(node)), start_(start) {}
    ~RknpuPort() override {
        if (!tasks_.bytes.empty()) release(tasks_);
        if (guard_.handle != 0) destroy(guard_);
    }

    [[nodiscard]] std::string name() const override { return "rknpu at " + node_->path(); }
    [[nodiscard]] const std::string& node() const override { return node_->path(); }
    [[nodiscard]] std::uint64_t resets() const override { return resets_; }
    [[nodiscard]] Result<Buffer> allocate(std::uint64_t bytes, std::uint64_t sram) override {
        const std::uint32_t flags = scattered | cached | translated;
        return sram == 0 ? create(bytes, flags) : create(bytes, flags | in_sram, sram);
    }
    void release(const Buffer& buffer) override {
        node_->kernel().unmap(buffer.bytes);
        destroy({.handle = buffer.handle, .reserved = 0, .object = buffer.object});
    }
    [[nodiscard]] Status to_device(const Buffer& buffer, std::uint64_t bytes) override {
        return sync(buffer, bytes, sync_to_device);
    }
    [[nodiscard]] Status from_device(const Buffer& buffer, std::uint64_t bytes) override {
        return sync(buffer, bytes, sync_from_device);
    }
    [[nodiscard]] Status reserve(std::size_t tasks, std::size_t buffers) override;
    [[nodiscard]] Status submit(const Submission& submission) override {
        // Which cores still have tasks is told from how many there are.
        if (!std::ranges::is_sorted(submission.cores, std::ranges::greater{},
                                    [](const auto& tasks) { return tasks.size(); }))
            return fail(Cause::bad_argument, "a core has more tasks than the one before it");
        REEF_CHECK(write_tasks(submission));
        const std::uint32_t step = start_ == Start::chain ? most_tasks : 1;
        for (std::uint32_t first = 0; first < submission.cores[0].size(); first += step)
            REEF_CHECK(kick(submission, first, step));
        return {};
    }
    [[nodiscard]] Status check_version() const;

  private:
    void destroy(MemDestroy buffer) const {
        // The node's close destroys what is left.
        (void)node_->raw_ioctl(destroy_request, &buffer);
    }
    /// What the kernel gave; `size` and `sram` are whole pages.
    [[nodiscard]] Result<MemCreate> created(std::uint64_t size, std::uint32_t flags,
                                            std::uint64_t sram) const;
    [[nodiscard]] Result<MemCreate> created_elsewhere(std::uint64_t size, std::uint32_t flags,
                                                      std::uint64_t sram);
    [[nodiscard]] Status check(const MemCreate& made, std::uint64_t size, std::uint64_t sram) const;
    [[nodiscard]] Result<Buffer> create(std::uint64_t bytes, std::uint32_t flags,
                                        std::uint64_t sram = 0);
    [[nodiscard]] Status sync(const Buffer& buffer, std::uint64_t bytes,
                              std::uint32_t direction) const;
    [[nodiscard]] Status write_tasks(const Submission& submission);
    [[nodiscard]] Status write_task(std::size_t index, const SubmittedTask& task);
    /// The `most` tasks of every core from the core's `first` one on.
    [[nodiscard]] Status kick(const Submission& submission, std::uint32_t first,
                              std::uint32_t most);
    [[nodiscard]] std::unexpected<Error> ended_badly(const SubmittedTask& started,
                                                     const Submit& submit, int error);

    std::unique_ptr<Node> node_;
    Start start_;
    Buffer tasks_;        ///< for the kernel, which reads and writes it past the caches; grows
    MemDestroy guard_{};  ///< a page at address 0, which means "none" to the NPU
    std::uint64_t resets_ = 0;
};

Status RknpuPort::check_version() const {
    Action action{.what = get_driver_version, .value = 0};
    REEF_CHECK(node_->ioctl(action_request, &action, "ACTION get version"));
    if (action.value >= least_version && action.value < next_minor) return {};
    return fail(Cause::unsupported,
                fmt::format("version {}.{}.{} of the driver rknpu, whose structs are not known",
                            action.value / 10000, action.value / 100 % 100, action.value % 100),
                node_->path(), "0.9.6 to 0.9.8 are known: take a kernel with one of them");
}

Result<MemCreate> RknpuPort::created(std::uint64_t size, std::uint32_t flags,
                                     std::uint64_t sram) const {
    MemCreate create{};
    create.flags = flags;
    create.size = size;
    create.sram_size = sram;
    REEF_CHECK(node_->ioctl(create_request, &create, fmt::format("MEM_CREATE of {} bytes", size)));
    return create;
}

/// Not at address 0, where a page without SRAM takes the place.
Result<MemCreate> RknpuPort::created_elsewhere(std::uint64_t size, std::uint32_t flags,
                                               std::uint64_t sram) {
    MemCreate made = REEF_TRY(created(size, flags, sram));
    if (made.dma_address != 0 || guard_.handle != 0) return made;
    destroy({.handle = made.handle, .reserved = 0, .object = made.object});
    const MemCreate page = REEF_TRY(created(whole_pages(1), flags & ~in_sram, 0));
    guard_ = {.handle = page.handle, .reserved = 0, .object = page.object};
    return created(size, flags, sram);
}

Status RknpuPort::check(const MemCreate& made, std::uint64_t size, std::uint64_t sram) const {
    REEF_CHECK(check_address(made.dma_address, size, node_->path()));
    if (made.sram_size < sram)
        return fail(
            Cause::device_failed,
            fmt::format("the kernel gave {} of {} bytes of the chip's SRAM", made.sram_size, sram),
            node_->path(),
            "it needs CONFIG_ROCKCHIP_RKNPU_SRAM and a region of its device tree "
            "(rockchip,sram) that nobody else has; compile with less (`sram`), or run "
            "without sram=on");
    return {};
}

Result<Buffer> RknpuPort::create(std::uint64_t bytes, std::uint32_t flags, std::uint64_t sram) {
    REEF_CHECK(check_size(bytes, node_->path()));
    const std::uint64_t size = whole_pages(bytes);
    const MemCreate made = REEF_TRY(created_elsewhere(size, flags, whole_pages(sram)));
    const auto give_up = [&](Error error) {
        destroy({.handle = made.handle, .reserved = 0, .object = made.object});
        return std::unexpected(std::move(error));
    };
    if (auto good = check(made, size, whole_pages(sram)); !good)
        return give_up(std::move(good.error()));
    MemMap map{.handle = made.handle, .reserved = 0, .offset = 0};
    if (auto done = node_->ioctl(map_request, &map, "MEM_MAP"); !done)
        return give_up(std::move(done.error()));
    auto mapped = node_->map(size, map.offset);
    if (!mapped) return give_up(std::move(mapped.error()));
    return Buffer{.bytes = *mapped,
                  .address = static_cast<std::uint32_t>(made.dma_address),
                  .handle = made.handle,
                  .object = made.object,
                  .sram = sram};
}

Status RknpuPort::sync(const Buffer& buffer, std::uint64_t bytes, std::uint32_t direction) const {
    MemSync sync{.flags = direction,
                 .reserved = 0,
                 .object = buffer.object,
                 .offset = 0,
                 .size = std::min<std::uint64_t>(whole_pages(bytes), buffer.bytes.size())};
    return node_->ioctl(sync_request, &sync, "MEM_SYNC");
}

Status RknpuPort::write_task(std::size_t index, const SubmittedTask& task) {
    const std::uint32_t interrupts = interrupts_of(task.blocks);
    if (interrupts == 0 || task.words < tail_words)
        return fail(Cause::unsupported, "a task whose end no interrupt tells",
                    fmt::format("task {} at {:#x}", index, task.address));
    const Task stored{.flags = 0,
                      .op_index = 0,
                      .enable_mask = task.blocks,
                      .interrupt_mask = interrupts,
                      .interrupt_clear = all_interrupts,
                      .interrupt_status = 0,
                      .register_words = task.words - tail_words,
                      .register_offset = 0,
                      .commands = task.address};
    std::ranges::copy(std::as_bytes(std::span(&stored, 1)),
                      tasks_.bytes.begin() + static_cast<std::ptrdiff_t>(index * sizeof stored));
    return {};
}

/// Which buffers the tasks use, this driver is not told.
Status RknpuPort::reserve(std::size_t tasks, std::size_t) {
    if (tasks_.bytes.size() >= tasks * sizeof(Task)) return {};
    if (!tasks_.bytes.empty()) release(tasks_);
    tasks_ = {};
    tasks_ = REEF_TRY(create(tasks * sizeof(Task), scattered | translated | kernel_mapping));
    return {};
}

Status RknpuPort::write_tasks(const Submission& submission) {
    std::size_t count = 0;
    for (const auto& tasks : submission.cores) count += tasks.size();
    REEF_CHECK(reserve(count, submission.reads.size() + submission.writes.size()));
    std::size_t index = 0;
    for (const auto& tasks : submission.cores)
        for (const SubmittedTask& task : tasks) REEF_CHECK(write_task(index++, task));
    return {};
}

Status RknpuPort::kick(const Submission& submission, std::uint32_t first, std::uint32_t most) {
    Submit submit{};
    submit.flags = by_commands | ping_pong;
    submit.timeout_ms = static_cast<std::uint32_t>(submission.time_out.count());
    submit.first_task = first;
    submit.task_object = tasks_.object;
    submit.fence = -1;
    const auto cores = static_cast<std::size_t>(std::ranges::count_if(
        submission.cores, [&](const auto& tasks) { return tasks.size() > first; }));
    submit.core_mask = (1U << cores) - 1;
    std::uint32_t before = 0;  // tasks of the cores in front
    for (std::size_t core = 0; core < cores; ++core) {
        const auto count = static_cast<std::uint32_t>(submission.cores[core].size());
        auto& own = submit.subcore[first_place(cores) + core];
        own = {.first = before + first, .count = std::min(most, count - first)};
        submit.task_count += own.count;
        before += count;
    }
    // The kernel, or a recording of one, writes where the numbers were.
    Submit asked = submit;
    const int result = node_->raw_ioctl(submit_request, &submit);
    asked.task_counter = submit.task_counter;
    if (result < 0) return ended_badly(submission.cores[0][first], asked, -result);
    return {};
}

std::unexpected<Error> RknpuPort::ended_badly(const SubmittedTask& started, const Submit& submit,
                                              int error) {
    // Of every core the last task's interrupts.
    std::uint32_t came = 0;
    for (const SubcoreTasks& own : submit.subcore) {
        if (own.count == 0) continue;
        Task task;
        std::ranges::copy(
            tasks_.bytes.subspan((own.first + own.count - 1) * sizeof task, sizeof task),
            std::as_writable_bytes(std::span(&task, 1)).begin());
        came |= task.interrupt_status;
    }
    std::string text = fmt::format(
        "SUBMIT ({}; core mask {:#x}; interrupts that came: {:#x}, {}; tasks that ended: "
        "{} of {})",
        registers_of(started, submit.task_count), submit.core_mask, came, interrupt_names(came),
        submit.task_counter, submit.task_count);
    auto failed = node_->failed(error, text);
    Action action{.what = reset, .value = 0};
    if (node_->raw_ioctl(action_request, &action) < 0)
        failed.error().what += "; nor can the NPU be reset";
    else
        ++resets_;
    return std::unexpected(std::move(failed.error()).in(fmt::format("task {}", submit.first_task)));
}

}  // namespace
}  // namespace rknpu

Result<std::unique_ptr<Port>> make_rknpu_port(std::unique_ptr<Node> node, Start start) {
    auto port = std::make_unique<rknpu::RknpuPort>(std::move(node), start);
    REEF_CHECK(port->check_version());
    return port;
}

}  // namespace reef::rk3588::drm
