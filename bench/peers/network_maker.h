// Makes networks of one element type with random weights, operator by operator.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "reef/model/builder.h"

namespace reef::peers {

/// A tensor between two operators.
struct Place {
    model::TensorIndex tensor = 0;
    std::int32_t height = 1, width = 1;
    std::int32_t channels = 1;
    model::Activation range = model::Activation::none;  ///< of its values
};

/// How a window goes over an image.
struct Window {
    std::int32_t height = 1, width = 1;
    std::int32_t stride = 1;
    std::int32_t dilation = 1;
    model::Padding padding = model::Padding::same;

    static Window square(std::int32_t taps, std::int32_t stride = 1, std::int32_t dilation = 1) {
        return {taps, taps, stride, dilation};
    }
    /// Without a border of zeros.
    static Window inside(std::int32_t taps, std::int32_t stride = 1) {
        return {taps, taps, stride, 1, model::Padding::valid};
    }
};

/// Quantised activations have the range that their function lets through, as after training, so
/// that no other bounds are left to apply. Weights are scaled so that sums spread over a part of
/// it.
class NetworkMaker {
  public:
    using Activation = model::Activation;

    NetworkMaker(std::string name, ElementType type) : builder_(std::move(name)), type_(type) {}

    /// A picture of three channels.
    Place input(std::int32_t size);
    Place conv(Place in, std::int32_t channels, Window window,
               Activation activation = Activation::relu);
    Place depthwise(Place in, Window window);
    Place pool(Place in, bool average, Window window);
    Place add(Place a, Place b, Activation activation);
    Place concatenation(std::span<const Place> parts);
    Place resize(Place in, std::int32_t size, bool align_corners);
    Place logistic(Place in);
    /// Of all parts with `depth` values a row, one below the other.
    Place rows(std::span<const Place> parts, std::int32_t depth);
    /// The greatest channel of every pixel.
    void arg_max(Place in);
    /// The mean of all pixels, a layer of `classes` and SOFTMAX.
    void classify(Place in, std::int32_t classes);
    void output(Place place) { builder_.output(place.tensor); }
    Result<model::Model> finish() { return builder_.finish(); }

  private:
    static constexpr std::int32_t per_tensor_only = -1;
    static constexpr float step = 0.05F;

    [[nodiscard]] bool real() const { return type_ == ElementType::float32; }
    [[nodiscard]] std::int64_t lowest() const { return type_ == ElementType::int8 ? -128 : 0; }
    [[nodiscard]] model::Quantization activations(Activation range = Activation::none) const;
    /// From 0 to 1.
    [[nodiscard]] model::Quantization shares() const;
    model::TensorIndex integers(const char* name, std::span<const std::int32_t> values);
    struct Weights {
        model::TensorIndex tensor;
        model::Quantization quantization;
    };
    Weights constants(const std::vector<std::int32_t>& shape, std::int32_t axis, Activation behind);
    /// Scaled as the sums are.
    model::TensorIndex bias(std::int32_t channels, const model::Quantization& input,
                            const Weights& weights);
    Place place(std::int32_t height, std::int32_t width, std::int32_t channels, Activation range);
    /// What the window makes of the image.
    Place behind(const Place& in, const Window& window, std::int32_t channels, Activation range);

    model::Builder builder_;
    ElementType type_;
    std::mt19937 random_{1};
};

}  // namespace reef::peers
