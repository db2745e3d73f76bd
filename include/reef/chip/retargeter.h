// A compiled program re-emitted for another plain model of the same architecture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/model/graph.h"

namespace reef::chip {

struct RetargetRequest {
    const model::Model& compiled;
    const model::Model& target;            ///< the plain model to compute
    const model::Model* source = nullptr;  ///< the plain model of `compiled`, where it is at hand
    /// By which a runtime knows parameters that it keeps; nothing: made from them.
    std::optional<std::uint64_t> token{};
    /// What the plain models are called in front of the places of errors; empty: nothing.
    std::string source_name{}, target_name{};
};

struct Retargeting {
    model::Model model;
    std::size_t changed_instructions = 0;
    std::size_t changed_parameter_bytes = 0;
    /// Of a segment of a pipeline: which of the target's operators is its first.
    std::optional<std::size_t> first_operator{};
};

/// Of a family of chips, enrolled as a part of it.
class Retargeter : public Part {
  public:
    /// Errors: unsupported, with the operator and the reason, when the architectures differ, the
    /// program cannot hold what the target needs, or is not understood; without a source also when
    /// the program can be read in several ways.
    [[nodiscard]] virtual Result<Retargeting> retarget(const RetargetRequest& request) const = 0;
};

}  // namespace reef::chip
