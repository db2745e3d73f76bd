// The operators that the Edge TPU computes in its own way, on the CPU floor's checks and loops.
// forms.cpp lists them; what is no 8-bit operator is left to TFLite's kernels.
#pragma once

#include "cpu/prepare/convolution.h"
#include "cpu/prepare/kernel.h"

namespace reef::edgetpu::numerics {

[[nodiscard]] cpu::PreparedKernel add(const cpu::OperatorView& op,
                                      const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel average_pool_2d(const cpu::OperatorView& op,
                                                  const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel concatenation(const cpu::OperatorView& op,
                                                const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel conv_2d(const cpu::OperatorView& op,
                                          const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel depthwise_conv_2d(const cpu::OperatorView& op,
                                                    const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel fully_connected(const cpu::OperatorView& op,
                                                  const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel hard_swish(const cpu::OperatorView& op,
                                             const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel leaky_relu(const cpu::OperatorView& op,
                                             const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel logistic(const cpu::OperatorView& op,
                                           const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel max_pool_2d(const cpu::OperatorView& op,
                                              const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel maximum(const cpu::OperatorView& op,
                                          const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel mean(const cpu::OperatorView& op,
                                       const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel minimum(const cpu::OperatorView& op,
                                          const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel mul(const cpu::OperatorView& op,
                                      const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel prelu(const cpu::OperatorView& op,
                                        const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel quantize(const cpu::OperatorView& op,
                                           const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel relu(const cpu::OperatorView& op,
                                       const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel relu6(const cpu::OperatorView& op,
                                        const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel resize_bilinear(const cpu::OperatorView& op,
                                                  const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel softmax(const cpu::OperatorView& op,
                                          const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel sub(const cpu::OperatorView& op,
                                      const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel sum(const cpu::OperatorView& op,
                                      const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel tanh(const cpu::OperatorView& op,
                                       const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel transpose_conv(const cpu::OperatorView& op,
                                                 const cpu::PrepareOptions& options);
[[nodiscard]] cpu::PreparedKernel unidirectional_sequence_lstm(const cpu::OperatorView& op,
                                                               const cpu::PrepareOptions& options);

extern const cpu::ConvolutionRules transpose_conv_rules;
extern const cpu::ConvolutionRules conv_2d_rules;
extern const cpu::ConvolutionRules depthwise_conv_2d_rules;
extern const cpu::ConvolutionRules fully_connected_rules;

}  // namespace reef::edgetpu::numerics
