#include "debug/target.h"

#include <fmt/format.h>

#include <optional>

#include "inputs/chips.h"
#include "inputs/drawn_input.h"
#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"

namespace reef::tool::debug {
namespace {

using runtime::Capability;
using runtime::Registry;

/// Each that can be debugged, and each with a name where it may have one.
std::vector<std::string> devices_to_debug() {
    std::vector<std::string> devices;
    for (const runtime::Driver* driver : Registry::of_process().drivers())
        for (const runtime::BackendInfo& backend : driver->backends()) {
            if (!backend.has(Capability::debug)) continue;
            devices.push_back(fmt::format("{}:{}", driver->family(), backend.backend));
            if (backend.naming == runtime::Naming::optional)
                devices.push_back(fmt::format("{}:{}", devices.back(), backend.name_means));
        }
    return devices;
}

Status check_firmware(const TargetOptions& options, const Registry& registry) {
    if (options.firmware.empty()) return {};
    const auto having = registry.devices_with_option("firmware");
    return fail(Cause::bad_argument, fmt::format("device {} takes no firmware", options.device), {},
                having.empty() ? std::string()
                               : fmt::format("--firmware is for a stick at {}", having.front()));
}

}  // namespace

std::string standard_device() {
    for (const runtime::Driver* driver : Registry::of_process().drivers())
        for (const runtime::BackendInfo& backend : driver->backends())
            if (backend.has(Capability::debug) && backend.has(Capability::simulated))
                return fmt::format("{}:{}", driver->family(), backend.backend);
    return {};
}

std::string device_forms() {
    return runtime::in_a_row(devices_to_debug(), "or");
}

Result<Target> open_target(const TargetOptions& options) {
    const Registry& registry = Registry::of_process();
    const auto found = registry.find(options.device);
    const auto* opener =
        found ? registry.part<chip::DebuggerOpener>(found->driver->family()) : nullptr;
    if (opener == nullptr || !found->backend->has(Capability::debug))
        return fail(Cause::bad_argument,
                    fmt::format("'{}' is no device that can be debugged", options.device), {},
                    device_forms());
    if (found->backend->has(Capability::simulated)) {
        REEF_CHECK(check_firmware(options, registry));
        if (options.file.empty())
            return fail(Cause::bad_argument, "a simulated chip needs a compiled model", {},
                        "reef debug FILE");
    }
    std::optional<model::Model> model;
    if (!options.file.empty()) model = REEF_TRY(model::load_tflite(options.file));
    Target target;
    auto opened = opener->open({.device = options.device,
                                .model = model ? &*model : nullptr,
                                .place = options.file,
                                .inputs =
                                    [&](const model::Subgraph& graph) {
                                        return options.inputs.empty()
                                                   ? random_inputs(graph, options.seed)
                                                   : load_inputs(graph, options.inputs);
                                    },
                                .firmware = options.firmware,
                                .op = options.op});
    if (!opened) return std::unexpected(std::move(opened.error()));
    static_cast<chip::DebugTarget&>(target) = std::move(*opened);
    target.disassembler = registry.part<chip::Disassembler>(found->driver->family());
    target.device = options.device;
    target.file = options.file;
    return target;
}

}  // namespace reef::tool::debug
