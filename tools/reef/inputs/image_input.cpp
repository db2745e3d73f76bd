#include "inputs/image_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

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

Result<std::vector<std::byte>> prepare_image(const Image& image, const model::Tensor& tensor) {
    const PictureSize to = REEF_TRY(picture_size(tensor));
    const PictureSize from{image.height, image.width, to.channels};
    const std::vector<std::uint8_t> grey = to.channels == 1 ? grey_of(image) : image.rgb;
    std::vector<std::uint8_t> pixels = resize_bilinear(grey, from, to);
    if (tensor.type == ElementType::float32) return float_bytes(pixels);
    if (tensor.type == ElementType::int8) {
        // pixel - 128 in two's complement.
        for (std::uint8_t& pixel : pixels) pixel ^= 0x80;
    }
    const auto bytes = std::as_bytes(std::span(pixels));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace reef::tool
