// What this build knows of chips: each enrols here, and nothing else names one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <vector>

#include "reef/chip/part.h"
#include "reef/runtime/driver.h"

namespace reef::graph {
class Placer;
}

namespace reef::runtime {

/// Enrolling is for the start of a program: nobody may look anything up meanwhile.
class Registry {
  public:
    Registry();  ///< knows the cpu alone
    ~Registry();

    /// That of the process. It begins with the chips of this build (REEF_CHIPS in src/chips.cmake);
    /// programs may enrol more before they open their first session.
    [[nodiscard]] static Registry& of_process();

    /// Precondition: no driver has its family.
    void add_driver(std::unique_ptr<Driver> driver);
    [[nodiscard]] std::vector<const Driver*> drivers() const;
    /// Null when there is none.
    [[nodiscard]] const Driver* find_driver(std::string_view family) const;

    /// Enrols `part` as a Kind: `add_part<Inspector>(std::make_unique<MyInspector>())`.
    template <class Kind>
    void add_part(std::unique_ptr<Kind> part) {
        add_part(typeid(Kind), std::shared_ptr<chip::Part>(std::move(part)));
    }
    /// All of a kind, in the order in which they were enrolled.
    template <class Kind>
    [[nodiscard]] std::vector<const Kind*> parts() const {
        std::vector<const Kind*> all;
        for (const chip::Part* part : parts_of(typeid(Kind)))
            all.push_back(static_cast<const Kind*>(part));
        return all;
    }
    /// The one of that family, or null.
    template <class Kind>
    [[nodiscard]] const Kind* part(std::string_view family) const {
        for (const Kind* each : parts<Kind>())
            if (each->family() == family) return each;
        return nullptr;
    }

    /// A device that some driver can have: its driver, backend and checked options.
    struct Found {
        const Driver* driver = nullptr;
        const BackendInfo* backend = nullptr;
        DeviceUri uri;
    };
    /// Errors: bad_argument for texts that are no URI, and for families and backends that nobody
    /// drives or that want a name, or none; with those that there are, and the nearest.
    [[nodiscard]] Result<Found> find(std::string_view device) const;

    /// The driver whose devices run the operator's program; null when it holds none.
    [[nodiscard]] const Driver* compiled_for(const model::Operator& op) const;

    /// Every backend's form: "cpu", "FAMILY:BACKEND[:NAME]", ...
    [[nodiscard]] std::vector<std::string> forms() const;
    /// The backends, without names, that have a capability.
    [[nodiscard]] std::vector<std::string> devices_with(Capability capability) const;
    /// The backends that have an option of that name.
    [[nodiscard]] std::vector<std::string> devices_with_option(std::string_view option) const;

  private:
    void add_part(std::type_index kind, std::shared_ptr<chip::Part> part);
    [[nodiscard]] std::span<const chip::Part* const> parts_of(std::type_index kind) const;

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Takes no operator, and says why nobody took one that is compiled for a chip of the registry: for
/// executors without that chip. The registry outlives it.
[[nodiscard]] std::shared_ptr<graph::Placer> refused_programs(const Registry& registry);

/// "a, b and c".
[[nodiscard]] std::string in_a_row(std::span<const std::string> names,
                                   std::string_view last = "and");

}  // namespace reef::runtime
