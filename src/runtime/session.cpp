#include "reef/runtime/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "background_run.h"
#include "cpu_driver.h"
#include "placing.h"

namespace reef::runtime {
namespace {

/// Placers of a session: who refuses what nobody takes, the devices', the CPU's.
struct Placers {
    std::vector<std::shared_ptr<DevicePlacer>> devices;
    std::vector<std::shared_ptr<graph::Placer>> all;
    /// The device of a place in `all`, or null.
    [[nodiscard]] const DevicePlacer* device(std::size_t placer) const {
        const bool is_device = placer >= 1 && placer <= devices.size();
        return is_device ? devices[placer - 1].get() : nullptr;
    }
};

Placers placers_of(std::vector<ChosenDevice> chosen, const SessionOptions& options,
                   const Registry& registry, const graph::RunControl& control) {
    Placers placers;
    placers.all.push_back(refused_programs(registry));
    const auto own = std::make_shared<DevicePool>();
    for (ChosenDevice& each : chosen) {
        const auto& standard = each.found.backend->one_per_process ? DevicePool::of_process() : own;
        placers.devices.push_back(std::make_shared<DevicePlacer>(
            std::move(each), options.pool != nullptr ? options.pool : standard, options.threads,
            control));
        placers.all.push_back(placers.devices.back());
    }
    placers.all.push_back(cpu::placer({.kernels = options.kernels,
                                       .arithmetic = options.arithmetic,
                                       .in_arithmetic = options.in_arithmetic}));
    return placers;
}

std::string reason_for(const graph::Placement& placement, const Placers& placers) {
    if (!placement.reason.empty()) return placement.reason;
    if (placers.devices.empty()) return "the whole model was asked to run on the CPU";
    return placers.devices.front()->chosen().found.driver->words().left;
}

std::vector<PlacedOperator> placements_of(const graph::Executor& executor, const Placers& placers) {
    std::vector<PlacedOperator> placements;
    for (const graph::Placement& placement : executor.placements()) {
        const DevicePlacer* device = placers.device(placement.placer);
        placements.push_back({.index = placement.operator_index,
                              .name = placement.operator_name,
                              .device = device != nullptr ? device->chosen().found.uri.device()
                                                          : std::string(cpu_family),
                              .kernel = placement.kernel,
                              .reason = reason_for(placement, placers)});
    }
    return placements;
}

/// `names`: of the devices that were asked for.
Status check_placements(const std::vector<PlacedOperator>& placements, const Placers& placers,
                        const std::string& names, const SessionOptions& options) {
    const auto on_cpu = [](const PlacedOperator& op) { return op.device == cpu_family; };
    if (std::ranges::all_of(placements, on_cpu))
        return fail(Cause::unsupported,
                    fmt::format("the model has no operator compiled for {}", names), {},
                    fmt::format("{}, or run it with `device` cpu",
                                placers.devices.front()->chosen().found.driver->words().make));
    const auto left = std::ranges::find_if(placements, on_cpu);
    if (options.require_npu && left != placements.end())
        return fail(Cause::unsupported,
                    fmt::format("operator {} {} would run on the CPU: {}", left->index, left->name,
                                left->reason),
                    {}, "run without `require_npu`, or compile a model without this operator");
    return {};
}

/// What the devices that do not compute are good for is no answer to who wants an NPU.
std::string npus(const Registry& registry) {
    auto computing = registry.devices_with(Capability::computes);
    std::erase(computing, cpu_family);
    return in_a_row(computing, "or");
}

Status check_options(const SessionOptions& options, const std::vector<ChosenDevice>& devices,
                     const Registry& registry) {
    if (!devices.empty() && options.arithmetic != nullptr)
        return fail(Cause::bad_argument,
                    fmt::format("device {} has its own arithmetic", names_of(devices)), {},
                    "choose an arithmetic for cpu only");
    if (devices.empty() && options.require_npu)
        return fail(Cause::bad_argument, "device cpu is no NPU, and one is required", {},
                    fmt::format("choose `device` {} with `require_npu`", npus(registry)));
    return {};
}

}  // namespace

struct Session::Impl {
    Status run(graph::RunObserver* observer) {
        for (const auto& device : devices)
            if (device != nullptr)
                if (auto* watched = device->as<Watched>()) watched->forget_findings();
        return executor->run(observer);
    }

