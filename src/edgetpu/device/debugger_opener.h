// Opens the Edge TPU's debuggers: of a simulated chip, of a stick, of a stick that computes
// nothing.
#pragma once

#include "reef/edgetpu/debugger.h"

namespace reef::edgetpu {

class DebuggerOpener final : public chip::DebuggerOpener {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] const chip::DebugTables& tables() const override { return debug_tables(); }
    [[nodiscard]] Result<chip::DebugTarget> open(const chip::DebugRequest& request) const override;
};

}  // namespace reef::edgetpu
