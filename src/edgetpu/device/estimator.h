// The Edge TPU's estimates, as a part of the chip.
#pragma once

#include "reef/chip/estimate.h"

namespace reef::edgetpu {

class Estimator final : public chip::Estimator {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] Result<std::optional<chip::Estimate>> estimate(
        const model::Model& model) const override;
};

}  // namespace reef::edgetpu
