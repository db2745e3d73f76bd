// The prepare function of every kernel; registry.cpp lists them by operator.
#pragma once

#include "cpu/kernel.h"

namespace reef::cpu {

PreparedKernel prepare_add(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_arg_max(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_average_pool_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_cast(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_concatenation(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_conv_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_depthwise_conv_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_dequantize(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_detection_postprocess(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_div(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_floor_div(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_fully_connected(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_gather_nd(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_logistic(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_max_pool_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_mean(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_mul(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_pack(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_pad(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_posenet_decoder(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_quantize(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_relu(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_relu6(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_reshape(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_resize_bilinear(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_softmax(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_split(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_sqrt(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_squeeze(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_sub(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_unidirectional_sequence_lstm(const OperatorView& op,
                                                    const PrepareOptions& options);
PreparedKernel prepare_unpack(const OperatorView& op, const PrepareOptions& options);

}  // namespace reef::cpu
