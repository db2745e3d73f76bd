#include "chip.h"
#include "edgetpu_operators.h"
#include "layer_binding.h"

namespace reef::runtime {
namespace {

class DrivenOperator final : public graph::DeviceOperator {
  public:
    DrivenOperator(std::shared_ptr<Chip> chip, std::shared_ptr<const edgetpu::usb::Program> program,
                   LayerBinding binding)
        : chip_(std::move(chip)), program_(std::move(program)), binding_(std::move(binding)) {}

    [[nodiscard]] std::string kernel() const override {
        return chip_->simulated() ? "compiled program, simulated" : "compiled program";
    }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        binding_.bind(inputs, outputs);
        return chip_->run(program_, binding_.inputs(), binding_.outputs());
    }

  private:
    std::shared_ptr<Chip> chip_;
    std::shared_ptr<const edgetpu::usb::Program> program_;
    LayerBinding binding_;
};

class DrivenOperators final : public EdgeTpuOperators {
  public:
    DrivenOperators(DeviceUri device, const SessionOptions& options)
        : device_(std::move(device)), options_(options) {
        if (options_.chips == nullptr)
            options_.chips =
                device_.backend == "sim" ? std::make_shared<Chips>() : Chips::of_process();
    }

    [[nodiscard]] Result<graph::Placed> place(const graph::OperatorView& op) override {
        if (!edgetpu::is_compiled(op.op())) return graph::Placed{};
        const auto package = REEF_TRY(edgetpu::package_of(op.op()));
        auto program = REEF_TRY(edgetpu::usb::Program::prepare(package));
        // What the simulator does not model is refused now, by name, and not in a run.
        if (device_.backend == "sim") (void)REEF_TRY(edgetpu::SimulatedPackage::prepare(package));
        auto binding =
            REEF_TRY(LayerBinding::of(program->inputs(), program->outputs(), op.graph(), op.op()));
        if (chip_ == nullptr) chip_ = REEF_TRY(options_.chips->impl().get(device_, options_));
        return placed(
            std::make_unique<DrivenOperator>(chip_, std::move(program), std::move(binding)), op);
    }
    [[nodiscard]] std::optional<edgetpu::usb::DeviceCounters> counters() const override {
        if (chip_ == nullptr) return std::nullopt;
        return chip_->counters();
    }

  private:
    DeviceUri device_;
    SessionOptions options_;
    std::shared_ptr<Chip> chip_;
};

}  // namespace

graph::Placed placed(std::unique_ptr<graph::DeviceOperator> on_device,
                     const graph::OperatorView& op) {
    std::string kernel = on_device->kernel();
    return {graph::device_kernel(std::move(on_device), op), std::move(kernel),
            "compiled for the Edge TPU"};
}

std::shared_ptr<EdgeTpuOperators> driven_operators(const DeviceUri& device,
                                                   const SessionOptions& options) {
    return std::make_shared<DrivenOperators>(device, options);
}

}  // namespace reef::runtime
