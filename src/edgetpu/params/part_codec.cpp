// A plain model's tensors to the bytes of one part.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "edgetpu/params/fixed_bytes.h"
#include "edgetpu/params/stored_form.h"
#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {
namespace {

/// int8 numbers are stored with the sign bit flipped: zero.
constexpr std::byte sign_of_int8{0x80};

using model::Model;
using model::Quantization;
using model::Tensor;
using model::TensorIndex;

const Tensor& tensor_of(const Model& plain, TensorIndex index) {
    return plain.subgraphs.front().tensors[static_cast<std::size_t>(index)];
}

WeightType weight_type(const Tensor& tensor) {
    return tensor.type == ElementType::uint8 ? WeightType::uint8 : WeightType::int8;
}

std::int32_t zero_point(const Tensor& tensor) {
    const auto& points = tensor.quantization->zero_point;
    return points.empty() ? 0 : static_cast<std::int32_t>(points.front());
}

float first_scale(const Model& plain, TensorIndex index) {
    if (index == model::absent_tensor) return 0.0F;
    const auto& quantization = tensor_of(plain, index).quantization;
    return quantization && quantization->quantized() ? quantization->scale.front() : 0.0F;
}

bool all_equal(const std::vector<float>& values) {
    return std::ranges::adjacent_find(values, std::not_equal_to{}) == values.end();
}

std::vector<std::int32_t> bias_of(const Model& plain, TensorIndex index) {
    if (index == model::absent_tensor) return {};
    const Tensor& tensor = tensor_of(plain, index);
    const Bytes bytes = plain.constant(tensor);
    if (tensor.type != ElementType::int32) return {};
    std::vector<std::int32_t> values(bytes.size() / 4);
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * 4);
    return values;
}

/// Of all layers that the part is, one behind the other.
struct PlainNumbers {
    std::vector<std::byte> weights;
    std::vector<std::int32_t> biases;
    std::vector<float> multipliers;
};

PlainNumbers numbers_of(const Model& plain, const ParameterPart& part) {
    const float in = first_scale(plain, part.input), out = first_scale(plain, part.output);
    const auto layers = part.layers();
    const std::size_t channels = part.out_channels() / layers.size();
    PlainNumbers all;
    for (const LayerTensors& layer : layers) {
        const Tensor& weights = tensor_of(plain, layer.weights);
        const Bytes bytes = plain.constant(weights);
        all.weights.insert(all.weights.end(), bytes.begin(), bytes.end());
        if (part.layout.vectors.biases) {
            auto biases = bias_of(plain, layer.bias);
            biases.resize(channels);
            all.biases.insert(all.biases.end(), biases.begin(), biases.end());
        }
        const auto& scales = weights.quantization->scale;
        for (std::size_t i = 0; part.layout.vectors.multipliers && i < channels; ++i)
            all.multipliers.push_back(
                layer_multiplier(in, scales[scales.size() == 1 ? 0 : i], out));
    }
    return all;
}

/// Of a MUL with a constant per channel.
std::vector<float> channel_multipliers(const Model& plain, const ParameterPart& part) {
    const Tensor& constant = tensor_of(plain, part.weights);
    const float in = first_scale(plain, part.input), out = first_scale(plain, part.output);
    const float scale = first_scale(plain, part.weights);
    const bool is_signed = constant.type == ElementType::int8;
    std::vector<float> values;
    values.reserve(part.count);
    for (const std::byte byte : plain.constant(constant)) {
        const std::int32_t q =
            is_signed ? std::bit_cast<std::int8_t>(byte) : std::to_integer<std::int32_t>(byte);
        const float real = scale * static_cast<float>(q - zero_point(constant));
        values.push_back(layer_multiplier(in, real, out));
    }
    return values;
}

/// What the template's program can take: absent vectors may stand for values that are all alike.
Status check_vectors(const LayerVectors& needed, const LayerVectors& present) {
    const auto lacking = [](std::string_view what) {
        return fail(
            Cause::unsupported,
            fmt::format("the model needs {}, for which the compiled program has no place", what),
            {}, "compile the model itself (`target` edgetpu)");
    };
    if (needed.biases && !present.biases) return lacking("a bias");
    if (needed.multipliers && !present.multipliers) return lacking("a scale for each channel");
    if (needed.zero_points != present.zero_points) return lacking("weights of its kind");
    return {};
}

Status encode_layer_part(const Model& plain, const ParameterPart& part, MutableBytes blob) {
    REEF_CHECK(check_vectors(layer_vectors(plain, part), part.layout.vectors));
    const Tensor& weights = tensor_of(plain, part.weights);
    const PlainNumbers numbers = numbers_of(plain, part);
    return encode_stored(part,
                         LayerValues{weight_type(weights), numbers.weights, zero_point(weights),
                                     numbers.biases, numbers.multipliers},
                         blob);
}

