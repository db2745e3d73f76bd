#include "rk3588/device/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "reef/model/graph.h"
#include "rk3588/device/npu_program.h"
#include "rk3588/sim/cores.h"

namespace reef::rk3588 {
namespace {

constexpr std::uint64_t page = 4096;
/// Nothing is at 0, so that an address that nobody set is found.
constexpr std::uint64_t first_address = 0x10000;

class SimDevice final : public runtime::Device, public std::enable_shared_from_this<SimDevice> {
  public:
    SimDevice(std::string uri, const sim::Switches& switches)
        : uri_(std::move(uri)), switches_(switches) {}

    [[nodiscard]] std::string uri() const override { return uri_; }
    [[nodiscard]] Result<std::unique_ptr<graph::DeviceOperator>> load(
        std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) override;
    [[nodiscard]] std::optional<runtime::DeviceCounters> counters() const override {
        return runtime::DeviceCounters{.runs = runs_, .parameter_loads = loads_};
    }

    [[nodiscard]] const sim::Switches& switches() const { return switches_; }
    [[nodiscard]] std::mutex& mutex() { return mutex_; }
    void count_run() { ++runs_; }

  private:
    std::string uri_;
    sim::Switches switches_;
    std::mutex mutex_;
    std::atomic<std::uint64_t> runs_ = 0, loads_ = 0;
};

/// A program in the simulated memory, with cores of its own: they keep nothing from one program to
/// the next.
class SimOperator final : public graph::DeviceOperator {
  public:
    SimOperator(std::shared_ptr<SimDevice> device, std::shared_ptr<const NpuProgram> program,
                const graph::RunControl& control)
        : device_(std::move(device)),
          program_(std::move(program)),
          control_(control),
          cores_(memory_, device_->switches()) {}

    [[nodiscard]] Status place() {
        const Artifact& a = program_->artifact;
        constants_.assign(a.constants.view().begin(), a.constants.view().end());
        activations_.resize(a.activation_bytes);
        std::uint64_t at = first_address;
        const auto give = [&](std::uint64_t bytes) {
            const std::uint64_t address = at;
            at = (at + bytes + page - 1) / page * page;
            return static_cast<std::uint32_t>(address);
        };
        std::uint32_t base[area_count];
        base[static_cast<std::size_t>(Area::commands)] =
            give(a.commands.size() * sizeof(std::uint64_t));
        base[static_cast<std::size_t>(Area::constants)] = give(constants_.size());
        base[static_cast<std::size_t>(Area::activations)] = give(activations_.size());
        if (at > std::numeric_limits<std::uint32_t>::max())
            return fail(Cause::unsupported,
                        fmt::format("the program needs {} bytes, more than the NPU addresses", at));
        commands_ = relocated(a, base);
        stages_ = stages_of(a);
        commands_base_ = base[static_cast<std::size_t>(Area::commands)];
        REEF_CHECK(add(commands_base_, std::as_writable_bytes(std::span(commands_))));
        REEF_CHECK(add(base[static_cast<std::size_t>(Area::constants)], constants_));
        activations_base_ = base[static_cast<std::size_t>(Area::activations)];
        return add(activations_base_, activations_, sim::Contents::unknown);
    }

    [[nodiscard]] std::string kernel() const override { return "rk3588 program"; }

    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        const std::lock_guard lock(device_->mutex());
        const Artifact& a = program_->artifact;
        // What an earlier run left is nobody's input.
        memory_.forget(activations_base_);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Cube& cube = a.inputs[i];
            to_cube(cube, inputs[i],
                    REEF_TRY(memory_.write(activations_base_ + std::uint64_t{cube.offset},
                                           cube.bytes(), "an input")));
        }
        cores_.reset();
        for (const Stage& stage : stages_) {
            REEF_CHECK(control_.check());
            if (const auto done = cores_.run(starts_of(stage)); !done)
                return std::unexpected(Error(done.error()).in(operators_of(a, stage)));
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const Cube& cube = a.outputs[i];
            from_cube(cube,
                      REEF_TRY(memory_.read(activations_base_ + std::uint64_t{cube.offset},
                                            cube.bytes(), "an output")),
                      outputs[i]);
        }
        device_->count_run();
        return {};
    }

  private:
    /// One for each core.
    [[nodiscard]] std::span<const sim::Start> starts_of(const Stage& stage) {
        starts_.clear();
        for (const Part& part : stage) {
            const TaskPlace& task = program_->artifact.tasks[part.first_task];
            const auto address = commands_base_ + task.first_word * sizeof(std::uint64_t);
            starts_.push_back({static_cast<std::uint32_t>(address), task.words, part.tasks});
        }
        return starts_;
    }
    [[nodiscard]] Status add(std::uint32_t address, MutableBytes bytes,
                             sim::Contents contents = sim::Contents::known) {
        return bytes.empty() ? Status{} : memory_.add(address, bytes, contents);
    }

    std::shared_ptr<SimDevice> device_;
    std::shared_ptr<const NpuProgram> program_;
    const graph::RunControl& control_;
    std::vector<std::byte> constants_, activations_;
    std::vector<std::uint64_t> commands_;
    std::uint32_t commands_base_ = 0, activations_base_ = 0;
    std::vector<Stage> stages_;
    std::vector<sim::Start> starts_;
    sim::Memory memory_;
    sim::Cores cores_;
};

Result<std::unique_ptr<graph::DeviceOperator>> SimDevice::load(
    std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) {
    auto op = std::make_unique<SimOperator>(
        shared_from_this(), std::static_pointer_cast<const NpuProgram>(std::move(program)),
        control);
    REEF_CHECK(op->place());
    ++loads_;
    return op;
}

}  // namespace

std::shared_ptr<runtime::Device> make_sim_device(std::string uri, const sim::Switches& switches) {
    return std::make_shared<SimDevice>(std::move(uri), switches);
}

}  // namespace reef::rk3588
