#include "driven_device.h"

#include <fmt/format.h>

#include "chip_program.h"

namespace reef::edgetpu {
namespace {

class DrivenDevice final : public runtime::Device,
                           public std::enable_shared_from_this<DrivenDevice> {
  public:
    DrivenDevice(DrivenChip chip, std::unique_ptr<usb::Device> device)
        : chip_(std::move(chip)), device_(std::move(device)) {
        if (chip_.uri.empty()) chip_.uri = fmt::format("edgetpu:usb:{}", device_->port());
    }

    [[nodiscard]] std::string uri() const override { return chip_.uri; }
    [[nodiscard]] Result<std::unique_ptr<graph::DeviceOperator>> load(
        std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) override;
    void interrupt() override { device_->interrupt(); }
    [[nodiscard]] std::optional<runtime::DeviceCounters> counters() const override {
        const usb::DeviceCounters now = device_->counters();
        return runtime::DeviceCounters{.runs = now.runs,
                                       .parameter_loads = now.parameter_loads,
                                       .evictions = now.evictions,
                                       .recoveries = now.recoveries};
    }

    [[nodiscard]] const std::string& kernel() const { return chip_.kernel; }
    [[nodiscard]] Status run(const std::shared_ptr<const usb::Program>& program,
                             std::span<const Bytes> inputs, std::span<const MutableBytes> outputs,
                             const usb::RunLimits& limits);

  private:
    DrivenChip chip_;
    std::unique_ptr<usb::Device> device_;
};

class DrivenOperator final : public graph::DeviceOperator, usb::RunWatch {
  public:
    DrivenOperator(std::shared_ptr<DrivenDevice> device, const ChipProgram& program,
                   const graph::RunControl& control)
        : device_(std::move(device)),
          program_(program.driven),
          binding_(program.binding),
          control_(control) {}

    [[nodiscard]] std::string kernel() const override { return device_->kernel(); }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        binding_.bind(inputs, outputs);
        usb::RunLimits limits{.watch = this};
        if (control_.has_deadline()) limits.deadline = control_.left();
        return device_->run(program_, binding_.inputs(), binding_.outputs(), limits);
    }

  private:
    [[nodiscard]] Status may_go_on() const override { return control_.check(); }

    std::shared_ptr<DrivenDevice> device_;
    std::shared_ptr<const usb::Program> program_;
    LayerBinding binding_;
    const graph::RunControl& control_;
};

Result<std::unique_ptr<graph::DeviceOperator>> DrivenDevice::load(
    std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) {
    const auto& compiled = static_cast<const ChipProgram&>(*program);
    if (chip_.null_programs != nullptr)
        REEF_CHECK(chip_.null_programs->add(compiled.package.executables));
    return std::make_unique<DrivenOperator>(shared_from_this(), compiled, control);
}

Status DrivenDevice::run(const std::shared_ptr<const usb::Program>& program,
                         std::span<const Bytes> inputs, std::span<const MutableBytes> outputs,
                         const usb::RunLimits& limits) {
    auto done = device_->run(program, inputs, outputs, limits);
    if (done || chip_.simulated == nullptr || done.error().cause != Cause::device_failed)
        return done;
    const std::string why = chip_.simulated->standstill(device_->port());
    if (why.empty()) return done;
    // Not the device's fault: the program's.
    Error error = std::move(done.error());
    error.cause = Cause::bad_input;
    error.what += fmt::format("; the simulated chip: {}", why);
    error.hint.clear();  // the driver's is about a stick; the chip has said its own
    return std::unexpected(std::move(error));
}

}  // namespace

Result<std::shared_ptr<runtime::Device>> open_driven(DrivenChip chip) {
    auto device = REEF_TRY(usb::Device::open(chip.bus, chip.options));
    return std::make_shared<DrivenDevice>(std::move(chip), std::move(device));
}

}  // namespace reef::edgetpu
