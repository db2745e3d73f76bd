#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/plain/operator_case.h"

namespace reef::plain {

std::uint32_t Choices::next() {
    if (bytes_.empty()) return static_cast<std::uint32_t>(random_());
    const std::uint32_t value = bytes_[0] + (bytes_.size() > 1 ? bytes_[1] * 256U : 0U);
    bytes_ = bytes_.subspan(std::min<std::size_t>(2, bytes_.size()));
    return value;
}

std::int32_t Choices::pick(std::int32_t low, std::int32_t high) {
    const auto span = static_cast<std::uint64_t>(std::int64_t{high} - low + 1);
    return static_cast<std::int32_t>(low + static_cast<std::int64_t>(next() % span));
}

double Choices::real(double low, double high) {
    return low + (high - low) * (pick(0, 1 << 16) / 65536.0);
}

Shape Choices::shape(std::int32_t min_rank, std::int32_t max_rank, std::int32_t longest) {
    Shape shape(static_cast<std::size_t>(pick(min_rank, max_rank)));
    for (auto& length : shape) length = pick(1, longest);
    return shape;
}

Shape Choices::shape_or_empty(std::int32_t min_rank, std::int32_t max_rank, std::int32_t longest) {
    Shape result = shape(min_rank, max_rank, longest);
    for (auto& length : result)
        if (one_in(24)) length = 0;
    return result;
}

double Choices::far_factor(std::int32_t low, std::int32_t high) {
    return far_scales_ && one_in(2) ? std::ldexp(1.0, pick(low, high)) : 1;
}

double Values::scale(std::size_t i) const {
    if (scales.empty()) return 1;
    if (scales.size() == 1) return scales[0];
    std::size_t inner = 1;
    for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d)
        inner *= static_cast<std::size_t>(shape[d]);
    return scales[i / inner % scales.size()];
}

std::size_t count_of(const Shape& shape) {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    return count;
}

std::size_t flat_index(const Shape& shape, const Shape& index) {
    std::size_t position = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
        position =
            position * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(index[d]);
    return position;
}

void each_index(const Shape& shape,
                const std::function<void(const Shape& index, std::size_t position)>& visit) {
    Shape index(shape.size(), 0);
    for (std::size_t position = 0; position < count_of(shape); ++position) {
        visit(index, position);
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++index[d] < shape[d]) break;
            index[d] = 0;
        }
    }
}

Shape part_of(Choices& choices, Shape shape) {
    for (auto& length : shape)
        if (choices.one_in(3)) length = 1;
    if (!shape.empty() && choices.one_in(4)) shape.erase(shape.begin());
    return shape;
}

std::size_t broadcast_index(const Shape& shape, const Shape& index) {
    Shape own(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
    for (std::size_t d = 0; d < own.size(); ++d)
        if (shape[d] == 1) own[d] = 0;
    return flat_index(shape, own);
}

TypeRange range_of(ElementType type) {
    switch (type) {
        case ElementType::uint8:
            return {0, 255};
        case ElementType::int8:
            return {-128, 127};
        case ElementType::int16:
            return {-32768, 32767};
        case ElementType::int32:
            return {-0x1p31, 0x1p31 - 1};
        case ElementType::int64:
            return {-0x1p53, 0x1p53};
        default:
            return {-std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::infinity()};
    }
}

Values raw_values(Choices& choices, ElementType type, Shape shape, Role role) {
    Values values{.type = type, .shape = std::move(shape), .role = role};
    values.stored.resize(count_of(values.shape));
    for (double& value : values.stored) {
        value = type == ElementType::uint8     ? choices.pick(0, 100)
                : type == ElementType::int8    ? choices.pick(-100, 100)
                : type == ElementType::int16   ? choices.pick(-100, 100)
                : type == ElementType::boolean ? choices.pick(0, 1)
                : type == ElementType::float16
                    ? std::ldexp(choices.pick(-2047, 2047), choices.pick(-24, 4))
                : type == ElementType::float32
                    ? static_cast<double>(static_cast<float>(choices.real(-4, 4) * 0.99999))
                    : choices.pick(-1000, 1000);
    }
    return values;
}

namespace {

double quantised_value(Choices& choices, int profile, const Values& values) {
    const auto [low, high] = range_of(values.type);
    const double middle = static_cast<double>(values.zero);
    switch (profile) {
        case 0:  // nearly constant
            return std::clamp(middle + 20 + choices.pick(-1, 1), low, high);
        case 1:  // near the zero point
            return std::clamp(middle + choices.pick(-3, 3), low, high);
        case 2:
            return choices.one_of({low, high, middle});
        default:
            return choices.pick(static_cast<std::int32_t>(low), static_cast<std::int32_t>(high));
    }
}

}  // namespace

Values random_values(Choices& choices, ElementType type, Shape shape, Role role) {
    if (type != ElementType::uint8 && type != ElementType::int8 && type != ElementType::int16)
        return raw_values(choices, type, std::move(shape), role);
    Values values{.type = type, .shape = std::move(shape), .role = role};
    const auto [low, high] = range_of(type);
    values.scales = {static_cast<float>(choices.real(0.003, 0.1))};
    if (type == ElementType::int16) values.scales[0] /= 256;
    values.scales[0] *= static_cast<float>(choices.far_factor(-16, 16));
    values.zero = type == ElementType::int16 ? 0
                                             : choices.pick(static_cast<std::int32_t>(low),
                                                            static_cast<std::int32_t>(high));
    const int profile = choices.pick(0, 7);
    values.stored.resize(count_of(values.shape));
    for (double& value : values.stored) value = quantised_value(choices, profile, values);
    return values;
}

Values numbers(const std::vector<std::int32_t>& values) {
    return {.type = ElementType::int32,
            .shape = {static_cast<std::int32_t>(values.size())},
            .stored = {values.begin(), values.end()},
            .role = Role::constant};
}

Values absent() {
    return {.role = Role::absent};
}

Expected stored_like(const Values& values, Shape shape) {
    Expected expected{.type = values.type, .shape = std::move(shape), .zero = values.zero};
    if (values.quantised()) expected.scale = values.scales[0];
    expected.real.resize(count_of(expected.shape));
    return expected;
}

void choose_quantisation(Choices& choices, Expected& expected, double steps) {
    double largest = 1e-3;
    for (const double value : expected.real) largest = std::max(largest, std::abs(value));
    const auto [low, high] = range_of(expected.type);
    expected.scale = static_cast<float>(largest / (high - low) * choices.real(0.7, 4) *
                                        choices.far_factor(-30, 10));
    expected.zero =
        expected.type == ElementType::int16
            ? 0
            : choices.pick(static_cast<std::int32_t>(low), static_cast<std::int32_t>(high));
    expected.steps = steps;
}

double activated(model::Activation activation, double value) {
    switch (activation) {
        case model::Activation::relu:
            return std::max(value, 0.0);
        case model::Activation::relu6:
            return std::clamp(value, 0.0, 6.0);
        case model::Activation::relu_n1_to_1:
            return std::clamp(value, -1.0, 1.0);
        default:
            return value;
    }
}

model::Activation random_activation(Choices& choices) {
    using enum model::Activation;
    return choices.one_of({none, none, relu, relu6, relu_n1_to_1});
}

}  // namespace reef::plain
