// What the converters of operators share: the tensors of the model by their names in the ONNX
// graph, in both layouts, as bytes and as real numbers.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cpu/prepare/convolution.h"
#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"
#include "peers/onnx_graph.h"

namespace reef::peers {

using graph::OperatorView;
using model::TensorIndex;

/// The order of a tensor's dimensions: the model's, or NCHW of what is NHWC there.
enum class Layout : std::uint8_t { of_model, channels_first };

constexpr std::array<std::size_t, 4> channels_first_order{0, 3, 1, 2};

class OnnxExporter {
  public:
    OnnxExporter(const model::Model& model, const model::Subgraph& graph);
    [[nodiscard]] Result<std::string> run();

  private:
    using Convert = Status (OnnxExporter::*)(const OperatorView& op);
    struct Converter {
        model::Op op;
        Convert convert;
    };
    static const std::vector<Converter> converters;

    // Tensors.
    [[nodiscard]] const model::Tensor& tensor(TensorIndex t) const;
    [[nodiscard]] bool is_constant(TensorIndex t) const;
    /// The tensor's bytes in that layout, with a Transpose where only the other exists.
    std::string bytes(TensorIndex t, Layout layout);
    /// A constant in an operator whose result has that rank.
    std::string constant_bytes(TensorIndex t, Layout layout, std::size_t rank);
    /// The tensor's real numbers: a DequantizeLinear for what is quantised. `factor` of its scale.
    std::string real(TensorIndex t, Layout layout, float factor = 1);
    std::string operand(TensorIndex t, Layout layout, std::size_t rank);
    std::string dequantised(const std::string& bytes, const model::Tensor& tensor,
                            float factor = 1);
    /// The name under which an operator writes the tensor's bytes.
    std::string written(TensorIndex t, Layout layout);
    /// A node that computes real numbers, with what makes bytes of them where `output` is
    /// quantised. `clamp`: of the bytes; nothing more than the type's range needs no node.
    OnnxNode compute(std::string_view type, const Names& inputs, TensorIndex output, Layout layout,
                     std::optional<cpu::ClampRange> clamp = {});
    /// The same for a float32 output.
    OnnxNode compute_clamped(std::string_view type, const Names& inputs, TensorIndex output,
                             Layout layout, cpu::Limits<float> clamp);
    /// The same for sums of products of either type.
    OnnxNode compute_sums(std::string_view type, const Names& inputs, const OperatorView& op,
                          Layout layout, const cpu::Convolution& c);
    /// A node that moves bytes of equally quantised tensors; else one on real numbers. `more`:
    /// inputs behind the first.
    OnnxNode move(std::string_view type, TensorIndex input, const Names& more, TensorIndex output,
                  Layout layout);
    void quantise(const std::string& values, const model::Tensor& tensor, const std::string& name);
    /// channels_first where all computed inputs have rank 4 and one is there already in it.
    [[nodiscard]] Layout layout_of(const OperatorView& op) const;
    [[nodiscard]] Dimensions shape_in(TensorIndex t, Layout layout) const;
    [[nodiscard]] std::int64_t axis_in(std::size_t axis, Layout layout) const;

    // Operators.
    Status convert(std::size_t index);
    Status conv_2d(const OperatorView& op);
    Status depthwise_conv_2d(const OperatorView& op);
    Status convolution(const OperatorView& op, const cpu::Convolution& c, bool depthwise);
    Names weights_and_bias(const OperatorView& op, const cpu::Convolution& c,
                           std::vector<std::byte> weights, const Dimensions& shape);
    Status fully_connected(const OperatorView& op);
    Status average_pool(const OperatorView& op);
    Status max_pool(const OperatorView& op);
    Status mean(const OperatorView& op);
    Status binary(const OperatorView& op);
    Status extreme(const OperatorView& op);
    Status unary(const OperatorView& op);
    Status softmax(const OperatorView& op);
    Status leaky_relu(const OperatorView& op);
    Status resize_bilinear(const OperatorView& op);
    Status resize_nearest(const OperatorView& op);
    Status resize(const OperatorView& op, bool align_corners, bool half_pixel_centers,
                  bool nearest);
    Status concatenation(const OperatorView& op);
    Status pad(const OperatorView& op);
    Status reshape(const OperatorView& op);
    Status transpose(const OperatorView& op);
    Status strided_slice(const OperatorView& op);
    Status split(const OperatorView& op);
    Status pack(const OperatorView& op);
    Status unpack(const OperatorView& op);
    Status arg_max(const OperatorView& op);
    Status gather_nd(const OperatorView& op);
    Status cast(const OperatorView& op);
    Status quantize(const OperatorView& op);
    Status dequantize(const OperatorView& op);

    /// Rows and columns of zeros that a PAD puts around an image for convolutions alone: they
    /// become the convolutions' own. By the PAD's output.
    struct Border {
        TensorIndex inner = 0;
        std::int64_t top = 0, left = 0;
    };
    void find_borders();

    const model::Model& model_;
    const model::Subgraph& subgraph_;
    OnnxGraph out_;
    std::map<std::pair<TensorIndex, Layout>, std::string> names_;
    std::map<TensorIndex, Border> borders_;
};

}  // namespace reef::peers
