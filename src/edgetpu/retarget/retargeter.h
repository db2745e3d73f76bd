// Retargeting, as a part of the chip.
#pragma once

#include "reef/chip/retargeter.h"

namespace reef::edgetpu {

class Retargeter final : public chip::Retargeter {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] Result<chip::Retargeting> retarget(
        const chip::RetargetRequest& request) const override;
};

}  // namespace reef::edgetpu
