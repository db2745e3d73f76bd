// The tensors inside the Edge TPU's programs, as a part of the chip.
#pragma once

#include "reef/chip/layers.h"

namespace reef::edgetpu {

class LayerGatherer final : public chip::LayerGatherer {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] std::string_view device() const override { return "edgetpu:sim"; }
    [[nodiscard]] Result<std::vector<bool>> on_chip(const model::Model& compiled,
                                                    const model::Model& plain) const override;
    [[nodiscard]] Result<std::unique_ptr<chip::LayerSet>> gather(
        const chip::RanModel& ran) const override;
};

}  // namespace reef::edgetpu
