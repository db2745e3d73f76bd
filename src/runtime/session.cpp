#include "reef/runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "edgetpu_operators.h"

namespace reef::runtime {
namespace {

enum class Rest : std::uint8_t { none, optional, required };

struct DeviceForm {
    std::string_view family;
    std::string_view backend;
    Rest rest;
};

constexpr auto device_forms = std::to_array<DeviceForm>({
    {"cpu", "", Rest::none},
    {"edgetpu", "sim", Rest::optional},
    {"edgetpu", "usb", Rest::optional},
    {"edgetpu", "replay", Rest::required},
    {"rk3588", "sim", Rest::none},
    {"rk3588", "rknpu", Rest::optional},
    {"rk3588", "rocket", Rest::optional},
});

/// `text` up to the first colon, which goes from `text` with it; nothing behind means no colon.
std::pair<std::string_view, bool> take_word(std::string_view& text) {
    const std::size_t colon = text.find(':');
    const std::string_view word = text.substr(0, colon);
    const bool more = colon != std::string_view::npos;
    text = more ? text.substr(colon + 1) : std::string_view{};
    return {word, more};
}

}  // namespace

Result<DeviceUri> DeviceUri::parse(std::string_view text) {
    std::string_view left = text;
    const auto [family, has_backend] = take_word(left);
    const auto [backend, has_rest] = take_word(left);
    const auto form = std::ranges::find_if(device_forms, [&](const DeviceForm& f) {
        return f.family == family && f.backend == backend && has_backend == !f.backend.empty();
    });
    const bool known =
        form != device_forms.end() &&
        (has_rest ? form->rest != Rest::none && !left.empty() : form->rest != Rest::required);
    if (!known)
        return fail(Cause::bad_argument, fmt::format("'{}' is not a device", text), {},
                    "this build drives cpu, edgetpu:sim[:NAME] and edgetpu:usb[:PORT]");
    return DeviceUri{std::string(family), std::string(backend), std::string(left)};
}

std::string DeviceUri::text() const {
    std::string result = family;
    if (!backend.empty()) result += ":" + backend;
    if (!rest.empty()) result += ":" + rest;
    return result;
}

namespace {

constexpr std::string_view cpu_text = "cpu";

/// What gives operators to the device; null for the CPU.
Result<std::shared_ptr<EdgeTpuOperators>> operators_of(const DeviceUri& device,
                                                       const SessionOptions& options) {
    if (device.family == cpu_text) return std::shared_ptr<EdgeTpuOperators>();
    if (options.simulator.strict) return watched_operators(options.simulator);
    if (device.family == "edgetpu" && (device.backend == "sim" || device.backend == "usb"))
        return driven_operators(device, options);
    return fail(Cause::device_missing,
                fmt::format("device {} is not part of this build", device.text()), {},
                "available: cpu, edgetpu:sim, edgetpu:usb");
}

std::string reason_for(const graph::Placement& placement, const DeviceUri& device) {
    if (!placement.reason.empty()) return placement.reason;
    if (device.family == cpu_text) return "the whole model was asked to run on the CPU";
    return "not part of a compiled program: the compiler left it to the CPU";
}

/// `devices`: by placer.
std::vector<PlacedOperator> placements_of(const graph::Executor& executor,
                                          const std::vector<std::string>& devices,
                                          const DeviceUri& device) {
    std::vector<PlacedOperator> placements;
    for (const graph::Placement& placement : executor.placements()) {
        placements.push_back({.index = placement.operator_index,
                              .name = placement.operator_name,
                              .device = devices[placement.placer],
                              .kernel = placement.kernel,
                              .reason = reason_for(placement, device)});
    }
    return placements;
}

Status check_placements(const std::vector<PlacedOperator>& placements, const DeviceUri& device,
                        const SessionOptions& options) {
    const auto on_cpu = [](const PlacedOperator& op) { return op.device == cpu_text; };
    if (std::ranges::all_of(placements, on_cpu))
        return fail(Cause::unsupported,
                    fmt::format("the model has no operator compiled for {}", device.text()), {},
                    "compile it for the Edge TPU, or run it with --device cpu");
    const auto left = std::ranges::find_if(placements, on_cpu);
    if (options.require_npu && left != placements.end())
        return fail(Cause::unsupported,
                    fmt::format("operator {} {} would run on the CPU: {}", left->index, left->name,
                                left->reason),
                    {}, "run without --require-npu, or compile a model without this operator");
    return {};
}

}  // namespace

struct Session::Impl {
    std::shared_ptr<EdgeTpuOperators> devices;  ///< null for the CPU
    graph::Executor executor;
    std::vector<PlacedOperator> placements;
};

Result<Session> Session::open(const model::Model& model, const SessionOptions& options) {
    const DeviceUri device = REEF_TRY(DeviceUri::parse(options.device));
    if (device.family != "cpu" && options.arithmetic != cpu::Arithmetic::tflite)
        return fail(Cause::bad_argument,
                    fmt::format("device {} has its own arithmetic", device.text()), {},
                    "choose an arithmetic for cpu only");
    if (device.family == "cpu" && options.require_npu)
        return fail(Cause::bad_argument, "device cpu is no NPU, and one is required", {},
                    "choose --device edgetpu:sim or edgetpu:usb with --require-npu");
    const bool simulated = device.family == "edgetpu" && device.backend == "sim";
    if (options.simulator.strict && !simulated)
        return fail(Cause::bad_argument, fmt::format("device {} has no strict runs", device.text()),
                    {}, "only edgetpu:sim watches what a program does");
    const bool stick = device.backend == "usb";
    if (!stick && !options.maximum_clock)
        return fail(Cause::bad_argument,
                    fmt::format("device {} has no clock to throttle", device.text()), {},
                    "--standard-clock is for a stick at edgetpu:usb");
    if (!stick && !options.firmware.empty())
        return fail(Cause::bad_argument, fmt::format("device {} takes no firmware", device.text()),
                    {}, "--firmware is for a stick at edgetpu:usb");
    auto devices = REEF_TRY(operators_of(device, options));
    std::vector<std::shared_ptr<graph::Placer>> placers;
    std::vector<std::string> names;
    if (devices != nullptr) {
        placers.push_back(devices);
        names.push_back(device.text());
    }
    placers.push_back(cpu::placer({.kernels = options.kernels, .arithmetic = options.arithmetic}));
    names.emplace_back(cpu_text);
    auto executor =
        REEF_TRY(graph::Executor::create(model, {.placers = std::move(placers),
                                                 .threads = options.threads,
                                                 .keep_all_tensors = options.keep_all_tensors}));
    auto placements = placements_of(executor, names, device);
    if (devices != nullptr) REEF_CHECK(check_placements(placements, device, options));
    return Session(
        std::make_unique<Impl>(std::move(devices), std::move(executor), std::move(placements)));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const model::Subgraph& Session::graph() const {
    return impl_->executor.graph();
}
std::size_t Session::input_count() const {
    return impl_->executor.input_count();
}
std::size_t Session::output_count() const {
    return impl_->executor.output_count();
}
MutableBytes Session::input(std::size_t i) {
    return impl_->executor.input(i);
}
Bytes Session::output(std::size_t i) const {
    return impl_->executor.output(i);
}
Bytes Session::tensor(model::TensorIndex index) const {
    return impl_->executor.tensor(index);
}
Status Session::run(graph::RunObserver* observer) {
    if (impl_->devices != nullptr) impl_->devices->forget_findings();
    return impl_->executor.run(observer);
}
void Session::reset_state() {
    impl_->executor.reset_state();
}
const std::vector<PlacedOperator>& Session::placements() const {
    return impl_->placements;
}
const graph::MemoryReport& Session::memory() const {
    return impl_->executor.memory();
}
std::span<const edgetpu::Finding> Session::findings() const {
    if (impl_->devices == nullptr) return {};
    return impl_->devices->findings();
}
std::optional<edgetpu::usb::DeviceCounters> Session::chip_counters() const {
    if (impl_->devices == nullptr) return std::nullopt;
    return impl_->devices->counters();
}

}  // namespace reef::runtime
