// Which kernel computes a convolution.
#include "cpu/prepare/convolution.h"
#include "cpu/prepare/kernels.h"

namespace reef::cpu {

std::unique_ptr<Kernel> conv_2d_kernel(Convolution c, const PrepareOptions& options) {
    if (options.kernels == KernelSet::reference) return reference_conv_2d(std::move(c));
    return fast_conv_2d(std::move(c), options.threads);
}

std::unique_ptr<Kernel> depthwise_conv_2d_kernel(Convolution c, const PrepareOptions& options) {
    if (options.kernels == KernelSet::reference) return reference_depthwise_conv_2d(std::move(c));
    return fast_depthwise_conv_2d(std::move(c), options.threads);
}

std::unique_ptr<Kernel> fully_connected_kernel(Convolution c, const PrepareOptions& options) {
    if (options.kernels == KernelSet::reference) return reference_fully_connected(std::move(c));
    return fast_fully_connected(std::move(c), options.threads);
}

std::unique_ptr<Kernel> transpose_conv_kernel(Convolution c, const PrepareOptions& options) {
    if (options.kernels == KernelSet::reference) return reference_transpose_conv(std::move(c));
    return fast_transpose_conv(std::move(c), options.threads);
}

std::unique_ptr<Kernel> hybrid_kernel(std::string op, HybridConvolution hybrid,
                                      const PrepareOptions& options) {
    if (options.kernels == KernelSet::reference)
        return reference_hybrid(std::move(op), std::move(hybrid));
    return (hybrid.depthwise ? fast_depthwise_hybrid : fast_hybrid)(
        std::move(op), std::move(hybrid), options.threads);
}

PreparedKernel prepare_conv_2d(const OperatorView& op, const PrepareOptions& options) {
    if (is_hybrid(op)) return hybrid_kernel("conv_2d", REEF_TRY(read_hybrid_conv_2d(op)), options);
    return conv_2d_kernel(REEF_TRY(read_conv_2d(op)), options);
}

PreparedKernel prepare_depthwise_conv_2d(const OperatorView& op, const PrepareOptions& options) {
    if (is_hybrid(op))
        return hybrid_kernel("depthwise_conv_2d", REEF_TRY(read_hybrid_depthwise_conv_2d(op)),
                             options);
    return depthwise_conv_2d_kernel(REEF_TRY(read_depthwise_conv_2d(op)), options);
}

PreparedKernel prepare_fully_connected(const OperatorView& op, const PrepareOptions& options) {
    if (is_hybrid(op))
        return hybrid_kernel("fully_connected", REEF_TRY(read_hybrid_fully_connected(op)), options);
    return fully_connected_kernel(REEF_TRY(read_fully_connected(op)), options);
}

PreparedKernel prepare_transpose_conv(const OperatorView& op, const PrepareOptions& options) {
    return transpose_conv_kernel(REEF_TRY(read_transpose_conv(op)), options);
}

}  // namespace reef::cpu
