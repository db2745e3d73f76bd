// The prepare function of every kernel; registry.cpp lists them by operator.
#pragma once

#include "cpu/prepare/kernel.h"

namespace reef::cpu {

PreparedKernel prepare_abs(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_add(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_arg_max(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_arg_min(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_average_pool_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_batch_matmul(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_batch_to_space_nd(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_cast(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_ceil(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_concatenation(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_conv_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_cos(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_depth_to_space(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_depthwise_conv_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_dequantize(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_detection_postprocess(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_div(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_elu(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_equal(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_exp(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_expand_dims(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_floor(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_floor_div(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_floor_mod(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_fully_connected(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_gather(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_gather_nd(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_gelu(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_greater(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_greater_equal(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_hard_swish(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_l2_normalization(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_leaky_relu(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_less(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_less_equal(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_log(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_log_softmax(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_logical_and(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_logical_not(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_logical_or(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_logistic(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_max_pool_2d(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_maximum(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_mean(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_minimum(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_mirror_pad(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_mul(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_neg(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_not_equal(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_pack(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_pad(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_padv2(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_posenet_decoder(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_pow(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_prelu(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_quantize(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_reduce_max(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_reduce_min(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_relu(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_relu6(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_relu_n1_to_1(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_reshape(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_resize_bilinear(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_resize_nearest_neighbor(const OperatorView& op,
                                               const PrepareOptions& options);
PreparedKernel prepare_round(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_rsqrt(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_select(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_select_v2(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_shape(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_sin(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_slice(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_softmax(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_space_to_batch_nd(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_space_to_depth(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_split(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_split_v(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_sqrt(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_square(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_squared_difference(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_squeeze(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_strided_slice(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_sub(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_sum(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_svdf(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_tanh(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_tile(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_topk_v2(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_transpose(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_transpose_conv(const OperatorView& op, const PrepareOptions& options);
PreparedKernel prepare_unidirectional_sequence_lstm(const OperatorView& op,
                                                    const PrepareOptions& options);
PreparedKernel prepare_unpack(const OperatorView& op, const PrepareOptions& options);

}  // namespace reef::cpu
