// What this compiler can put on the Edge TPU.
#pragma once

#include "compiler/partition.h"

namespace reef::edgetpu::lowering {

/// One visit of a position reads so many rows of parameters at most.
constexpr std::int64_t most_taps = 240;

class Target final : public compiler::Target {
  public:
    [[nodiscard]] std::string refusal(const compiler::Graph& graph,
                                      const compiler::Node& node) const override;
};

}  // namespace reef::edgetpu::lowering
