#include "cpu_driver.h"

namespace reef::runtime {
namespace {

class CpuDriver final : public Driver {
  public:
    [[nodiscard]] std::string_view family() const override { return cpu_family; }
    [[nodiscard]] std::string_view sentence() const override {
        return "this processor, which also runs what devices leave";
    }
    [[nodiscard]] std::span<const BackendInfo> backends() const override { return backends_; }
    [[nodiscard]] std::span<const OptionInfo> options() const override { return {}; }
    [[nodiscard]] const PlacementWords& words() const override { return words_; }
    [[nodiscard]] Enumeration enumerate() const override {
        return {.devices = {{"cpu", "ready", "this processor"}}, .buses = {}};
    }
    [[nodiscard]] bool is_compiled(const model::Operator&) const override { return false; }
    [[nodiscard]] Result<std::shared_ptr<const Program>> prepare(
        const DeviceUri&, const OptionValues&, const model::Subgraph&,
        const model::Operator& op) const override {
        return fail(Cause::unsupported, "nothing is compiled for the CPU", op.code.name());
    }
    [[nodiscard]] Result<std::shared_ptr<Device>> open(const DeviceUri& device, const OptionValues&,
                                                       int) const override {
        return fail(Cause::unsupported, "the CPU is no device that can be opened", device.device());
    }

  private:
    std::vector<BackendInfo> backends_ = {
        {.backend = {}, .sentence = "this processor", .capabilities = {Capability::computes}}};
    PlacementWords words_;
};

}  // namespace

std::unique_ptr<Driver> cpu_driver() {
    return std::make_unique<CpuDriver>();
}

}  // namespace reef::runtime
