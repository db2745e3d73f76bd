#include "inputs/chips.h"

#include <vector>

#include "reef/chip/inspector.h"
#include "reef/runtime/registry.h"

namespace reef::tool {

using runtime::Registry;

std::string_view family_of(const model::Model& model) {
    const Registry& registry = Registry::of_process();
    for (const model::Subgraph& graph : model.subgraphs)
        for (const model::Operator& op : graph.operators)
            if (const auto* driver = registry.compiled_for(op)) return driver->family();
    return {};
}

std::string device_for(const model::Model& model) {
    const std::string_view family = family_of(model);
    if (family.empty()) return "cpu";
    for (auto& device : Registry::of_process().devices_with(runtime::Capability::simulated))
        if (device.starts_with(family)) return device;
    return "cpu";
}

std::string chip_name(std::string_view family) {
    const auto* inspector = Registry::of_process().part<chip::Inspector>(family);
    return std::string(inspector != nullptr ? inspector->name() : family);
}

std::string chip_names() {
    std::vector<std::string> names;
    for (const auto* inspector : Registry::of_process().parts<chip::Inspector>())
        names.emplace_back(inspector->name());
    return runtime::in_a_row(names, "or");
}

std::string with_example_chip(std::string_view text) {
    constexpr std::string_view placeholder = "CHIP";
    const auto simulated = Registry::of_process().devices_with(runtime::Capability::simulated);
    const std::string family =
        simulated.empty() ? "chip" : simulated.front().substr(0, simulated.front().find(':'));
    std::string out;
    while (true) {
        const std::size_t at = text.find(placeholder);
        out += text.substr(0, at);
        if (at == std::string_view::npos) return out;
        out += family;
        text.remove_prefix(at + placeholder.size());
    }
}

}  // namespace reef::tool
