// One operator in the chip's arithmetic, and what the chip would hold of its tensors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "cpu/run_model.h"
#include "edgetpu/numerics/forms.h"
#include "reef/model/builder.h"

namespace reef::edgetpu::numerics {

/// A tensor's quantisation, with the zero point that the chip sees.
struct Side {
    float scale = 1;
    std::int32_t zero = 0;
};

class ChipOperator : public testing::TestWithParam<ElementType> {
  protected:
    [[nodiscard]] bool is_signed() const { return GetParam() == ElementType::int8; }
    [[nodiscard]] int sign_bit() const { return is_signed() ? 128 : 0; }
    [[nodiscard]] model::Quantization quantisation(Side side) const {
        return model::per_tensor(side.scale, side.zero - sign_bit());
    }
    /// What the chip holds for a tensor's byte.
    [[nodiscard]] std::int32_t on_chip(std::byte value) const {
        return std::to_integer<std::int32_t>(value) ^ sign_bit();
    }
    Side any_side(float low = -6, float high = 1) {
        return {std::exp2(std::uniform_real_distribution<float>(low, high)(random_)),
                test::pick(random_, 0, 255)};
    }

    /// The chip's last step, by another way than the product's: ties from the distance to both
    /// neighbours.
    static std::int32_t requantise(std::int64_t sum, float scale, Side out,
                                   model::Activation activation = model::Activation::none) {
        const float inverse = 1.0F / out.scale;
        float low = out.scale * static_cast<float>(-out.zero);
        float high = out.scale * static_cast<float>(255 - out.zero);
        if (activation != model::Activation::none) low = std::max(low, 0.0F);
        if (activation == model::Activation::relu6) high = std::min(high, 6.0F);
        float y = static_cast<float>(sum) * scale;
        if (y < low * inverse) y = low * inverse;
        if (y > high * inverse) y = high * inverse;
        const double below = std::floor(double{y});
        const double rest = double{y} - below;
        const bool odd = std::fmod(below, 2) != 0;
        const bool up = rest > 0.5 || (rest == 0.5 && odd);
        return std::clamp(static_cast<std::int32_t>(below) + (up ? 1 : 0) + out.zero, 0, 255);
    }

    static std::pair<std::vector<std::byte>, std::vector<std::byte>> every_pair() {
        std::vector<std::byte> first(65536), second(65536);
        for (std::size_t i = 0; i < first.size(); ++i) {
            first[i] = static_cast<std::byte>(i);
            second[i] = static_cast<std::byte>(i / 256);
        }
        return {first, second};
    }

    /// One operator on computed inputs: what it gives, as the chip holds it.
    std::vector<std::int32_t> run(model::Builder& builder, model::TensorIndex output,
                                  const std::vector<std::vector<std::byte>>& inputs) {
        builder.output(output);
        auto model = builder.finish();
        EXPECT_TRUE(model) << model.error().message();
        if (!model) return {};
        std::vector<std::vector<std::byte>> results;
        for (const cpu::KernelSet kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
            auto outputs = test::run_model(
                *model, inputs, {.kernels = kernels, .arithmetic = &numerics::arithmetic()});
            if (outputs.empty()) return {};
            results.push_back(std::move(outputs[0]));
        }
        EXPECT_EQ(results[0], results[1]);
        std::vector<std::int32_t> values;
        for (const std::byte value : results[0]) values.push_back(on_chip(value));
        return values;
    }

    std::mt19937 random_{7};
};

}  // namespace reef::edgetpu::numerics
