// Ending a run before it is complete.
#pragma once

#include "reef/base/result.h"

namespace reef::edgetpu {

/// Who may end a run before it is complete.
class RunWatch {
  public:
    virtual ~RunWatch() = default;
    /// Asked before each wait for a device, and by a simulated chip every few milliseconds of its
    /// work, on the thread that runs; an error ends the run with it.
    [[nodiscard]] virtual Status may_go_on() const = 0;
};

}  // namespace reef::edgetpu
