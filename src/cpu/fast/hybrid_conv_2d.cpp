// CONV_2D, FULLY_CONNECTED and BATCH_MATMUL of float32 activations and int8 weights: the input as
// bytes, matrix products of those, and sums that become float32 where they are stored.
#include <string>
#include <utility>
#include <vector>

#include "base/simd.h"
#include "cpu/fast/hybrid_input.h"
#include "cpu/fast/tiled_product.h"
#include "cpu/prepare/convolution.h"
#include "graph/memory_plan.h"
#include "graph/packed_inputs.h"

namespace reef::cpu {
namespace {

std::size_t image_size(const Convolution& c) {
    return static_cast<std::size_t>(c.h.in * c.w.in * c.in_channels);
}

/// From depth x channels to channels x depth.
SharedBytes by_channel(const Convolution& c) {
    const Bytes weights = c.weights.view();
    const auto channels = static_cast<std::size_t>(c.out_channels);
    const std::size_t depth = weights.size() / channels;
    std::vector<std::byte> turned(weights.size());
    for (std::size_t k = 0; k < depth; ++k)
        for (std::size_t channel = 0; channel < channels; ++channel)
            turned[channel * depth + k] = weights[k * channels + channel];
    return SharedBytes::copy_of(turned);
}

class FastHybrid final : public Kernel, public graph::PacksInputs {
  public:
    FastHybrid(std::string op, const MatrixFunctions& functions, HybridConvolution hybrid,
               int threads)
        : op_(std::move(op)),
          depth_first_(hybrid.depth_first),
          product_(product_of(functions, hybrid, threads)),
          input_(images(), image_size(product_.convolution()), hybrid.asymmetric),
          input_bytes_(graph::align_up(input_.scratch_bytes())),
          bytes_bytes_(graph::align_up(images() * image_size(product_.convolution()))) {}

    [[nodiscard]] std::string name() const override {
        return op_ + " hybrid fast " + std::string(product_.target());
    }
    [[nodiscard]] bool reads_input(std::size_t i) const override { return i == 0; }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return input_bytes_ + bytes_bytes_ + product_.scratch_bytes();
    }
    [[nodiscard]] std::size_t packed_bytes() const override { return product_.packed_bytes(); }
    void pack() override {
        if (depth_first_)
            product_.pack(by_channel(product_.convolution()));
        else
            product_.pack();
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        std::byte* bytes = frame.scratch.data() + input_bytes_;
        auto* to = reinterpret_cast<std::uint8_t*>(bytes);
        const std::uint8_t flip = product_.takes_uint8() ? 0x80 : 0;
        const StepRule* rules = REEF_TRY(input_.quantise(
            frame.in<float>(0), frame.scratch.data(), frame.pool,
            [&](std::span<const float> values, const StepRule& rule, std::size_t position) {
                quantise_to_bytes(values, rule, flip, to + position);
            }));
        product_.run({bytes, rules}, frame.outputs[0], bytes + bytes_bytes_, frame.pool);
        return {};
    }

  private:
    /// Takes the convolution out of it.
    static TiledProduct product_of(const MatrixFunctions& functions, HybridConvolution& hybrid,
                                   int threads) {
        MatrixForm form = hybrid.depth_first
                              ? MatrixForm(functions, hybrid.convolution)
                              : MatrixForm::for_weights(functions, hybrid.convolution);
        return {std::move(form), std::move(hybrid.convolution), threads, hybrid.weight_scales};
    }
    [[nodiscard]] std::size_t images() const {
        return static_cast<std::size_t>(product_.convolution().batch);
    }

    std::string op_;
    bool depth_first_;
    TiledProduct product_;
    HybridInput input_;
    std::size_t input_bytes_;
    std::size_t bytes_bytes_;  ///< of the quantised input
};

}  // namespace

std::unique_ptr<Kernel> fast_hybrid(std::string op, HybridConvolution hybrid, int threads) {
    apply_simd_choice();
    const MatrixFunctions* functions = matrix_functions();
    if (functions == nullptr) {
        if (hybrid.depth_first) hybrid.convolution.weights = by_channel(hybrid.convolution);
        return reference_hybrid(std::move(op), std::move(hybrid));
    }
    return std::make_unique<FastHybrid>(std::move(op), *functions, std::move(hybrid), threads);
}

}  // namespace reef::cpu
