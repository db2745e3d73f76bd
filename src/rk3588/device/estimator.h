// The RK3588's estimates, as a part of the chip.
#pragma once

#include "reef/chip/estimate.h"

namespace reef::rk3588 {

class Estimator final : public chip::Estimator {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] Result<std::optional<chip::Estimate>> estimate(
        const model::Model& model) const override;
};

}  // namespace reef::rk3588
