// Rows of a convolution's parameters, one behind the other.
#pragma once

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {

/// Puts the rows of one layer together.
class RowWriter {
  public:
    /// Rows of so many words.
    RowWriter(ParameterLayer& layer, std::uint32_t row_lanes)
        : layer_(layer), row_lanes_(row_lanes) {}

    /// The rows in front of a group: factors, biases and zero points of its channels. Lanes without
    /// a channel hold what the vendor's programs have there.
    void head(std::uint32_t first, std::uint32_t count, bool biases = true);
    /// One tap's weights from a word of input channels to `count` outputs.
    void weights(std::uint32_t first, std::uint32_t count, std::uint32_t tap, std::uint32_t word);
    /// One tap's weights of a word of results, each of one channel.
    void diagonal(std::uint32_t first, std::uint32_t count, std::uint32_t tap);

  private:
    std::byte* next();
    [[nodiscard]] std::byte zero() const {
        return static_cast<std::byte>(layer_.source->weight_zero);
    }

    ParameterLayer& layer_;
    std::uint32_t row_lanes_;
};

[[nodiscard]] inline std::uint32_t taps_of(const compiler::Convolution& conv) {
    return static_cast<std::uint32_t>(conv.window.kernel_h) *
           static_cast<std::uint32_t>(conv.window.kernel_w);
}

}  // namespace reef::edgetpu::lowering
