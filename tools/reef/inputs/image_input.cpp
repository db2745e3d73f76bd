#include "inputs/image_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace reef::tool {
namespace {

/// Between which two samples a destination sample lies, and how far from the first.
struct Between {
    int lower = 0;
    int upper = 0;
    float fraction = 0;
};

std::vector<Between> positions(int from, int to) {
    const float scale = static_cast<float>(from) / static_cast<float>(to);
    std::vector<Between> result(static_cast<std::size_t>(to));
    for (int i = 0; i < to; ++i) {
        const float at = (static_cast<float>(i) + 0.5F) * scale - 0.5F;
        const int lower = std::max(static_cast<int>(std::floor(at)), 0);
        const int upper = std::min(static_cast<int>(std::ceil(at)), from - 1);
        result[static_cast<std::size_t>(i)] = {lower, upper, at - static_cast<float>(lower)};
    }
    return result;
}

std::vector<std::byte> float_bytes(std::span<const std::uint8_t> pixels) {
    std::vector<std::byte> bytes(pixels.size() * sizeof(float));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const float value = (static_cast<float>(pixels[i]) - 127.5F) / 127.5F;
        std::memcpy(&bytes[i * sizeof(float)], &value, sizeof value);
    }
    return bytes;
}

}  // namespace

std::vector<std::uint8_t> grey_of(const Image& image) {
    std::vector<std::uint8_t> grey(image.rgb.size() / 3);
    for (std::size_t i = 0; i < grey.size(); ++i) {
        const unsigned sum = image.rgb[3 * i] + image.rgb[3 * i + 1] + image.rgb[3 * i + 2];
        grey[i] = static_cast<std::uint8_t>(sum / 3);
    }
    return grey;
}

std::vector<std::uint8_t> resize_bilinear(std::span<const std::uint8_t> pixels, PictureSize from,
                                          PictureSize to) {
    const auto channels = static_cast<std::size_t>(from.channels);
    const std::vector<Between> rows = positions(from.height, to.height);
    const std::vector<Between> columns = positions(from.width, to.width);
    std::vector<std::uint8_t> result(rows.size() * columns.size() * channels);
    std::uint8_t* out = result.data();
    const auto row_at = [&](int y) {
        return pixels.data() + static_cast<std::size_t>(y) * from.width * channels;
    };
    for (const Between& y : rows) {
        const std::uint8_t* upper_row = row_at(y.lower);
        const std::uint8_t* lower_row = row_at(y.upper);
        for (const Between& x : columns) {
            const std::size_t left = x.lower * channels;
            const std::size_t right = x.upper * channels;
            // The order of the products and sums is that of TFLite's float kernel: a sum just
            // below a whole number is truncated, so the last bit matters.
            const float upper_left = (1 - y.fraction) * (1 - x.fraction);
            const float upper_right = (1 - y.fraction) * x.fraction;
            const float lower_left = y.fraction * (1 - x.fraction);
            const float lower_right = y.fraction * x.fraction;
            for (std::size_t c = 0; c < channels; ++c) {
                const float value =
                    upper_row[left + c] * upper_left + upper_row[right + c] * upper_right +
                    lower_row[left + c] * lower_left + lower_row[right + c] * lower_right;
                *out++ = static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
            }
        }
    }
    return result;
}

Result<PictureSize> picture_size(const model::Tensor& tensor) {
    const auto refuse = [&]() {
        return fail(Cause::bad_input,
                    fmt::format("a picture does not fit a tensor of shape {} and type {}",
                                model::shape_text(tensor.shape), name_of(tensor.type)),
                    {}, "give this input as .npy, .npz or SHAPExTYPE=@FILE");
    };
    if (tensor.type != ElementType::uint8 && tensor.type != ElementType::int8 &&
        tensor.type != ElementType::float32) {
        return refuse();
    }
    const auto& shape = tensor.shape;
    const auto is_channels = [](std::int32_t n) { return n == 1 || n == 3; };
    PictureSize size;
    if (shape.size() == 4 && shape[0] == 1 && is_channels(shape[3])) {
        size = {shape[1], shape[2], shape[3]};
    } else if (shape.size() == 3 && shape[0] == 1) {
        size = {shape[1], shape[2], 1};
    } else if (shape.size() == 3 && is_channels(shape[2])) {
        size = {shape[0], shape[1], shape[2]};
    } else {
        return refuse();
    }
    if (size.height == 0 || size.width == 0) return refuse();
    return size;
}

