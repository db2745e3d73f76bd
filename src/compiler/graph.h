// The compiler's graph: a plain model's operators as what is to be computed, with shapes, windows
// and quantisation resolved, so that a chip's passes look at no options and at no file.
//
// Activations are images of one batch, height x width x channels; what has fewer dimensions is one
// row, or one pixel. Zero points and weights are in the domain of uint8: int8 values have their
// sign bit flipped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/model/graph.h"

namespace reef::compiler {

/// std::ranges::contains, which g++ 12 lacks.
template <typename Range, typename T>
[[nodiscard]] bool holds(const Range& range, const T& value) {
    return std::ranges::find(range, value) != std::ranges::end(range);
}

using model::Activation;
/// A value is the tensor of that index in the model's first subgraph.
using ValueId = std::size_t;

struct Value {
    std::string name;
    std::int32_t height = 1, width = 1, channels = 1;
    ElementType type = ElementType::uint8;
    float scale = 0;
    std::int32_t zero = 0;  ///< uint8 domain
    /// Why it is no activation that a chip could hold; empty when it is one.
    std::string problem{};

    [[nodiscard]] std::int64_t pixels() const { return std::int64_t{height} * width; }
    [[nodiscard]] bool same_shape(const Value& o) const {
        return height == o.height && width == o.width && channels == o.channels;
    }
    [[nodiscard]] bool same_numbers(const Value& o) const {
        return scale == o.scale && zero == o.zero;
    }
};

/// Which input pixels an output pixel is made of. Pixels outside the image are at the zero point.
struct Window {
    std::int32_t kernel_h = 1, kernel_w = 1;
    std::int32_t stride_h = 1, stride_w = 1;
    std::int32_t dilation_h = 1, dilation_w = 1;
    std::int32_t top = 0, left = 0;  ///< pixels in front of the image

    [[nodiscard]] std::int32_t reach_h() const { return (kernel_h - 1) * dilation_h + 1; }
    [[nodiscard]] std::int32_t reach_w() const { return (kernel_w - 1) * dilation_w + 1; }
    friend bool operator==(const Window&, const Window&) = default;
};

/// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED.
struct Convolution {
    Window window;
    /// Output channel c is made of input channel c * in_channels / out_channels alone.
    bool depthwise = false;
    Activation activation = Activation::none;
    std::int32_t in_channels = 0, out_channels = 0;
    /// uint8; [out][kernel h][kernel w][in], depthwise [kernel h][kernel w][channel].
    SharedBytes weights;
    std::vector<float> weight_scales;  ///< one, or one per output channel
    std::int32_t weight_zero = 0;      ///< one for all channels
    std::vector<std::int32_t> biases;  ///< one per output channel
    /// Empty, or what is added to each output channel, of which biases hold whole steps: a constant
    /// that ADD adds or SUB takes off.
    std::vector<double> offsets{};

