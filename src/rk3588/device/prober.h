// The questions about the chip that only a board can answer.
#pragma once

#include "reef/chip/prober.h"

namespace reef::rk3588 {

class Prober final : public chip::Prober {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] Result<std::vector<chip::ProbeAnswer>> probe(
        const std::string& device) const override;
};

}  // namespace reef::rk3588