namespace {

struct Pixels {
    PictureSize size;
    std::vector<std::uint8_t> values;
};

Pixels resized(const Pixels& from, PictureSize to) {
    return {to, resize_bilinear(from.values, from.size, to)};
}

Result<PictureSize> shorter_side_of(PictureSize size, int pixels) {
    const int shorter = std::min(size.height, size.width);
    const auto scaled = [&](int side) {
        return static_cast<std::int64_t>(
            std::llround(static_cast<double>(side) * pixels / shorter));
    };
    const std::int64_t height = scaled(size.height), width = scaled(size.width);
    REEF_CHECK(check_image_size(width, height));
    return PictureSize{static_cast<int>(height), static_cast<int>(width), size.channels};
}

/// The largest of the proportions of `shape` that lies inside of `size`.
PictureSize largest_inside(PictureSize size, PictureSize shape) {
    const auto whole = [](double value) { return std::max(1, static_cast<int>(value)); };
    const double scale = std::min(static_cast<double>(size.height) / shape.height,
                                  static_cast<double>(size.width) / shape.width);
    return {whole(shape.height * scale), whole(shape.width * scale), size.channels};
}

/// Precondition: `size` is not larger.
Pixels middle_of(const Pixels& picture, PictureSize size) {
    Pixels out{{size.height, size.width, picture.size.channels}, {}};
    const auto channels = static_cast<std::size_t>(picture.size.channels);
    const auto top = static_cast<std::size_t>((picture.size.height - size.height) / 2);
    const auto left = static_cast<std::size_t>((picture.size.width - size.width) / 2);
    const std::size_t row = static_cast<std::size_t>(picture.size.width) * channels;
    for (std::size_t y = 0; y < static_cast<std::size_t>(size.height); ++y) {
        const auto begin =
            picture.values.begin() + static_cast<std::ptrdiff_t>((top + y) * row + left * channels);
        out.values.insert(out.values.end(), begin,
                          begin + static_cast<std::ptrdiff_t>(size.width) * picture.size.channels);
    }
    return out;
}

Status check_rules(const PictureRules& rules, PictureSize to, const model::Tensor& tensor) {
    const auto finite = [](double value) { return std::isfinite(value); };
    for (const auto& numbers : {rules.mean, rules.deviation}) {
        if (!std::ranges::all_of(numbers, finite))
            return fail(Cause::bad_argument, "a mean or a deviation that is no finite number");
        if (numbers.size() > 1 && std::cmp_not_equal(numbers.size(), to.channels))
            return fail(Cause::bad_argument,
                        fmt::format("{} numbers for {} channels", numbers.size(), to.channels), {},
                        "give one, or one a channel");
    }
    if (std::ranges::find(rules.deviation, 0.0) != rules.deviation.end())
        return fail(Cause::bad_argument, "a deviation of 0 divides by nothing");
    if (rules.bgr && to.channels != 3)
        return fail(Cause::bad_argument, "a grey picture has no order of colours");
    const bool quantised = tensor.quantization && tensor.quantization->scale.size() == 1 &&
                           tensor.quantization->zero_point.size() == 1 &&
                           finite(tensor.quantization->scale[0]) &&
                           tensor.quantization->scale[0] > 0;
    if (rules.sets_values() && tensor.type != ElementType::float32 && !quantised)
        return fail(Cause::bad_argument, "the tensor says no scale for the values of pixels");
    return {};
}

/// (pixel - mean) / deviation as the tensor holds it; halves are rounded away from zero.
std::vector<std::byte> values_of(std::span<const std::uint8_t> pixels, const model::Tensor& tensor,
                                 PictureSize size, const PictureRules& rules) {
    const auto of_channel = [](const std::vector<double>& numbers, std::size_t c, double standard) {
        return numbers.empty() ? standard : numbers[numbers.size() == 1 ? 0 : c];
    };
    const bool real = tensor.type == ElementType::float32;
    const double least = tensor.type == ElementType::int8 ? -128 : 0;
    std::vector<std::byte> bytes(pixels.size() * (real ? sizeof(float) : 1));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::size_t c = i % static_cast<std::size_t>(size.channels);
        const double value =
            (pixels[i] - of_channel(rules.mean, c, 0)) / of_channel(rules.deviation, c, 1);
        if (real) {
            const auto number = static_cast<float>(value);
            std::memcpy(&bytes[i * sizeof number], &number, sizeof number);
            continue;
        }
        const double steps = std::round(value / tensor.quantization->scale[0]) +
                             static_cast<double>(tensor.quantization->zero_point[0]);
        bytes[i] = static_cast<std::byte>(static_cast<int>(std::clamp(steps, least, least + 255)));
    }
    return bytes;
}

}  // namespace

Result<std::vector<std::byte>> prepare_image(const Image& image, const model::Tensor& tensor,
                                             const PictureRules& rules) {
    const PictureSize to = REEF_TRY(picture_size(tensor));
    REEF_CHECK(check_rules(rules, to, tensor));
    Pixels picture{{image.height, image.width, to.channels},
                   to.channels == 1 ? grey_of(image) : image.rgb};
    if (rules.resize > 0) {
        picture = resized(picture, REEF_TRY(shorter_side_of(picture.size, rules.resize)));
        if (picture.size.height < to.height || picture.size.width < to.width)
            return fail(Cause::bad_argument,
                        fmt::format("{} pixels at the shorter side are too few for {}x{}",
                                    rules.resize, to.height, to.width),
                        {}, "give more, or none");
        picture = middle_of(picture, to);
    } else if (rules.crop) {
        picture = middle_of(picture, largest_inside(picture.size, to));
    }
    std::vector<std::uint8_t> pixels = resize_bilinear(picture.values, picture.size, to);
    if (rules.bgr)
        for (std::size_t i = 0; i + 2 < pixels.size(); i += 3) std::swap(pixels[i], pixels[i + 2]);
    if (rules.sets_values()) return values_of(pixels, tensor, to, rules);
    if (tensor.type == ElementType::float32) return float_bytes(pixels);
    if (tensor.type == ElementType::int8) {
        // pixel - 128 in two's complement.
        for (std::uint8_t& pixel : pixels) pixel ^= 0x80;
    }
    const auto bytes = std::as_bytes(std::span(pixels));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace reef::tool