    [[nodiscard]] bool per_channel() const { return weight_scales.size() > 1; }
};
/// Every pixel of the input adds its products with the whole kernel to a window of the result:
/// `of.window` goes from the result to the input.
struct TransposedConvolution {
    Convolution of;
};
struct Sum {
    Activation activation = Activation::none;
};
/// The first less the second.
struct Difference {
    Activation activation = Activation::none;
};
struct Product {
    Activation activation = Activation::none;
};
/// Of two tensors of one scale.
struct Maximum {};
struct Minimum {};
/// Below zero: times a slope.
struct LeakyRelu {
    float slope = 0;
};
struct HardSwish {};
/// Below zero: times its channel's slope, which a depthwise convolution of a pixel applies.
struct Prelu {
    Convolution slopes;
};
/// Each element with a constant of its own: all elements as channels of one pixel, each with a
/// weight and a bias.
struct ByElement {
    Convolution flat;
};
/// FULLY_CONNECTED whose rows are no pixels of its input: the input's bytes as an image that has
/// the result's height and width, of which each pixel is a row.
struct RowProduct {
    Convolution of;
};
/// The same values at another scale, or limited: QUANTIZE and the RELU family.
struct Rescale {
    Activation activation = Activation::none;
};
struct Logistic {};
struct Tanh {};
/// Over the channels.
struct Softmax {
    float beta = 1;
};
enum class Axis : std::uint8_t { rows, columns, channels };
struct Concatenation {
    Activation activation = Activation::none;
    Axis axis = Axis::channels;
};
struct MaxPool {
    Window window;
    Activation activation = Activation::none;
};
/// All windows lie inside the image.
struct AveragePool {
    /// How TFLite's kernels come to an average. MEAN over height and width as [1, 2] of kept
    /// dimensions is a case of its own there.
    enum class Rounding : std::uint8_t {
        half_away_from_zero,        ///< of the stored values: AVERAGE_POOL_2D
        scaled,                     ///< that MEAN of uint8: the stored values' sum times one
                                    ///< multiplier, the input's zero point rounded by itself
        half_away_from_zero_point,  ///< that MEAN of int8
        towards_zero,               ///< other MEANs; with other numbers of the result rounded
    };
    Window window;
    bool total = false;  ///< the sum, and no average
    Activation activation = Activation::none;
    Rounding rounding = Rounding::half_away_from_zero;
};
struct Resize {
    bool nearest = false;
    bool half_pixel_centers = false;
    bool align_corners = false;
};
/// Output i has every `step`-th row and column of a part of the input, and some channels.
struct Slice {
    struct Part {
        std::int32_t y = 0, x = 0, channel = 0;
        std::int32_t step_y = 1, step_x = 1;
    };
    std::vector<Part> parts;
};
struct Pad {
    std::int32_t top = 0, bottom = 0, left = 0, right = 0;
    std::int32_t channels = 0;  ///< behind the others
};
/// UNIDIRECTIONAL_SEQUENCE_LSTM of one batch: each pixel of the input is a step. The second and the
/// third value that it reads are states, which it also writes: what it gave last, and the cell.
struct Lstm {
    /// Of each gate: of the input, with the gate's bias, and of what the step before gave.
    std::array<Convolution, 4> input, recurrent;
    std::int32_t units = 0;
    float cell_scale = 0;  ///< of 16 bits
    float cell_clip = 0;   ///< 0: none
};
/// Order of the gates.
enum LstmGate : std::size_t { input_gate, forget_gate, cell_gate, output_gate };
/// Bytes as they are in another shape: RESHAPE, SQUEEZE, EXPAND_DIMS.
struct Reshape {};
/// A block of pixels becomes one with their channels one behind the other; or, with
/// `from_channels`, the other way.
struct Blocks {
    std::int32_t side = 1;
    bool from_channels = false;
};
/// The result's axes are so the input's: rows, columns, channels.
struct Transpose {
    std::array<Axis, 3> from{Axis::rows, Axis::columns, Axis::channels};
};
/// Needs no instructions: its output is its input, or its readers do it.
struct Folded {
    bool copies = false;  ///< its output has the bytes of its input; else its readers do it
};
struct Unknown {
    std::string why;
};

using Operation = std::variant<Unknown, Folded, Convolution, Sum, Difference, Product, Maximum,
                               Minimum, Rescale, LeakyRelu, HardSwish, Prelu, ByElement, RowProduct,
                               Logistic, Tanh, Softmax, Concatenation, MaxPool, AveragePool, Resize,
                               Slice, Pad, Reshape, Transpose, TransposedConvolution, Blocks, Lstm>;

/// The operator of the same index in the model's first subgraph.
struct Node {
    std::string name;             ///< of the operator: "CONV_2D"
    std::vector<ValueId> inputs;  ///< computed ones alone, unless the operation is Unknown
    std::vector<ValueId> outputs;
    Operation operation;
};

struct Graph {
    const model::Model* model = nullptr;
    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<ValueId> inputs, outputs;

    [[nodiscard]] const model::Subgraph& subgraph() const { return model->subgraphs.front(); }
    /// Nodes that read the value.
    [[nodiscard]] std::vector<std::size_t> readers(ValueId value) const;
    /// The node that computes the value; nothing for inputs and constants.
    [[nodiscard]] std::optional<std::size_t> producer(ValueId value) const;
    [[nodiscard]] bool is_output(ValueId value) const;
};

/// The first subgraph. What is not understood is Unknown, with the reason. The model outlives it.
[[nodiscard]] Graph read_graph(const model::Model& model);

/// One line a node: what is computed of which values. For people.
[[nodiscard]] std::string to_text(const Graph& graph);

}  // namespace reef::compiler
