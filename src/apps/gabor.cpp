#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "apps/picture_side.h"
#include "reef/apps/robotics.h"
#include "reef/model/builder.h"

namespace reef::apps {
namespace {

constexpr std::int32_t largest_kernel = 31;
constexpr std::int32_t most_channels = 64;
constexpr std::int64_t most_elements = std::int64_t{1} << 27;
constexpr std::string_view place = "Gabor network";

std::unexpected<Error> refuse(std::string what) {
    return fail(Cause::bad_argument, std::move(what), std::string(place));
}

Status check_side(std::string_view name, std::int32_t side, const GaborOptions& options) {
    if (side < options.kernel_size) {
        return refuse(fmt::format("{} {} is smaller than the {}x{} kernel", name, side,
                                  options.kernel_size, options.kernel_size));
    }
    if (side > maximum_side)
        return refuse(fmt::format("{} {} is above {}", name, side, maximum_side));
    if (side % options.pool != 0) {
        return fail(
            Cause::bad_argument,
            fmt::format("{} {} is not a multiple of the pool's side {}", name, side, options.pool),
            std::string(place), "pad or crop the picture, or choose another pool");
    }
    return {};
}

Status check(const GaborOptions& options) {
    if (options.kernel_size < 3 || options.kernel_size > largest_kernel ||
        options.kernel_size % 2 == 0) {
        return refuse(fmt::format("kernel size {} is not an odd number from 3 to {}",
                                  options.kernel_size, largest_kernel));
    }
    if (options.orientations < 1 || options.orientations > most_channels ||
        options.sigmas.empty() || options.sigmas.size() > most_channels ||
        options.channels() > most_channels) {
        return refuse(fmt::format("{} orientations at {} scales: 1 to {} channels are possible",
                                  options.orientations, options.sigmas.size(), most_channels));
    }
    for (const double sigma : options.sigmas) {
        if (!std::isfinite(sigma) || sigma < 0.1 || sigma > 100) {
            return refuse(fmt::format("sigma {} is not from 0.1 to 100 pixels", sigma));
        }
    }
    if (options.pool < 1) return refuse(fmt::format("pool side {} is below 1", options.pool));
    REEF_CHECK(check_side("height", options.height, options));
    REEF_CHECK(check_side("width", options.width, options));
    if (std::int64_t{options.height} * options.width * options.channels() > most_elements) {
        return refuse(fmt::format("{}x{} pixels with {} channels are more than {} elements",
                                  options.height, options.width, options.channels(),
                                  most_elements));
    }
    for (const float scale : {options.input_scale, options.output_scale}) {
        if (!std::isfinite(scale) || scale <= 0) {
            return refuse(fmt::format("scale {} is not positive and finite", scale));
        }
    }
    return {};
}

/// All kernels as DEPTHWISE_CONV_2D wants them: [1, kernel, kernel, channels].
std::vector<std::int8_t> quantised_kernels(const GaborOptions& options) {
    const auto channels = static_cast<std::size_t>(options.channels());
    const auto side = static_cast<std::size_t>(options.kernel_size);
    const std::size_t taps = side * side;
    std::vector<std::int8_t> weights(taps * channels);
    for (std::size_t c = 0; c < channels; ++c) {
        const auto kernel = gabor_kernel(options, static_cast<std::int32_t>(c));
        for (std::size_t i = 0; i < taps; ++i) {
            weights[i * channels + c] = static_cast<std::int8_t>(std::lround(kernel[i] * 127));
        }
    }
    return weights;
}

}  // namespace

std::vector<double> gabor_kernel(const GaborOptions& options, std::int32_t channel) {
    const double sigma = options.sigmas[static_cast<std::size_t>(channel / options.orientations)];
    const double theta = (channel % options.orientations) * std::numbers::pi / options.orientations;
    const double wavelength = 2 * sigma;
    const std::int32_t half = options.kernel_size / 2;
    std::vector<double> kernel;
    for (std::int32_t y = -half; y <= half; ++y) {
        for (std::int32_t x = -half; x <= half; ++x) {
            const double along = x * std::cos(theta) + y * std::sin(theta);
            const double across = -x * std::sin(theta) + y * std::cos(theta);
            const double envelope =
                std::exp(-(along * along + across * across) / (2 * sigma * sigma));
            kernel.push_back(envelope * std::cos(2 * std::numbers::pi * across / wavelength));
        }
    }
    const auto magnitude_less = [](double a, double b) { return std::abs(a) < std::abs(b); };
    const double largest = std::abs(*std::ranges::max_element(kernel, magnitude_less));
    for (double& w : kernel) w /= largest;
    return kernel;
}

Result<model::Model> gabor_model(const GaborOptions& options) {
    REEF_CHECK(check(options));
    const std::int32_t channels = options.channels();
    const auto channel_count = static_cast<std::size_t>(channels);
    const std::vector<std::int32_t> picture_shape{1, options.height, options.width, 1};
    const std::vector<std::int32_t> features_shape{1, options.height, options.width, channels};
    const model::Quantization features_scale = model::per_tensor(options.output_scale, -128);

    model::Builder builder(fmt::format("Gabor features, {}x{} pixels, {} orientations, {} scales",
                                       options.height, options.width, options.orientations,
                                       options.sigmas.size()));
    const auto input = builder.input("picture", ElementType::uint8, picture_shape,
                                     model::per_tensor(options.input_scale, 0));
    const auto picture = builder.tensor("picture_int8", ElementType::int8, picture_shape,
                                        model::per_tensor(options.input_scale, -128));
    builder.add(model::Op::quantize, {input}, {picture});

    const float weight_scale = 1.0F / 127.0F;
    const auto weights = quantised_kernels(options);
    const auto kernel = builder.constant<std::int8_t>(
        "gabor_kernels", ElementType::int8, {1, options.kernel_size, options.kernel_size, channels},
        weights, model::per_channel(std::vector(channel_count, weight_scale), 3));
    const std::vector<std::int32_t> zeros(channel_count, 0);
    const auto bias = builder.constant<std::int32_t>(
        "bias", ElementType::int32, {channels}, zeros,
        model::per_channel(std::vector(channel_count, options.input_scale * weight_scale), 0));
    auto features =
        builder.tensor("features_int8", ElementType::int8, features_shape, features_scale);
    builder.add(model::Op::depthwise_conv_2d, {picture, kernel, bias}, {features},
                model::DepthwiseConv2dOptions{.stride_h = 1,
                                              .stride_w = 1,
                                              .depth_multiplier = channels,
                                              .activation = model::Activation::relu});

    const std::vector<std::int32_t> output_shape{1, options.height / options.pool,
                                                 options.width / options.pool, channels};
    if (options.pool > 1) {
        const auto pooled =
            builder.tensor("pooled_int8", ElementType::int8, output_shape, features_scale);
        builder.add(model::Op::average_pool_2d, {features}, {pooled},
                    model::Pool2dOptions{.padding = model::Padding::valid,
                                         .stride_h = options.pool,
                                         .stride_w = options.pool,
                                         .filter_h = options.pool,
                                         .filter_w = options.pool});
        features = pooled;
    }
    const auto output = builder.tensor("features", ElementType::uint8, output_shape,
                                       model::per_tensor(options.output_scale, 0));
    builder.add(model::Op::quantize, {features}, {output});
    builder.output(output);
    return builder.finish();
}

}  // namespace reef::apps
