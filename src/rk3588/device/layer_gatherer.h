// The tensors of compiled programs on the simulated cores, as a part of the chip.
#pragma once

#include "reef/chip/layers.h"

namespace reef::rk3588 {

class LayerGatherer final : public chip::LayerGatherer {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] std::string_view device() const override { return "rk3588:sim"; }
    [[nodiscard]] Result<std::vector<bool>> on_chip(const model::Model& compiled,
                                                    const model::Model& plain) const override;
    [[nodiscard]] Result<chip::LayerReference> reference(
        const model::Model& compiled) const override;
    [[nodiscard]] Result<std::unique_ptr<chip::LayerSet>> gather(
        const chip::RanModel& ran) const override;
};

}  // namespace reef::rk3588
