#include "watched_device.h"

#include "chip_program.h"

namespace reef::edgetpu {
namespace {

runtime::Finding described(const Finding& finding) {
    return {.kind = std::string(identifier_of(finding.kind)),
            .message = message(finding),
            .details = {{"memory", finding.memory},
                        {"address", std::uint64_t{finding.address}},
                        {"tiles", std::uint64_t{finding.tiles}},
                        {"instruction", finding.instruction},
                        {"other_instruction", finding.other},
                        {"times", finding.times},
                        {"not_listed", finding.not_listed}}};
}

class WatchedDevice final : public runtime::Device,
                            public runtime::Watched,
                            public std::enable_shared_from_this<WatchedDevice> {
  public:
    WatchedDevice(std::string uri, const SimulatorOptions& options)
        : uri_(std::move(uri)), simulator_(options) {}

    [[nodiscard]] std::string uri() const override { return uri_; }
    [[nodiscard]] Result<std::unique_ptr<graph::DeviceOperator>> load(
        std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) override;
    [[nodiscard]] std::vector<runtime::Finding> findings() const override {
        std::vector<runtime::Finding> all;
        for (const Finding& finding : findings_) all.push_back(described(finding));
        return all;
    }
    void forget_findings() override { findings_.clear(); }

    [[nodiscard]] Status run(SimulatedPackage& package, const LayerBinding& binding,
                             const RunWatch& watch) {
        REEF_CHECK(package.run(simulator_, binding.inputs(), binding.outputs(), &watch));
        const auto found = simulator_.findings();
        findings_.insert(findings_.end(), found.begin(), found.end());
        return {};
    }

  private:
    std::string uri_;
    Simulator simulator_;
    std::vector<Finding> findings_;
};

class WatchedOperator final : public graph::DeviceOperator, RunWatch {
  public:
    WatchedOperator(std::shared_ptr<WatchedDevice> device, SimulatedPackage package,
                    LayerBinding binding, const graph::RunControl& control)
        : device_(std::move(device)),
          package_(std::move(package)),
          binding_(std::move(binding)),
          control_(control) {}

    [[nodiscard]] std::string kernel() const override {
        return "compiled program, simulated and watched";
    }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        binding_.bind(inputs, outputs);
        return device_->run(package_, binding_, *this);
    }

  private:
    [[nodiscard]] Status may_go_on() const override { return control_.check(); }

    std::shared_ptr<WatchedDevice> device_;
    SimulatedPackage package_;
    LayerBinding binding_;
    const graph::RunControl& control_;
};

Result<std::unique_ptr<graph::DeviceOperator>> WatchedDevice::load(
    std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) {
    const auto& compiled = static_cast<const ChipProgram&>(*program);
    auto package = REEF_TRY(SimulatedPackage::prepare(compiled.package));
    return std::make_unique<WatchedOperator>(shared_from_this(), std::move(package),
                                             compiled.binding, control);
}

}  // namespace

std::shared_ptr<runtime::Device> watched_device(std::string uri, const SimulatorOptions& options) {
    return std::make_shared<WatchedDevice>(std::move(uri), options);
}

}  // namespace reef::edgetpu
