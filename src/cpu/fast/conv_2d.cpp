// CONV_2D and FULLY_CONNECTED.
#include <string>
#include <utility>

#include "base/simd.h"
#include "cpu/fast/joined_pixels.h"
#include "cpu/fast/tiled_product.h"
#include "cpu/prepare/convolution.h"
#include "graph/packed_inputs.h"

namespace reef::cpu {
namespace {

class FastConv2d final : public Kernel, public graph::PacksInputs {
  public:
    FastConv2d(const char* op, const MatrixFunctions& functions, Convolution c, int threads)
        : op_(op),
          pixels_(pixels_to_join(c, functions.group, functions.widest_block)),
          own_(own_of(c, pixels_)),
          product_(product_of(functions, std::move(c), pixels_, threads)) {}

    [[nodiscard]] std::string name() const override {
        return op_ + " fast " + std::string(product_.target());
    }
    [[nodiscard]] bool reads_input(std::size_t i) const override { return i == 0; }
    [[nodiscard]] std::size_t scratch_bytes() const override { return product_.scratch_bytes(); }
    [[nodiscard]] std::size_t packed_bytes() const override { return product_.packed_bytes(); }
    void pack() override {
        if (pixels_ == 1) return product_.pack();
        // With the joined matrix's row and channels, rows of taps say where each weight stands.
        product_.pack(joined_weights(own_, pixels_),
                      {own_.weights, {pixels_, own_.h.taps, own_.weight_zero}});
        own_ = {};
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        product_.run({frame.inputs[0]}, frame.outputs[0], frame.scratch.data(), frame.pool);
        return {};
    }

  private:
    static TiledProduct product_of(const MatrixFunctions& functions, Convolution c,
                                   std::int64_t pixels, int threads) {
        c = joined(std::move(c), pixels);
        // Joined weights are made when they are packed.
        MatrixForm form =
            pixels == 1 ? MatrixForm::for_weights(functions, c) : MatrixForm(functions, c);
        return {std::move(form), std::move(c), threads};
    }
    /// What joined_weights() reads, where pixels are joined.
    static Convolution own_of(const Convolution& c, std::int64_t pixels) {
        return pixels == 1 ? Convolution{} : c;
    }

    std::string op_;
    std::int64_t pixels_;  ///< that are joined
    Convolution own_;
    TiledProduct product_;
};

const MatrixFunctions* functions_for(const Convolution& c) {
    apply_simd_choice();
    return c.floats ? float_matrix_functions() : matrix_functions();
}

}  // namespace

std::unique_ptr<Kernel> fast_conv_2d(Convolution convolution, int threads) {
    const MatrixFunctions* functions = functions_for(convolution);
    // No network of the kind that Reef meets groups its channels this way.
    if (functions == nullptr || convolution.groups() != 1)
        return reference_conv_2d(std::move(convolution));
    return std::make_unique<FastConv2d>("conv_2d", *functions, std::move(convolution), threads);
}

std::unique_ptr<Kernel> fast_fully_connected(Convolution convolution, int threads) {
    const MatrixFunctions* functions = functions_for(convolution);
    if (functions == nullptr) return reference_fully_connected(std::move(convolution));
    return std::make_unique<FastConv2d>("fully_connected", *functions, std::move(convolution),
                                        threads);
}

}  // namespace reef::cpu
