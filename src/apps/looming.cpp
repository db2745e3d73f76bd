#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "apps/picture_side.h"
#include "reef/apps/robotics.h"
#include "reef/model/builder.h"

namespace reef::apps {
namespace {

constexpr std::size_t centre_zone = 4;

constexpr std::array<double, 9> sobel_x{-0.125, 0, 0.125, -0.25, 0, 0.25, -0.125, 0, 0.125};
constexpr double sobel_largest = 0.25;

Status check_side(std::string_view name, std::int32_t side) {
    if (side < looming_grid) {
        return fail(Cause::bad_argument,
                    fmt::format("{} {} is too small for {} zones", name, side, looming_grid),
                    "looming network");
    }
    if (side > maximum_side) {
        return fail(Cause::bad_argument, fmt::format("{} {} is above {}", name, side, maximum_side),
                    "looming network");
    }
    const std::int32_t window = side / looming_grid;
    if (side / window != looming_grid) {
        return fail(Cause::bad_argument,
                    fmt::format("{} {} cannot be divided into {} zones of whole pixels", name, side,
                                looming_grid),
                    "looming network", fmt::format("use a multiple of {}", looming_grid));
    }
    return {};
}

Status check_scale(std::string_view name, const ActivationScale& value) {
    if (!std::isfinite(value.scale) || value.scale <= 0) {
        return fail(
            Cause::bad_argument,
            fmt::format("the scale of {} must be positive and finite, not {}", name, value.scale),
            "looming network");
    }
    if (value.zero_point < -128 || value.zero_point > 127) {
        return fail(
            Cause::bad_argument,
            fmt::format("the zero point of {} must be an int8, not {}", name, value.zero_point),
            "looming network");
    }
    return {};
}

Status check(const LoomingOptions& options) {
    REEF_CHECK(check_side("height", options.height));
    REEF_CHECK(check_side("width", options.width));
    REEF_CHECK(check_scale("the input", {options.scales.input, 0}));
    REEF_CHECK(check_scale("the x response", options.scales.x_response));
    REEF_CHECK(check_scale("the y response", options.scales.y_response));
    REEF_CHECK(check_scale("the x square", {options.scales.x_square, 0}));
    REEF_CHECK(check_scale("the y square", {options.scales.y_square, 0}));
    return {};
}

/// Adds one Sobel convolution and its square; returns the square. The operator versions here and
/// below are those that TFLite requires for the int8 forms.
model::TensorIndex add_squared_response(model::Builder& builder, model::TensorIndex picture,
                                        const LoomingOptions& options, const std::string& axis,
                                        const ActivationScale& response, float square_scale) {
    const float weight_scale = static_cast<float>(sobel_largest / 127);
    std::array<std::int8_t, 9> weights{};
    for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 3; ++column) {
            const double w = axis == "x" ? sobel_x[row * 3 + column] : sobel_x[column * 3 + row];
            weights[row * 3 + column] =
                static_cast<std::int8_t>(std::lround(w * 127 / sobel_largest));
        }
    }
    const auto kernel =
        builder.constant<std::int8_t>("sobel_" + axis, ElementType::int8, {1, 3, 3, 1}, weights,
                                      model::per_tensor(weight_scale, 0));
    const std::array<std::int32_t, 1> zero{};
    const auto bias =
        builder.constant<std::int32_t>("sobel_" + axis + "_bias", ElementType::int32, {1}, zero,
                                       model::per_tensor(weight_scale * options.scales.input, 0));
    const std::vector<std::int32_t> shape{1, options.height, options.width, 1};
    const auto edges = builder.tensor("response_" + axis, ElementType::int8, shape,
                                      model::per_tensor(response.scale, response.zero_point));
    builder.add(model::Op::conv_2d, {picture, kernel, bias}, {edges},
                model::Conv2dOptions{.stride_h = 1, .stride_w = 1}, 3);
    const auto square = builder.tensor("square_" + axis, ElementType::int8, shape,
                                       model::per_tensor(square_scale, -128));
    builder.add(model::Op::mul, {edges, edges}, {square}, model::MulOptions{}, 2);
    return square;
}

}  // namespace

