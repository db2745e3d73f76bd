#include "reef/runtime/chips.h"

#include <vector>

#include "reef/chip/checker.h"
#include "reef/chip/inspector.h"
#include "reef/runtime/registry.h"

namespace reef::runtime {

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
    for (auto& device : Registry::of_process().devices_with(Capability::simulated))
        if (device.starts_with(family)) return device;
    return "cpu";
}

std::string chip_name(std::string_view family) {
    const Registry& registry = Registry::of_process();
    if (const auto* inspector = registry.part<chip::Inspector>(family))
        return std::string(inspector->name());
    if (const auto* checker = registry.part<chip::TargetChecker>(family))
        return std::string(checker->name());
    return std::string(family);
}

std::string chip_names() {
    std::vector<std::string> names;
    for (const auto* inspector : Registry::of_process().parts<chip::Inspector>())
        names.emplace_back(inspector->name());
    return in_a_row(names, "or");
}

}  // namespace reef::runtime
