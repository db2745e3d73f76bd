// The toy chip's debugger: one program, an instruction at a time.
#pragma once

#include "reef/chip/debugger.h"

namespace reef::toy {

class DebuggerOpener final : public chip::DebuggerOpener {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] const chip::DebugTables& tables() const override;
    [[nodiscard]] Result<chip::DebugTarget> open(const chip::DebugRequest& request) const override;
};

}  // namespace reef::toy
