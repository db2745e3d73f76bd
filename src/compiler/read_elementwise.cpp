// Operators that take two tensors value by value. A constant is weights: one factor or bias for
// each channel, which a depthwise convolution of a pixel applies.
#include <algorithm>
#include <cmath>
#include <memory>

#include "compiler/graph_reader.h"

namespace reef::compiler {
namespace {

constexpr std::int32_t middle = 128;

/// One weight for each channel, of the pixel itself.
Convolution of_each_channel(const Value& in, Activation activation,
                            std::vector<std::uint8_t> weights) {
    auto held = std::make_shared<std::vector<std::byte>>();
    held->reserve(weights.size());
    for (const std::uint8_t w : weights) held->push_back(static_cast<std::byte>(w));
    Convolution conv{.window = {},
                     .depthwise = true,
                     .activation = activation,
                     .in_channels = in.channels,
                     .out_channels = in.channels,
                     .weights = SharedBytes(*held, held),
                     .weight_scales = {1.0F},
                     .biases = {}};
    conv.biases.assign(static_cast<std::size_t>(in.channels), 0);
    return conv;
}

std::vector<std::uint8_t> ones(const Value& in) {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(in.channels), middle + 1);
}

struct Numbers {
    float scale = 1;
    std::int32_t zero = 0;  ///< uint8 domain
};

std::optional<Numbers> numbers_of(const Tensor& tensor) {
    const auto& q = tensor.quantization;
    if (!is_byte(tensor.type) || !q || q->scale.size() != 1 || !(q->scale[0] > 0))
        return std::nullopt;
    const auto zero = q->zero_point.empty() ? 0 : static_cast<std::int32_t>(q->zero_point[0]);
    return Numbers{q->scale[0], zero + flip_of(tensor.type)};
}

constexpr const char* odd_constant = "its constant is no value, no pixel and no image of its input";

/// All elements as channels of one pixel.
Value flat(Value value) {
    value.channels *= value.height * value.width;
    value.height = value.width = 1;
    return value;
}

/// Whether a constant has one value, or one for each channel.
bool is_by_channel(const Tensor& constant, const Value& in) {
    return constant.element_count() == in.channels && !constant.shape.empty() &&
           constant.shape.back() == in.channels;
}

/// Whether a constant has a value for each element: as many in each dimension, but for those of one
/// in front.
bool has_every_element(const Tensor& constant, const Tensor& in) {
    const auto counted = [](const Tensor& t) {
        const auto first = std::ranges::find_if(t.shape, [](auto n) { return n != 1; });
        return std::vector(first, t.shape.end());
    };
    return counted(constant) == counted(in);
}

}  // namespace

std::string GraphReader::pair_problem(const Operator& op) const {
    if (op.inputs.size() != 2) return shapes_disagree;
    for (const TensorIndex i : op.inputs)
        if (is_constant(i)) return "one of its inputs is a constant";
    if (!value(op.inputs[0]).same_shape(value(op.inputs[1])) ||
        !value(op.inputs[0]).same_shape(value(op.outputs[0])))
        return "its inputs have different shapes";
    return {};
}

std::vector<std::uint8_t> GraphReader::bytes_of(const Tensor& constant) const {
    std::vector<std::uint8_t> bytes;
    for (const std::byte b : model_.constant(constant))
        bytes.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(b) ^
                                                  static_cast<unsigned>(flip_of(constant.type))));
    return bytes;
}

std::optional<std::size_t> GraphReader::constant_of_pair(const Operator& op) const {
    if (op.inputs.size() != 2 || is_constant(op.inputs[0]) == is_constant(op.inputs[1]))
        return std::nullopt;
    return is_constant(op.inputs[0]) ? 0 : 1;
}

Read GraphReader::sum(const Operator& op) const {
    if (const auto at = constant_of_pair(op))
        return shifted(op, *at, 1, REEF_TRY(options<model::AddOptions>(op)).activation);
    if (auto why = pair_problem(op); !why.empty()) return std::unexpected(std::move(why));
    return Sum{REEF_TRY(options<model::AddOptions>(op)).activation};
}

Read GraphReader::product(const Operator& op) const {
    if (const auto at = constant_of_pair(op)) return product_with(op, *at);
    if (auto why = pair_problem(op); !why.empty()) return std::unexpected(std::move(why));
    return Product{REEF_TRY(options<model::MulOptions>(op)).activation};
}

