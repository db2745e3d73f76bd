#include "reef/runtime/driver.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::runtime {

std::string_view to_string(Capability capability) {
    switch (capability) {
        case Capability::computes:
            return "computes";
        case Capability::simulated:
            return "simulated";
        case Capability::strict:
            return "strict";
        case Capability::debug:
            return "debug";
        case Capability::record:
            return "record";
        case Capability::layers:
            return "layers";
    }
    return "unknown";
}

bool BackendInfo::has(Capability capability) const {
    return std::ranges::find(capabilities, capability) != capabilities.end();
}

const BackendInfo* Driver::find_backend(std::string_view backend) const {
    const auto all = backends();
    const auto found = std::ranges::find(all, backend, &BackendInfo::backend);
    return found == all.end() ? nullptr : &*found;
}

std::string form_of(const Driver& driver, const BackendInfo& backend) {
    std::string form(driver.family());
    if (!backend.backend.empty()) form += ":" + backend.backend;
    if (backend.naming == Naming::optional) form += fmt::format("[:{}]", backend.name_means);
    if (backend.naming == Naming::required) form += ":" + backend.name_means;
    return form;
}

}  // namespace reef::runtime
