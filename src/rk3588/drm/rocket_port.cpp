// The mainline driver: a submission is a job for every core, whose tasks the kernel starts one
// after the other; who prepares a buffer that the jobs write waits for them. Which core runs a job
// is the kernel's choice.
#include <fmt/format.h>

#include "rk3588/drm/node.h"
#include "rk3588/drm/uapi.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588::drm {
namespace rocket {
namespace {

/// After which the kernel ends a job and resets the NPU; who waits is not told.
constexpr std::int64_t kernel_gives_up_ns = 500'000'000;

class RocketPort final : public Port {
  public:
    explicit RocketPort(std::unique_ptr<Node> node) : node_(std::move(node)) {}
    ~RocketPort() override {
        if (guard_ != 0) close(guard_);
    }

    [[nodiscard]] std::string name() const override { return "rocket at " + node_->path(); }
    [[nodiscard]] const std::string& node() const override { return node_->path(); }
    [[nodiscard]] std::uint64_t resets() const override { return resets_; }
    [[nodiscard]] Result<Buffer> allocate(std::uint64_t bytes, std::uint64_t sram) override;
    void release(const Buffer& buffer) override {
        node_->kernel().unmap(buffer.bytes);
        close(buffer.handle);
    }
    [[nodiscard]] Status to_device(const Buffer& buffer, std::uint64_t) override {
        FiniBo fini{.handle = buffer.handle, .reserved = 0};
        return node_->ioctl(fini_request, &fini, "FINI_BO");
    }
    [[nodiscard]] Status from_device(const Buffer& buffer, std::uint64_t) override {
        return wait(buffer, node_->kernel().nanoseconds() + kernel_gives_up_ns, "PREP_BO");
    }
    [[nodiscard]] Status reserve(std::size_t tasks, std::size_t buffers) override {
        tasks_.reserve(tasks);
        reads_.reserve(buffers);
        writes_.reserve(buffers);
        return {};
    }
    [[nodiscard]] Status submit(const Submission& submission) override;

  private:
    void close(std::uint32_t handle) const {
        GemClose close{.handle = handle, .zero = 0};
        // The node's close closes what is left.
        (void)node_->raw_ioctl(gem_close_request, &close);
    }
    /// What the kernel gave; `size` is whole pages.
    [[nodiscard]] Result<CreateBo> created(std::uint64_t size) const;
    [[nodiscard]] Status wait(const Buffer& buffer, std::int64_t until,
                              std::string_view what) const {
        PrepBo prep{.handle = buffer.handle, .reserved = 0, .timeout_ns = until};
        return node_->ioctl(prep_request, &prep, what);
    }
    [[nodiscard]] Status add_tasks(std::span<const SubmittedTask> tasks);
    /// Of these tasks, which began then; both times by the kernel's clock, in nanoseconds.
    [[nodiscard]] Status wait_for_job(const Submission& submission,
                                      std::span<const SubmittedTask> tasks, std::int64_t begin,
                                      std::int64_t until);

