// What this compiler can put on the Edge TPU.
#pragma once

#include "compiler/partition.h"

namespace reef::edgetpu::lowering {

class Target final : public compiler::Target {
  public:
    [[nodiscard]] std::string refusal(const compiler::Graph& graph,
                                      const compiler::Node& node) const override;
};

}  // namespace reef::edgetpu::lowering