/// A constant per channel is part of the scales; one for all, or of one pixel, is weights. Both
/// come to the vendor's scale where they can be told apart.
Read GraphReader::product_with(const Operator& op, std::size_t at) const {
    const Tensor &factor = tensor(op.inputs[at]), &image = tensor(op.inputs[1 - at]);
    const Value &in = value(op.inputs[1 - at]), &out = value(op.outputs[0]);
    const auto numbers = numbers_of(factor);
    if (!numbers) return std::unexpected("its constant has not 8 bits and one scale");
    if (!in.same_shape(out)) return disagree();
    const auto activation = REEF_TRY(options<model::MulOptions>(op)).activation;
    const auto bytes = bytes_of(factor);
    if (is_by_channel(factor, in) && in.pixels() != 1) {
        Convolution conv = of_each_channel(in, activation, ones(in));
        conv.weight_zero = middle;
        conv.weight_scales.clear();
        for (const std::uint8_t b : bytes)
            conv.weight_scales.push_back(numbers->scale * static_cast<float>(b - numbers->zero));
        return conv;
    }
    const bool by_element = bytes.size() != 1 && !is_by_channel(factor, in);
    if (by_element && !has_every_element(factor, image)) return std::unexpected(odd_constant);
    const Value pixel = by_element ? flat(in) : in;
    Convolution conv = of_each_channel(
        pixel, activation,
        bytes.size() == 1
            ? std::vector<std::uint8_t>(static_cast<std::size_t>(in.channels), bytes[0])
            : bytes);
    conv.weight_zero = numbers->zero;
    conv.weight_scales = {numbers->scale};
    return by_element ? Read(ByElement{std::move(conv)}) : Read(std::move(conv));
}

Read GraphReader::difference(const Operator& op) const {
    const auto activation = REEF_TRY(options<model::SubOptions>(op)).activation;
    if (constant_of_pair(op) == std::size_t{1}) return shifted(op, 1, -1, activation);
    if (auto why = pair_problem(op); !why.empty()) return std::unexpected(std::move(why));
    return Difference{activation};
}

/// A constant is added, or taken off, as a whole number of the input's steps.
Read GraphReader::shifted(const Operator& op, std::size_t at, std::int32_t sign,
                          Activation activation) const {
    const Tensor &constant = tensor(op.inputs[at]), &image = tensor(op.inputs[1 - at]);
    const Value &in = value(op.inputs[1 - at]), &out = value(op.outputs[0]);
    const auto numbers = numbers_of(constant);
    if (!numbers) return std::unexpected("its constant has not 8 bits and one scale");
    if (!in.same_shape(out)) return disagree();
    const auto bytes = bytes_of(constant);
    const bool by_element = bytes.size() != 1 && !is_by_channel(constant, in);
    if (by_element && !has_every_element(constant, image)) return std::unexpected(odd_constant);
    if (in.scale != out.scale) return std::unexpected("it changes the scale");
    const double steps = static_cast<double>(numbers->scale) / static_cast<double>(in.scale);
    if (!(steps < 0x1p20)) return std::unexpected("its constant's scale is too large");
    const Value pixel = by_element ? flat(in) : in;
    Convolution conv = of_each_channel(pixel, activation, ones(pixel));
    conv.weight_zero = middle;
    for (std::size_t c = 0; c < conv.biases.size(); ++c) {
        const std::int32_t value = bytes[bytes.size() == 1 ? 0 : c] - numbers->zero;
        conv.biases[c] = sign * static_cast<std::int32_t>(std::nearbyint(value * steps));
        conv.offsets.push_back(sign * static_cast<double>(numbers->scale) * value);
    }
    return by_element ? Read(ByElement{std::move(conv)}) : Read(std::move(conv));
}

Read GraphReader::maximum(const Operator& op) const {
    if (auto why = pair_problem(op); !why.empty()) return std::unexpected(std::move(why));
    return Maximum{};
}

Read GraphReader::minimum(const Operator& op) const {
    if (auto why = pair_problem(op); !why.empty()) return std::unexpected(std::move(why));
    return Minimum{};
}

Read GraphReader::prelu(const Operator& op) const {
    if (op.inputs.size() != 2 || !is_constant(op.inputs[1]))
        return std::unexpected("its slopes are computed");
    const Value& in = value(op.inputs[0]);
    const Tensor& slopes = tensor(op.inputs[1]);
    const auto numbers = numbers_of(slopes);
    if (!numbers) return std::unexpected("its slopes have not 8 bits and one scale");
    if (!in.same_shape(value(op.outputs[0]))) return disagree();
    auto bytes = bytes_of(slopes);
    if (bytes.size() != 1 && !is_by_channel(slopes, in))
        return std::unexpected("it has more slopes than one for each channel");
    if (bytes.size() == 1) bytes.assign(static_cast<std::size_t>(in.channels), bytes[0]);
    Prelu prelu{of_each_channel(in, Activation::none, std::move(bytes))};
    prelu.slopes.weight_zero = numbers->zero;
    prelu.slopes.weight_scales = {numbers->scale};
    return prelu;
}

}  // namespace reef::compiler
