// The checks of sticks on USB, as a part of the chip.
#pragma once

#include "reef/chip/doctor.h"

namespace reef::edgetpu {

class StickDoctor final : public chip::Doctor {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] std::vector<chip::Check> check() const override;
    [[nodiscard]] std::string_view udev_rule() const override;
};

}  // namespace reef::edgetpu