/// What is added to each element by a SUB or an ADD: whole steps of the input.
Result<std::vector<std::int32_t>> steps_added(const Model& plain, const ParameterPart& part) {
    const Tensor& constant = tensor_of(plain, part.weights);
    const auto& op = plain.subgraphs.front().operators[part.op];
    const bool taken_off = op.code.builtin == model::Op::sub;
    const bool is_signed = constant.type == ElementType::int8;
    const double steps = static_cast<double>(first_scale(plain, part.weights)) /
                         static_cast<double>(first_scale(plain, part.input));
    std::vector<std::int32_t> values;
    values.reserve(part.count);
    for (const std::byte byte : plain.constant(constant)) {
        const std::int32_t q =
            is_signed ? std::bit_cast<std::int8_t>(byte) : std::to_integer<std::int32_t>(byte);
        const double added = std::nearbyint((q - zero_point(constant)) * steps);
        if (!(std::abs(added) < 0x1p31))
            return fail(Cause::unsupported, "its constant is no number of the input's steps");
        values.push_back(static_cast<std::int32_t>(taken_off ? -added : added));
    }
    return values;
}

/// The constant's one value for every channel, where it has no others.
template <typename T>
void spread(std::vector<T>& values, std::size_t channels) {
    if (values.size() == 1) values.resize(channels, T(values.front()));
}

/// A constant as Reef's compiler stores it: a layer of one pixel. Its numbers are the weights, or
/// these are 1 and the numbers biases or multipliers.
Status encode_as_layer(const Model& plain, const ParameterPart& part, MutableBytes blob) {
    const Tensor& constant = tensor_of(plain, part.weights);
    const bool as_weights = part.kind == PartKind::factor;
    std::vector<std::byte> weights(part.count, std::byte{1});
    std::vector<std::int32_t> biases(part.count);
    std::vector<float> multipliers;
    if (as_weights) {
        const Bytes bytes = plain.constant(constant);
        weights.assign(bytes.begin(), bytes.end());
        spread(weights, part.count);
    }
    if (part.kind == PartKind::subtrahend) {
        biases = REEF_TRY(steps_added(plain, part));
        spread(biases, part.count);
    }
    if (part.layout.vectors.multipliers) multipliers = channel_multipliers(plain, part);
    return encode_layer(part.layout,
                        LayerValues{.type = as_weights ? weight_type(constant) : WeightType::int8,
                                    .weights = weights,
                                    .weight_zero_point = as_weights ? zero_point(constant) : 0,
                                    .biases = biases,
                                    .multipliers = multipliers},
                        blob);
}

/// Of a sum over a window.
Status encode_ones(const ParameterPart& part, MutableBytes blob) {
    const std::vector<std::byte> weights(part.layout.shape.weight_count(), std::byte{1});
    const std::vector<std::int32_t> biases(part.out_channels());
    return encode_layer(
        part.layout, LayerValues{.type = WeightType::uint8, .weights = weights, .biases = biases},
        blob);
}

}  // namespace

LayerVectors layer_vectors(const Model& plain, const ParameterPart& part) {
    const Quantization& quantization = *tensor_of(plain, part.weights).quantization;
    LayerVectors vectors;
    for (const LayerTensors& layer : part.layers())
        vectors.biases =
            vectors.biases || std::ranges::any_of(bias_of(plain, layer.bias),
                                                  [](std::int32_t value) { return value != 0; });
    const bool stacked = !part.stacked.empty();
    vectors.zero_points = stacked || quantization.per_channel();
    vectors.multipliers = stacked || (part.has_multiplier && quantization.per_channel() &&
                                      !all_equal(quantization.scale));
    return vectors;
}

Status encode_part(const Model& plain, const ParameterPart& part, MutableBytes blob) {
    const auto encode = [&]() -> Status {
        const bool of_constant = part.kind == PartKind::subtrahend ||
                                 part.kind == PartKind::multipliers ||
                                 part.kind == PartKind::factor;
        if (of_constant && part.layout.size_bytes != 0) return encode_as_layer(plain, part, blob);
        switch (part.kind) {
            case PartKind::layer:
                return encode_layer_part(plain, part, blob);
            case PartKind::softmax_table:
                return encode_softmax_table(part.count, first_scale(plain, part.input),
                                            part.unit_line, blob);
            case PartKind::selection:
                return encode_selection(part.layout, part.sources, blob);
            case PartKind::ones:
                return encode_ones(part, blob);
            case PartKind::multipliers:
                return encode_channel_multipliers(channel_multipliers(plain, part), blob);
            case PartKind::fill:
                std::ranges::fill(blob, sign_of_int8);
                return {};
            case PartKind::subtrahend: {
                const Tensor& value = tensor_of(plain, part.weights);
                return encode_subtrahend(weight_type(value), plain.constant(value), blob);
            }
            case PartKind::factor:
                break;
        }
        const Tensor& value = tensor_of(plain, part.weights);
        const std::byte flip{
            static_cast<std::uint8_t>(weight_type(value) == WeightType::int8 ? 0x80 : 0)};
        const Bytes bytes = plain.constant(value);
        if (bytes.size() != blob.size()) return fail(Cause::bad_argument, "wrong size of a factor");
        std::ranges::transform(bytes, blob.begin(), [flip](std::byte b) { return b ^ flip; });
        return {};
    };
    return in_place(encode(), part.name);
}

