// Parameters of compiled models, as a part of the chip.
#pragma once

#include "reef/chip/parameters.h"

namespace reef::edgetpu {

class ParameterReader final : public chip::ParameterReader {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] Result<std::unique_ptr<chip::Parameters>> open(
        model::Model plain, model::Model compiled) const override;
};

}  // namespace reef::edgetpu
