// Whether an output has as many dimensions, and as long ones, as its operator gives it.
#include <algorithm>
#include <tuple>
#include <vector>

#include "compiler/graph_reader.h"

namespace reef::compiler {
namespace {

using Shape = std::vector<std::int32_t>;

/// Of two shapes, lined up at their ends, the longer of each two dimensions.
Shape joined(const Shape& a, const Shape& b) {
    const auto& [longer, shorter] = a.size() < b.size() ? std::tie(b, a) : std::tie(a, b);
    Shape both = longer;
    const std::size_t first = longer.size() - shorter.size();
    for (std::size_t i = 0; i < shorter.size(); ++i)
        both[first + i] = std::max(both[first + i], shorter[i]);
    return both;
}

}  // namespace

/// Values have height, width and channels alone; shapes may still differ in dimensions of length 1.
bool GraphReader::has_own_shape(const Operator& op) const {
    const Shape& out = tensor(op.outputs[0]).shape;
    const auto in = [&](std::size_t i) -> const Shape& { return tensor(op.inputs[i]).shape; };
    switch (op.code.builtin) {
        case Op::leaky_relu:
        case Op::hard_swish:
        case Op::prelu:
        case Op::quantize:
        case Op::relu:
        case Op::relu6:
        case Op::logistic:
        case Op::softmax:
        case Op::tanh:
            return out == in(0);
        case Op::add:
        case Op::sub:
        case Op::mul:
        case Op::maximum:
        case Op::minimum:
            return op.inputs.size() == 2 && out == joined(in(0), in(1));
        case Op::conv_2d:
        case Op::depthwise_conv_2d:
        case Op::max_pool_2d:
        case Op::average_pool_2d:
        case Op::resize_bilinear:
        case Op::resize_nearest_neighbor:
        case Op::space_to_depth:
        case Op::depth_to_space:
            return in(0).size() == 4 && out.size() == 4;
        case Op::transpose_conv:
            return op.inputs.size() > 2 && op.inputs[2] != model::absent_tensor &&
                   in(2).size() == 4 && out.size() == 4;
        case Op::pad:
        case Op::transpose:
            return out.size() == in(0).size();
        default:
            return true;
    }
}

}  // namespace reef::compiler