Result<std::vector<FixedByte>> fixed_bytes(const Model& plain, const ParameterPart& part,
                                           std::size_t most) {
    const LayerVectors& vectors = part.layout.vectors;
    const Tensor& tensor = tensor_of(plain, part.weights);
    // No byte of a number is the same in both.
    const auto encode_all = [&](std::byte every) -> Result<std::vector<std::byte>> {
        const std::vector<std::byte> weights(part.weight_count(), every);
        const auto word = std::to_integer<std::uint32_t>(every) * 0x01010101U;
        const std::uint32_t channels = part.out_channels();
        const std::vector<std::int32_t> biases(vectors.biases ? channels : 0,
                                               std::bit_cast<std::int32_t>(word));
        const std::vector<float> multipliers(vectors.multipliers ? channels : 0,
                                             std::bit_cast<float>(word));
        std::vector<std::byte> blob(part.size_bytes);
        REEF_CHECK(encode_stored(
            part,
            LayerValues{weight_type(tensor), weights, zero_point(tensor), biases, multipliers},
            blob));
        return blob;
    };
    const auto one = REEF_TRY(encode_all(std::byte{0x00}));
    const auto other = REEF_TRY(encode_all(std::byte{0x3f}));
    std::vector<FixedByte> all;
    for (std::size_t at = 0; at < one.size(); ++at)
        if (one[at] == other[at]) all.push_back({at, one[at]});
    if (all.size() <= most) return all;
    std::vector<FixedByte> some;
    for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
    return some;
}

namespace {

/// Of a constant as Reef's compiler stores it: everything but its numbers is as it must be.
bool has_structure_of_constant(const Model& plain, const ParameterPart& part, Bytes blob,
                               std::optional<std::int32_t> weight_zero) {
    const Tensor& constant = tensor_of(plain, part.weights);
    const LayerVectors& vectors = part.layout.vectors;
    const bool as_weights = part.kind == PartKind::factor;
    const WeightType type = as_weights ? weight_type(constant) : WeightType::int8;
    std::vector<std::byte> weights(part.count);
    std::vector<std::int32_t> biases(part.count);
    std::vector<float> multipliers(vectors.multipliers ? part.count : 0);
    std::vector<std::int32_t> zero_points(vectors.zero_points ? part.count : 0);
    if (!decode_layer(part.layout, blob, {type, weights, biases, multipliers, zero_points}))
        return false;
    const std::byte all = as_weights ? weights.front() : std::byte{1};
    const bool has_others = std::ranges::any_of(weights, [&](std::byte w) { return w != all; });
    const bool adds = std::ranges::any_of(biases, [](std::int32_t b) { return b != 0; });
    if (has_others || (adds && part.kind != PartKind::subtrahend)) return false;
    std::int32_t zero = 0;
    if (as_weights)
        zero = weight_zero ? *weight_zero - (type == WeightType::int8 ? 128 : 0)
                           : zero_point(constant);
    std::vector<std::byte> again(part.size_bytes);
    return encode_layer(part.layout, {type, weights, zero, biases, multipliers}, again) &&
           equal_bytes(again, blob);
}

}  // namespace

bool has_structure_of(const Model& plain, const ParameterPart& part, Bytes blob,
                      std::optional<std::int32_t> weight_zero) {
    if (blob.size() != part.size_bytes) return false;
    const bool of_constant = part.kind == PartKind::factor || part.kind == PartKind::subtrahend ||
                             part.kind == PartKind::multipliers;
    if (of_constant && part.layout.size_bytes != 0)
        return has_structure_of_constant(plain, part, blob, weight_zero);
    if (part.kind == PartKind::factor || part.kind == PartKind::subtrahend) return true;
    std::vector<std::byte> again(part.size_bytes);
    if (part.kind == PartKind::softmax_table && weight_zero) {
        const float scale = softmax_table_scale(part.count, blob);
        return encode_softmax_table(part.count, scale, part.unit_line, again) &&
               equal_bytes(again, blob);
    }
    if (part.kind != PartKind::layer) {
        return encode_part(plain, part, again) && equal_bytes(again, blob);
    }
    const LayerVectors& vectors = part.layout.vectors;
    const Tensor& tensor = tensor_of(plain, part.weights);
    const std::uint32_t channels = part.out_channels();
    std::vector<std::byte> weights(part.weight_count());
    std::vector<std::int32_t> biases(vectors.biases ? channels : 0);
    std::vector<float> multipliers(vectors.multipliers ? channels : 0);
    std::vector<std::int32_t> zero_points(vectors.zero_points ? channels : 0);
    const WeightType type = weight_type(tensor);
    const std::int32_t zero =
        weight_zero ? *weight_zero - (type == WeightType::int8 ? 128 : 0) : zero_point(tensor);
    return decode_stored(part, blob, {type, weights, biases, multipliers, zero_points}) &&
           encode_stored(part, LayerValues{type, weights, zero, biases, multipliers}, again) &&
           equal_bytes(again, blob);
}

}  // namespace reef::edgetpu
