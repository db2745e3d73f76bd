#include "cpu/reference/concatenation.h"

#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/requantisation.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

/// A copy to another quantisation, of either 8-bit type; indexed by the bits.
Result<SliceTable> slice_table(const model::Tensor& input, const model::Tensor& output) {
    const auto in = REEF_TRY(per_tensor_parameters(input));
    const auto out = REEF_TRY(per_tensor_parameters(output));
    const auto requantise = REEF_TRY(float_requantisation(model::Activation::none, output));
    const float scale = REEF_TRY(float_scale(in.scale, out));
    SliceTable table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto bits = static_cast<std::uint8_t>(i);
        const std::int32_t value = input.type == ElementType::int8
                                       ? std::int32_t{static_cast<std::int8_t>(bits)}
                                       : std::int32_t{bits};
        table[i] = static_cast<std::uint8_t>(requantise(value - in.zero_point, scale));
    }
    return table;
}

}  // namespace

PreparedKernel concatenation(const OperatorView& op, const PrepareOptions& /*options*/) {
    return concatenate_through_tables(op, slice_table);
}

}  // namespace reef::edgetpu::numerics
