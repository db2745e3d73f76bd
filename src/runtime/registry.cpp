#include "reef/runtime/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "cpu_driver.h"

namespace reef::runtime {

/// Defined by the build, from the list of its chips (src/chips.cmake).
void enrol_chips(Registry& registry);

struct Registry::Impl {
    struct Kind {
        std::vector<std::shared_ptr<chip::Part>> owned;
        std::vector<const chip::Part*> parts;
    };
    std::vector<std::unique_ptr<Driver>> drivers;
    std::map<std::type_index, Kind> kinds;
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {
    add_driver(cpu_driver());
}
Registry::~Registry() = default;

Registry& Registry::of_process() {
    static Registry& registry = []() -> Registry& {
        static Registry chips;
        enrol_chips(chips);
        return chips;
    }();
    return registry;
}

void Registry::add_driver(std::unique_ptr<Driver> driver) {
    assert(find_driver(driver->family()) == nullptr);
    impl_->drivers.push_back(std::move(driver));
}

std::vector<const Driver*> Registry::drivers() const {
    std::vector<const Driver*> all;
    for (const auto& driver : impl_->drivers) all.push_back(driver.get());
    return all;
}

const Driver* Registry::find_driver(std::string_view family) const {
    for (const auto& driver : impl_->drivers)
        if (driver->family() == family) return driver.get();
    return nullptr;
}

void Registry::add_part(std::type_index kind, std::shared_ptr<chip::Part> part) {
    auto& of_kind = impl_->kinds[kind];
    of_kind.parts.push_back(part.get());
    of_kind.owned.push_back(std::move(part));
}

std::span<const chip::Part* const> Registry::parts_of(std::type_index kind) const {
    const auto found = impl_->kinds.find(kind);
    if (found == impl_->kinds.end()) return {};
    return found->second.parts;
}

namespace {

std::string without_name(const Driver& driver, const BackendInfo& backend) {
    return DeviceUri{std::string(driver.family()), backend.backend, {}}.device();
}

/// Every backend that `wanted` likes.
template <class Wanted>
std::vector<std::string> devices_where(const Registry& registry, Wanted&& wanted) {
    std::vector<std::string> devices;
    for (const Driver* driver : registry.drivers())
        for (const BackendInfo& backend : driver->backends())
            if (wanted(*driver, backend)) devices.push_back(without_name(*driver, backend));
    return devices;
}

}  // namespace

Result<Registry::Found> Registry::find(std::string_view device) const {
    const auto refuse = [&]() -> std::unexpected<Error> {
        const auto known = devices_where(*this, [](const auto&, const auto&) { return true; });
        std::string hint = fmt::format("this build drives {}", in_a_row(forms()));
        if (const auto near = nearest(device.substr(0, device.find('?')), known))
            hint += fmt::format("; did you mean {}?", *near);
        return fail(Cause::bad_argument, fmt::format("'{}' is not a device", device), {},
                    std::move(hint));
    };
    auto uri = DeviceUri::parse(device);
    if (!uri) {
        // What is wrong with options stays; everything else is told by what there is.
        if (!uri.error().place.empty()) return std::unexpected(std::move(uri.error()));
        return refuse();
    }
    Found found{.driver = find_driver(uri->family), .backend = nullptr, .uri = {}};
    if (found.driver != nullptr) found.backend = found.driver->find_backend(uri->backend);
    if (found.backend == nullptr) return refuse();
    const bool named = !uri->name.empty();
    if (named && found.backend->naming == Naming::none) return refuse();
    if (!named && found.backend->naming == Naming::required) return refuse();
    found.uri = std::move(*uri);
    return found;
}

const Driver* Registry::compiled_for(const model::Operator& op) const {
    for (const auto& driver : impl_->drivers)
        if (driver->is_compiled(op)) return driver.get();
    return nullptr;
}

std::vector<std::string> Registry::forms() const {
    std::vector<std::string> all;
    for (const auto& driver : impl_->drivers)
        for (const BackendInfo& backend : driver->backends())
            all.push_back(form_of(*driver, backend));
    return all;
}

std::vector<std::string> Registry::devices_with(Capability capability) const {
    return devices_where(
        *this, [&](const auto&, const BackendInfo& backend) { return backend.has(capability); });
}

std::vector<std::string> Registry::devices_with_option(std::string_view option) const {
    return devices_where(*this, [&](const Driver& driver, const BackendInfo& backend) {
        return std::ranges::any_of(driver.options(), [&](const OptionInfo& info) {
            return info.name == option &&
                   (info.backends.empty() ||
                    std::ranges::find(info.backends, backend.backend) != info.backends.end());
        });
    });
}

std::string in_a_row(std::span<const std::string> names, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i != 0) text += i + 1 == names.size() ? fmt::format(" {} ", last) : ", ";
        text += names[i];
    }
    return text;
}

}  // namespace reef::runtime