Result<model::Model> looming_model(const LoomingOptions& options) {
    REEF_CHECK(check(options));
    const LoomingScales& scales = options.scales;
    const std::int32_t grid = looming_grid;
    const auto zone_count = static_cast<std::int32_t>(looming_zones);
    const std::vector<std::int32_t> shape{1, options.height, options.width, 1};
    const model::Quantization energy = model::per_tensor(scales.x_square, -128);

    model::Builder builder(fmt::format("Looming detector, {}x{} pixels, {}x{} zones",
                                       options.height, options.width, grid, grid));
    const auto input =
        builder.input("picture", ElementType::uint8, shape, model::per_tensor(scales.input, 0));
    const auto picture = builder.tensor("picture_int8", ElementType::int8, shape,
                                        model::per_tensor(scales.input, -128));
    builder.add(model::Op::quantize, {input}, {picture});
    const auto x =
        add_squared_response(builder, picture, options, "x", scales.x_response, scales.x_square);
    const auto y =
        add_squared_response(builder, picture, options, "y", scales.y_response, scales.y_square);
    const auto sum = builder.tensor("edge_energy", ElementType::int8, shape, energy);
    builder.add(model::Op::add, {x, y}, {sum}, model::AddOptions{}, 2);

    const model::Pool2dOptions window{.padding = model::Padding::valid,
                                      .stride_h = options.height / grid,
                                      .stride_w = options.width / grid,
                                      .filter_h = options.height / grid,
                                      .filter_w = options.width / grid};
    const auto pool = builder.tensor("zone_energy", ElementType::int8, {1, grid, grid, 1}, energy);
    builder.add(model::Op::average_pool_2d, {sum}, {pool}, window, 2);
    const std::array<std::int32_t, 2> flat{1, zone_count};
    const auto new_shape =
        builder.constant<std::int32_t>("zones_shape", ElementType::int32, {2}, flat);
    const auto zones = builder.tensor("zones_int8", ElementType::int8, {1, zone_count}, energy);
    builder.add(model::Op::reshape, {pool, new_shape}, {zones});
    const auto output = builder.tensor("zones", ElementType::uint8, {1, zone_count},
                                       model::per_tensor(scales.x_square, 0));
    builder.add(model::Op::quantize, {zones}, {output});
    builder.output(output);
    return builder.finish();
}

double tau(std::span<const std::uint8_t, looming_zones> zones) {
    int surround = 0;
    for (std::size_t i = 0; i < looming_zones; ++i) surround += i == centre_zone ? 0 : zones[i];
    const int centre = zones[centre_zone];
    if (surround == 0) return centre == 0 ? 1 : max_tau;
    return centre * static_cast<double>(looming_zones - 1) / surround;
}

std::optional<double> time_to_contact(double tau_before, double tau_now, double dt) {
    const auto usable = [](double value) { return std::isfinite(value) && value > 0; };
    if (!usable(tau_before) || !usable(tau_now) || !usable(dt)) return std::nullopt;
    const double growth = tau_now / tau_before - 1;
    if (!(growth > 0)) return std::nullopt;
    const double seconds = dt / growth;
    return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

ApproachEstimator::ApproachEstimator(std::size_t window)
    : window_(std::max<std::size_t>(window, 3)) {}

ApproachEstimator::Estimate ApproachEstimator::update(double tau, double dt) {
    constexpr double standard_errors = 3;
    constexpr double smallest_change = 0.05;
    if (!std::isfinite(tau) || tau <= 0 || !std::isfinite(dt) || dt <= 0) {
        samples_.clear();
        return {};
    }
    now_ = samples_.empty() ? 0 : now_ + dt;
    samples_.push_back({now_, 1 / tau});
    if (samples_.size() > window_) samples_.pop_front();
    if (samples_.size() < 3) return {};

    const auto n = static_cast<double>(samples_.size());
    double mean_time = 0;
    double mean = 0;
    for (const Sample& s : samples_) {
        mean_time += s.time / n;
        mean += s.inverse_tau / n;
    }
    double time_spread = 0;
    double covariance = 0;
    for (const Sample& s : samples_) {
        time_spread += (s.time - mean_time) * (s.time - mean_time);
        covariance += (s.time - mean_time) * (s.inverse_tau - mean);
    }
    const double slope = covariance / time_spread;
    double residue = 0;
    for (const Sample& s : samples_) {
        const double error = s.inverse_tau - mean - slope * (s.time - mean_time);
        residue += error * error;
    }
    const double slope_error = std::sqrt(residue / (n - 2) / time_spread);
    const double change = std::abs(slope) * (now_ - samples_.front().time);
    if (std::abs(slope) <= standard_errors * slope_error || change <= smallest_change * mean) {
        return {};
    }
    if (slope > 0) return {Motion::receding, std::nullopt};
    const double at_newest = mean + slope * (now_ - mean_time);
    return {Motion::approaching, std::max(0.0, -at_newest / slope)};
}

}  // namespace reef::apps
