#include "placing.h"

#include <fmt/format.h>

#include "cpu_driver.h"
#include "graph/device_operator.h"

namespace reef::runtime {
namespace {

class RefusedPrograms final : public graph::Placer {
  public:
    explicit RefusedPrograms(const Registry& registry) : registry_(registry) {}
    [[nodiscard]] Result<graph::Placed> place(const graph::OperatorView& /*op*/) override {
        return graph::Placed{};
    }
    [[nodiscard]] bool has(const graph::OperatorView& /*op*/) const override { return false; }
    [[nodiscard]] std::optional<Error> refusal(const graph::OperatorView& op) const override {
        const Driver* driver = registry_.compiled_for(op.op());
        if (driver == nullptr) return std::nullopt;
        const PlacementWords& words = driver->words();
        return Error{
            Cause::unsupported,
            fmt::format("the operator holds a program for {}, which the CPU cannot run",
                        words.chip),
            {},
            fmt::format("{}, or use the model as it was before it was compiled", words.elsewhere)};
    }

  private:
    const Registry& registry_;
};

}  // namespace

Result<std::vector<ChosenDevice>> choose_devices(const SessionOptions& options,
                                                 const Registry& registry) {
    if (options.devices.empty()) return fail(Cause::bad_argument, "no device is named");
    std::vector<ChosenDevice> devices;
    for (const DeviceChoice& choice : options.devices) {
        auto found = REEF_TRY(registry.find(choice.uri));
        auto values =
            REEF_TRY(OptionValues::check(found.driver->options(), found.uri, choice.options));
        if (found.driver->family() == cpu_family) continue;
        devices.push_back({std::move(found), std::move(values)});
    }
    return devices;
}

std::string names_of(const std::vector<ChosenDevice>& devices) {
    std::vector<std::string> names;
    for (const ChosenDevice& each : devices) names.push_back(each.found.uri.device());
    return in_a_row(names, "or");
}

DevicePlacer::DevicePlacer(ChosenDevice chosen, std::shared_ptr<DevicePool> pool, int threads,
                           const graph::RunControl& control)
    : chosen_(std::move(chosen)), pool_(std::move(pool)), threads_(threads), control_(control) {}

bool DevicePlacer::has(const graph::OperatorView& op) const {
    return chosen_.found.driver->is_compiled(op.op());
}

Result<graph::Placed> DevicePlacer::place(const graph::OperatorView& op) {
    const Driver& driver = *chosen_.found.driver;
    if (!driver.is_compiled(op.op())) return graph::Placed{};
    auto program =
        REEF_TRY(driver.prepare(chosen_.found.uri, chosen_.options, op.graph(), op.op()));
    if (device_ == nullptr)
        device_ = REEF_TRY(pool_->open(chosen_.found, chosen_.options, threads_));
    auto loaded = REEF_TRY(device_->load(std::move(program), control_));
    std::string kernel = loaded->kernel();
    return graph::Placed{graph::device_kernel(std::move(loaded), op), std::move(kernel),
                         driver.words().taken};
}

std::shared_ptr<graph::Placer> refused_programs(const Registry& registry) {
    return std::make_shared<RefusedPrograms>(registry);
}

}  // namespace reef::runtime
