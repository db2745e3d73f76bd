#include "outputs/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace reef::tool {
namespace {

template <typename T>
std::vector<double> converted(Bytes bytes) {
    std::vector<double> values(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
        T value;
        std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
        values[i] = static_cast<double>(value);
    }
    return values;
}

std::optional<std::vector<double>> numbers(ElementType type, Bytes bytes) {
    switch (type) {
        case ElementType::float32:
            return converted<float>(bytes);
        case ElementType::float64:
            return converted<double>(bytes);
        case ElementType::int8:
            return converted<std::int8_t>(bytes);
        case ElementType::uint8:
            return converted<std::uint8_t>(bytes);
        case ElementType::boolean:
            return converted<std::uint8_t>(bytes);
        case ElementType::int16:
            return converted<std::int16_t>(bytes);
        case ElementType::uint16:
            return converted<std::uint16_t>(bytes);
        case ElementType::int32:
            return converted<std::int32_t>(bytes);
        case ElementType::uint32:
            return converted<std::uint32_t>(bytes);
        case ElementType::int64:
            return converted<std::int64_t>(bytes);
        case ElementType::uint64:
            return converted<std::uint64_t>(bytes);
        default:
            return {};
    }
}

}  // namespace

std::string shape_and_type(const model::Tensor& tensor) {
    return model::shape_text(tensor.shape) + " " + short_name(tensor.type);
}

std::string quantization_text(const model::Tensor& tensor) {
    if (!tensor.quantization || !tensor.quantization->quantized()) return {};
    const model::Quantization& q = *tensor.quantization;
    if (!q.per_channel()) {
        return fmt::format("scale {:.7g}, zero point {}", q.scale[0], q.zero_point[0]);
    }
    const auto [low, high] = std::ranges::minmax(q.scale);
    return fmt::format("{} scales from {:.4g} to {:.4g} along axis {}", q.scale.size(), low, high,
                       q.axis);
}

std::optional<std::vector<double>> real_values(const model::Tensor& tensor, Bytes bytes) {
    auto values = numbers(tensor.type, bytes);
    if (!values || !tensor.quantization || !tensor.quantization->quantized()) return values;
    const model::Quantization& q = *tensor.quantization;
    if (q.per_channel()) return {};
    for (double& value : *values) {
        value = static_cast<double>(q.scale[0]) * (value - static_cast<double>(q.zero_point[0]));
    }
    return values;
}

Json tensor_json(const model::Subgraph& graph, model::TensorIndex index) {
    const model::Tensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
    Json json{{"tensor", index},
              {"name", tensor.name},
              {"shape", tensor.shape},
              {"type", name_of(tensor.type)}};
    if (tensor.quantization && tensor.quantization->quantized()) {
        const model::Quantization& q = *tensor.quantization;
        json["quantization"] = {{"scale", q.scale}, {"zero_point", q.zero_point}};
        if (q.per_channel()) json["quantization"]["axis"] = q.axis;
    }
    return json;
}

std::string_view file_name(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace reef::tool