    std::unique_ptr<Node> node_;
    std::uint32_t guard_ = 0;  ///< a buffer at address 0, which means "none" to the NPU
    std::uint64_t resets_ = 0;
    // Of a submission; they stay for later ones.
    std::vector<Task> tasks_;
    std::vector<std::uint32_t> reads_, writes_;
};

Result<CreateBo> RocketPort::created(std::uint64_t size) const {
    CreateBo create{};
    create.size = static_cast<std::uint32_t>(size);
    REEF_CHECK(node_->ioctl(create_request, &create, fmt::format("CREATE_BO of {} bytes", size)));
    return create;
}

Result<Buffer> RocketPort::allocate(std::uint64_t bytes, std::uint64_t sram) {
    if (sram != 0)
        return fail(Cause::unsupported, "the driver rocket gives no SRAM", node_->path(),
                    "the vendor's driver does");
    REEF_CHECK(check_size(bytes, node_->path()));
    const std::uint64_t size = whole_pages(bytes);
    CreateBo made = REEF_TRY(created(size));
    if (made.dma_address == 0 && guard_ == 0) {
        guard_ = made.handle;
        made = REEF_TRY(created(size));
    }
    const auto give_up = [&](Error error) {
        close(made.handle);
        return std::unexpected(std::move(error));
    };
    if (auto good = check_address(made.dma_address, size, node_->path()); !good)
        return give_up(std::move(good.error()));
    auto mapped = node_->map(size, made.offset);
    if (!mapped) return give_up(std::move(mapped.error()));
    return Buffer{.bytes = *mapped,
                  .address = static_cast<std::uint32_t>(made.dma_address),
                  .handle = made.handle,
                  .object = 0};
}

Status RocketPort::add_tasks(std::span<const SubmittedTask> tasks) {
    for (const SubmittedTask& task : tasks) {
        if ((task.blocks & Blocks::dpu) == 0)
            return fail(Cause::unsupported,
                        "a task without the DPU: the driver rocket waits for its interrupt alone",
                        fmt::format("task {} at {:#x}", tasks_.size(), task.address),
                        "use rk3588:rknpu or rk3588:sim");
        tasks_.push_back({.commands = task.address, .words = task.words});
    }
    return {};
}

Status RocketPort::submit(const Submission& submission) {
    tasks_.clear();
    for (const auto& tasks : submission.cores) REEF_CHECK(add_tasks(tasks));
    reads_.clear();
    writes_.clear();
    for (const Buffer* buffer : submission.reads) reads_.push_back(buffer->handle);
    for (const Buffer* buffer : submission.writes) writes_.push_back(buffer->handle);
    const auto address = [](const auto& list) {
        return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(list.data()));
    };
    // The kernel runs the jobs of one file one after the other: each is waited for by itself, so
    // that what it took is known.
    const std::int64_t until =
        node_->kernel().nanoseconds() + std::chrono::nanoseconds(submission.time_out).count();
    std::size_t first = 0;
    for (const auto& tasks : submission.cores) {
        const Job job{.tasks = address(tasks_) + first * sizeof(Task),
                      .in_handles = address(reads_),
                      .out_handles = address(writes_),
                      .task_count = static_cast<std::uint32_t>(tasks.size()),
                      .task_size = sizeof(Task),
                      .in_count = static_cast<std::uint32_t>(reads_.size()),
                      .out_count = static_cast<std::uint32_t>(writes_.size())};
        Submit submit{.jobs = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&job)),
                      .job_count = 1,
                      .job_size = sizeof(Job),
                      .reserved = 0};
        const std::int64_t begin = node_->kernel().nanoseconds();
        REEF_CHECK(node_->ioctl(submit_request, &submit, "SUBMIT"));
        REEF_CHECK(wait_for_job(submission, tasks, begin, until));
        first += tasks.size();
    }
    return {};
}

Status RocketPort::wait_for_job(const Submission& submission, std::span<const SubmittedTask> tasks,
                                std::int64_t begin, std::int64_t until) {
    const auto state = [&] {
        return fmt::format(
            "the first of {} tasks: {}; interrupts that came: the driver does not "
            "tell",
            tasks.size(), registers_of(tasks[0], 1));
    };
    for (const Buffer* buffer : submission.writes)
        if (auto done = wait(*buffer, until, "PREP_BO"); !done) {
            Error error = std::move(done.error());
            error.what += fmt::format(" ({})", state());
            return std::unexpected(std::move(error));
        }
    const std::int64_t took = node_->kernel().nanoseconds() - begin;
    if (took < kernel_gives_up_ns) return {};
    ++resets_;
    const std::string why = node_->kernel().failure();
    return fail(Cause::timed_out,
                fmt::format("the job took {} ms: the kernel ends such jobs after {} ms and resets "
                            "the NPU ({}){}{}",
                            took / 1'000'000, kernel_gives_up_ns / 1'000'000, state(),
                            why.empty() ? "" : "; ", why),
                node_->path(), "the kernel's log (dmesg) says whether it did");
}

}  // namespace
}  // namespace rocket

std::unique_ptr<Port> make_rocket_port(std::unique_ptr<Node> node) {
    return std::make_unique<rocket::RocketPort>(std::move(node));
}

}  // namespace reef::rk3588::drm
