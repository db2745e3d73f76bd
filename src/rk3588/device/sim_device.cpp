#include "rk3588/device/sim_device.h"

#include <atomic>
#include <mutex>

#include "reef/model/graph.h"
#include "rk3588/device/npu_program.h"
#include "rk3588/device/simulated_program.h"

namespace reef::rk3588 {
namespace {

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

class SimOperator final : public graph::DeviceOperator {
  public:
    SimOperator(std::shared_ptr<SimDevice> device, std::shared_ptr<const NpuProgram> program,
                std::unique_ptr<SimulatedProgram> placed, const graph::RunControl& control)
        : device_(std::move(device)),
          program_(std::move(program)),
          simulated_(std::move(placed)),
          control_(control) {
        read_.reserve(program_->artifact.inputs.size());
    }

    [[nodiscard]] std::string kernel() const override { return "rk3588 program"; }

    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        const std::lock_guard lock(device_->mutex());
        read_.assign(inputs.begin(), inputs.end());
        REEF_CHECK(simulated_->begin(read_));
        for (const Stage& stage : simulated_->stages()) {
            REEF_CHECK(control_.check());
            REEF_CHECK(simulated_->run(stage));
        }
        for (std::size_t i = 0; i < outputs.size(); ++i)
            REEF_CHECK(simulated_->read(program_->artifact.outputs[i], outputs[i]));
        device_->count_run();
        return {};
    }

  private:
    std::shared_ptr<SimDevice> device_;
    std::shared_ptr<const NpuProgram> program_;
    std::unique_ptr<SimulatedProgram> simulated_;
    const graph::RunControl& control_;
    std::vector<Bytes> read_;
};

Result<std::unique_ptr<graph::DeviceOperator>> SimDevice::load(
    std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) {
    auto npu = std::static_pointer_cast<const NpuProgram>(std::move(program));
    auto placed = REEF_TRY(SimulatedProgram::place(npu->artifact, switches_));
    auto op = std::make_unique<SimOperator>(shared_from_this(), std::move(npu), std::move(placed),
                                            control);
    ++loads_;
    return op;
}

}  // namespace

std::shared_ptr<runtime::Device> make_sim_device(std::string uri, const sim::Switches& switches) {
    return std::make_shared<SimDevice>(std::move(uri), switches);
}

}  // namespace reef::rk3588
