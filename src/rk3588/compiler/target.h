// Which operators the compiler takes.
#pragma once

#include "compiler/partition.h"
#include "rk3588/compiler/options.h"

namespace reef::rk3588::lowering {

class Target final : public compiler::Target {
  public:
    explicit Target(const Options& options) : options_(options) {}
    [[nodiscard]] std::string refusal(const compiler::Graph& graph,
                                      const compiler::Node& node) const override;

  private:
    Options options_;
};

/// Largest kernel, in pixels of each side.
inline constexpr std::int32_t most_kernel = 31;

}  // namespace reef::rk3588::lowering
