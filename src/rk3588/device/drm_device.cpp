#include "rk3588/device/drm_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "reef/model/graph.h"
#include "rk3588/device/npu_program.h"
#include "rk3588/drm/buffer_pool.h"
#include "rk3588/stream/task.h"

namespace reef::rk3588 {
namespace {

using drm::PooledBuffer;

/// Of one stage, where the run has no deadline.
constexpr std::chrono::milliseconds usual_time_out{3000};

class DrmDevice final : public runtime::Device, public std::enable_shared_from_this<DrmDevice> {
  public:
    DrmDevice(std::string uri, std::unique_ptr<drm::Port> port, Sram sram)
        : uri_(std::move(uri)), sram_(sram), port_(std::move(port)), pool_(*port_) {}
    DrmDevice(const DrmDevice&) = delete;
    DrmDevice& operator=(const DrmDevice&) = delete;
    ~DrmDevice() override { release_activations(); }

    [[nodiscard]] std::string uri() const override { return uri_; }
    [[nodiscard]] Result<std::unique_ptr<graph::DeviceOperator>> load(
        std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) override;
    [[nodiscard]] std::optional<runtime::DeviceCounters> counters() const override {
        return runtime::DeviceCounters{
            .runs = runs_, .parameter_loads = loads_, .evictions = 0, .recoveries = resets_};
    }

    [[nodiscard]] Sram sram() const { return sram_; }
    [[nodiscard]] std::mutex& mutex() { return mutex_; }
    /// These with the mutex held.
    ///
    /// Activations of the program that runs: programs take turns, and none wants to find what it
    /// left. There are at least so many bytes, and so many of the chip's SRAM; where more are
    /// needed than before they are elsewhere.
    [[nodiscard]] Result<const drm::Buffer*> activations(std::uint64_t bytes, std::uint64_t sram);
    [[nodiscard]] drm::Port& port() { return *port_; }
    [[nodiscard]] drm::BufferPool& pool() { return pool_; }
    void count_run() { ++runs_; }
    void count_resets() { resets_ = port_->resets(); }

  private:
    void release_activations() {
        if (!activations_.bytes.empty()) port_->release(activations_);
        activations_ = {};
    }

    std::string uri_;
    Sram sram_;
    std::mutex mutex_;
    std::unique_ptr<drm::Port> port_;
    drm::BufferPool pool_;
    drm::Buffer activations_;
    std::atomic<std::uint64_t> runs_ = 0, loads_ = 0, resets_ = 0;
};

/// A program in the kernel's memory.
class DrmOperator final : public graph::DeviceOperator {
  public:
    DrmOperator(std::shared_ptr<DrmDevice> device, std::shared_ptr<const NpuProgram> program,
                const graph::RunControl& control)
        : device_(std::move(device)), program_(std::move(program)), control_(control) {}
    DrmOperator(const DrmOperator&) = delete;
    DrmOperator& operator=(const DrmOperator&) = delete;
    ~DrmOperator() override {
        const std::lock_guard lock(device_->mutex());
        for (PooledBuffer* buffer : {&commands_, &constants_}) PooledBuffer(std::move(*buffer));
    }

    [[nodiscard]] Status place();
    [[nodiscard]] std::string kernel() const override { return "rk3588 program"; }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override;

  private:
    /// Commands for activations that stand there.
    [[nodiscard]] Status relocate(const drm::Buffer& activations);
    [[nodiscard]] Status read_tasks();
    /// Room in the port for the stage of most tasks, so that no run has to ask for it.
    [[nodiscard]] Status reserve();
    [[nodiscard]] Status submit(const Stage& stage, const drm::Buffer& activations);
    [[nodiscard]] Result<const drm::Buffer*> activations() const {
        const Artifact& a = program_->artifact;
        return device_->activations(a.activation_bytes,
                                    device_->sram() == Sram::on ? a.sram_bytes : 0);
    }