    graph::RunControl control;
    std::optional<std::chrono::milliseconds> deadline;
    std::optional<graph::Executor> executor;
    std::vector<PlacedOperator> placements;
    std::vector<std::shared_ptr<Device>> devices;
    BackgroundRun background;  // ends before everything that its run uses
};

Result<Session> Session::open(const model::Model& model, const SessionOptions& options) {
    const Registry& registry =
        options.registry != nullptr ? *options.registry : Registry::of_process();
    auto chosen = REEF_TRY(choose_devices(options, registry));
    REEF_CHECK(check_options(options, chosen, registry));
    const std::string names = names_of(chosen);
    auto impl = std::make_unique<Impl>();
    impl->deadline = options.deadline;
    const Placers placers = placers_of(std::move(chosen), options, registry, impl->control);
    impl->executor.emplace(
        REEF_TRY(graph::Executor::create(model, {.placers = placers.all,
                                                 .threads = options.threads,
                                                 .keep_all_tensors = options.keep_all_tensors,
                                                 .control = &impl->control})));
    impl->placements = placements_of(*impl->executor, placers);
    if (!placers.devices.empty())
        REEF_CHECK(check_placements(impl->placements, placers, names, options));
    for (const auto& each : placers.devices) impl->devices.push_back(each->device());
    return Session(std::move(impl));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&& other) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
}
Session::~Session() {
    if (impl_ != nullptr) cancel();
}

const model::Subgraph& Session::graph() const {
    return impl_->executor->graph();
}
std::size_t Session::input_count() const {
    return impl_->executor->input_count();
}
std::size_t Session::output_count() const {
    return impl_->executor->output_count();
}
MutableBytes Session::input(std::size_t i) {
    return impl_->executor->input(i);
}
Bytes Session::output(std::size_t i) const {
    return impl_->executor->output(i);
}
Bytes Session::tensor(model::TensorIndex index) const {
    return impl_->executor->tensor(index);
}

Status Session::run(graph::RunObserver* observer) {
    if (impl_->background.is_open())
        return fail(Cause::bad_argument, "a run that was started is not waited for");
    impl_->control.begin(impl_->deadline);
    return impl_->run(observer);
}

Status Session::start(graph::RunObserver* observer) {
    if (impl_->background.is_open())
        return fail(Cause::bad_argument, "a run that was started is not waited for");
    // Before the thread works, so that no cancel() after this call is lost.
    impl_->control.begin(impl_->deadline);
    return impl_->background.start([impl = impl_.get(), observer] { return impl->run(observer); });
}

std::optional<Status> Session::wait_for(std::chrono::milliseconds most) {
    if (!impl_->background.is_open()) return fail(Cause::bad_argument, "no run was started");
    return impl_->background.wait(most);
}

Status Session::wait() {
    if (!impl_->background.is_open()) return fail(Cause::bad_argument, "no run was started");
    return *impl_->background.wait(std::nullopt);
}

bool Session::finished() const {
    return impl_->background.finished();
}

void Session::cancel() {
    impl_->control.cancel();
    for (const auto& device : impl_->devices)
        if (device != nullptr) device->interrupt();
}

void Session::set_deadline(std::optional<std::chrono::milliseconds> deadline) {
    impl_->deadline = deadline;
}
void Session::reset_state() {
    impl_->executor->reset_state();
}
const std::vector<PlacedOperator>& Session::placements() const {
    return impl_->placements;
}
int Session::threads_taken() const {
    return impl_->executor->threads_taken();
}

const graph::MemoryReport& Session::memory() const {
    return impl_->executor->memory();
}
std::span<const std::shared_ptr<Device>> Session::devices() const {
    return impl_->devices;
}

std::vector<Finding> Session::findings() const {
    std::vector<Finding> all;
    for (const auto& device : impl_->devices) {
        if (device == nullptr) continue;
        const auto* watched = device->as<Watched>();
        if (watched == nullptr) continue;
        std::ranges::move(watched->findings(), std::back_inserter(all));
    }
    return all;
}

std::optional<DeviceCounters> Session::counters() const {
    std::optional<DeviceCounters> sum;
    for (const auto& device : impl_->devices) {
        if (device == nullptr) continue;
        const auto counted = device->counters();
        if (!counted) continue;
        if (!sum) sum.emplace();
        sum->runs += counted->runs;
        sum->parameter_loads += counted->parameter_loads;
        sum->evictions += counted->evictions;
        sum->recoveries += counted->recoveries;
    }
    return sum;
}

}  // namespace reef::runtime
