// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED.
#include "cpu/prepare/convolution.h"

#include "cpu/prepare/kernels.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/refusals.h"
#include "edgetpu/numerics/requantisation.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

template <std::size_t input_index>
Result<FloatStage> float_stage(const OperatorView& op, model::Activation activation,
                               std::span<const float> weights, const Convolution& c) {
    const AffineParameters input = REEF_TRY(per_tensor_parameters(op.input(input_index)));
    const AffineParameters output = REEF_TRY(per_tensor_parameters(op.output(0)));
    FloatStage stage;
    stage.requantise = REEF_TRY(float_requantisation(activation, op.output(0)));
    stage.scales.reserve(static_cast<std::size_t>(c.out_channels));
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.out_channels); ++i) {
        const float weight = weights.size() == 1 ? weights[0] : weights[i];
        stage.scales.push_back(REEF_TRY(float_scale(input.scale * weight, output)));
    }
    return stage;
}

}  // namespace

const cpu::ConvolutionRules conv_2d_rules{.check = nullptr, .stage = float_stage<0>};
const cpu::ConvolutionRules depthwise_conv_2d_rules{.check = nullptr, .stage = float_stage<0>};
const cpu::ConvolutionRules fully_connected_rules{.check = nullptr, .stage = float_stage<0>};
const cpu::ConvolutionRules transpose_conv_rules{.check = nullptr, .stage = float_stage<2>};

PreparedKernel conv_2d(const OperatorView& op, const PrepareOptions& options) {
    return conv_2d_kernel(REEF_TRY(read_conv_2d(op, &conv_2d_rules)), options);
}

PreparedKernel depthwise_conv_2d(const OperatorView& op, const PrepareOptions& options) {
    return depthwise_conv_2d_kernel(REEF_TRY(read_depthwise_conv_2d(op, &depthwise_conv_2d_rules)),
                                    options);
}

PreparedKernel fully_connected(const OperatorView& op, const PrepareOptions& options) {
    return fully_connected_kernel(REEF_TRY(read_fully_connected(op, &fully_connected_rules)),
                                  options);
}

PreparedKernel transpose_conv(const OperatorView& op, const PrepareOptions& options) {
    if (op.has_input(2) && op.input(2).type == ElementType::float32)
        return prepare_transpose_conv(op, options);
    return transpose_conv_kernel(REEF_TRY(read_transpose_conv(op, &transpose_conv_rules)), options);
}

}  // namespace reef::edgetpu::numerics