    std::shared_ptr<DrmDevice> device_;
    std::shared_ptr<const NpuProgram> program_;
    const graph::RunControl& control_;
    PooledBuffer commands_, constants_;
    std::uint32_t activations_at_ = 0;  ///< where the commands look for them; 0: nowhere
    std::vector<drm::SubmittedTask> tasks_;
    std::vector<Stage> stages_;
};

Result<const drm::Buffer*> DrmDevice::activations(std::uint64_t bytes, std::uint64_t sram) {
    const drm::Buffer before = activations_;
    if (before.bytes.size() >= bytes && before.sram >= sram) return &activations_;
    // First what there is, so that its SRAM is free.
    release_activations();
    auto grown = port_->allocate(std::max<std::uint64_t>({bytes, before.bytes.size(), 1}),
                                 std::max(sram, before.sram));
    if (grown) {
        activations_ = *grown;
        return &activations_;
    }
    if (!before.bytes.empty())
        activations_ = port_->allocate(before.bytes.size(), before.sram).value_or(drm::Buffer{});
    return std::unexpected(std::move(grown.error()));
}

Status DrmOperator::place() {
    const std::lock_guard lock(device_->mutex());
    const Artifact& a = program_->artifact;
    auto& pool = device_->pool();
    commands_ = REEF_TRY(pool.take(a.commands.size() * sizeof(std::uint64_t)));
    constants_ = REEF_TRY(pool.take(a.constants.view().size()));
    stages_ = stages_of(a);
    REEF_CHECK(read_tasks());
    REEF_CHECK(reserve());
    std::ranges::copy(a.constants.view(), constants_.get().bytes.begin());
    REEF_CHECK(device_->port().to_device(constants_.get()));
    return relocate(*REEF_TRY(activations()));
}

Status DrmOperator::relocate(const drm::Buffer& activations) {
    std::uint32_t base[area_count];
    base[static_cast<std::size_t>(Area::commands)] = commands_.get().address;
    base[static_cast<std::size_t>(Area::constants)] = constants_.get().address;
    base[static_cast<std::size_t>(Area::activations)] = activations.address;
    write_relocated(program_->artifact, base, commands_.get().bytes);
    // Not before the NPU sees them, too.
    activations_at_ = 0;
    REEF_CHECK(device_->port().to_device(commands_.get()));
    activations_at_ = activations.address;
    return {};
}

Status DrmOperator::read_tasks() {
    const Artifact& a = program_->artifact;
    for (std::size_t t = 0; t < a.tasks.size(); ++t) {
        const TaskPlace& place = a.tasks[t];
        const Task task = REEF_TRY(in_place(task_of(a, t), fmt::format("task {}", t)));
        tasks_.push_back({.address = static_cast<std::uint32_t>(
                              commands_.get().address + place.first_word * sizeof(std::uint64_t)),
                          .words = place.words,
                          .blocks = task.blocks});
    }
    return {};
}

Status DrmOperator::reserve() {
    std::size_t most = 0;
    for (const Stage& stage : stages_) {
        std::size_t tasks = 0;
        for (const Part& part : stage) tasks += part.tasks;
        most = std::max(most, tasks);
    }
    constexpr std::size_t buffers = area_count;
    return device_->port().reserve(most, buffers);
}

Status DrmOperator::submit(const Stage& stage, const drm::Buffer& activations) {
    REEF_CHECK(control_.check());
    const auto time_out =
        control_.has_deadline()
            ? std::clamp(control_.left(), std::chrono::milliseconds(1), drm::longest_time_out)
            : usual_time_out;
    const drm::Buffer* const reads[] = {&commands_.get(), &constants_.get()};
    const drm::Buffer* const writes[] = {&activations};
    std::array<std::span<const drm::SubmittedTask>, drm::most_cores> cores;
    for (std::size_t core = 0; core < stage.size(); ++core)
        cores[core] = std::span(tasks_).subspan(stage[core].first_task, stage[core].tasks);
    const Status done = device_->port().submit({.cores = std::span(cores).first(stage.size()),
                                                .reads = reads,
                                                .writes = writes,
                                                .time_out = time_out});
    device_->count_resets();
    if (!done)
        return std::unexpected(Error(done.error()).in(operators_of(program_->artifact, stage)));
    return {};
}

Status DrmOperator::run(std::span<const MutableBytes> inputs,
                        std::span<const MutableBytes> outputs) {
    const std::lock_guard lock(device_->mutex());
    const Artifact& a = program_->artifact;
    const drm::Buffer& memory = *REEF_TRY(activations());
    if (memory.address != activations_at_) REEF_CHECK(relocate(memory));
    const auto place_of = [&](const Cube& cube) {
        return memory.bytes.subspan(cube.offset, cube.bytes());
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
        to_cube(a.inputs[i], inputs[i], place_of(a.inputs[i]));
    REEF_CHECK(device_->port().to_device(memory, a.activation_bytes));
    for (const Stage& stage : stages_) REEF_CHECK(submit(stage, memory));
    REEF_CHECK(device_->port().from_device(memory, a.activation_bytes));
    for (std::size_t i = 0; i < outputs.size(); ++i)
        from_cube(a.outputs[i], place_of(a.outputs[i]), outputs[i]);
    device_->count_run();
    return {};
}

Result<std::unique_ptr<graph::DeviceOperator>> DrmDevice::load(
    std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) {
    auto op = std::make_unique<DrmOperator>(
        shared_from_this(), std::static_pointer_cast<const NpuProgram>(std::move(program)),
        control);
    REEF_CHECK(op->place());
    ++loads_;
    return op;
}

}  // namespace

std::shared_ptr<runtime::Device> make_drm_device(std::string uri, std::unique_ptr<drm::Port> port,
                                                 Sram sram) {
    return std::make_shared<DrmDevice>(std::move(uri), std::move(port), sram);
}

}  // namespace reef::rk3588
