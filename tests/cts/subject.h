// A device that the conformance suite is run for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/model/graph.h"
#include "reef/runtime/registry.h"
#include "reef/runtime/session.h"

namespace reef::cts {

/// Enrolled by whoever brings a device; the suite finds them in the registry.
class Subject : public chip::Part {
  public:
    /// Of the tests: letters, digits and "_".
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual runtime::DeviceChoice device() const = 0;

    /// One that the device runs, with all of its operators. Errors: not_found when it needs data
    /// that are not here.
    [[nodiscard]] virtual Result<model::Model> model() const = 0;
    /// One with state that a run changes, which shows in the outputs; nothing: the device has none.
    [[nodiscard]] virtual std::optional<Result<model::Model>> stateful_model() const {
        return std::nullopt;
    }
    /// An option that the device has, with a value of another type; nothing: it has no options.
    [[nodiscard]] virtual std::optional<runtime::Option> wrong_option() const {
        return std::nullopt;
    }

    /// Promises (promises.h) that the device does not keep, with the reason. The suite fails when a
    /// promise in the list is kept.
    [[nodiscard]] virtual std::map<std::string, std::string> not_supported() const = 0;
};

}  // namespace reef::cts
