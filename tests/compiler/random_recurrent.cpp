#include <fmt/format.h>

#include <random>

#include "compiler/random_network.h"
#include "reef/model/builder.h"

namespace reef::test {
namespace {

using model::Op;
using model::TensorIndex;

class RecurrentMaker {
  public:
    explicit RecurrentMaker(unsigned seed) : random_(seed) {}

    model::Model run(std::int32_t steps, std::int32_t units) {
        builder_.output(lstm(
            builder_.input("in", ElementType::int8, {1, steps, 4}, numbers(scale(0.01F, 0.03F))),
            {steps, 4, units}, last_scale_, 0));
        return std::move(builder_.finish()).value();
    }
    model::Model run() {
        const std::int32_t depth = draw(1, 40), steps = draw(1, 12);
        auto from = builder_.input("in", ElementType::int8, {1, steps, depth},
                                   numbers(scale(0.01F, 0.03F)));
        float in_scale = last_scale_;
        std::int32_t channels = depth;
        const int layers = draw(1, 2);
        for (int i = 0; i < layers; ++i) {
            const std::int32_t units = draw(1, 3) == 1 ? draw(60, 90) : draw(1, 40);
            from = lstm(from, {steps, channels, units}, in_scale, i);
            in_scale = last_scale_;
            channels = units;
            if (i + 1 == layers || draw(1, 3) == 1) builder_.output(from);
        }
        return std::move(builder_.finish()).value();
    }

  private:
    struct Sizes {
        std::int32_t steps = 0, depth = 0, units = 0;
    };

    int draw(int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random_);
    }
    float scale(float least, float most) {
        return last_scale_ = std::uniform_real_distribution<float>(least, most)(random_);
    }
    model::Quantization numbers(float of) { return model::per_tensor(of, draw(-30, 30)); }

    TensorIndex weights(const std::string& name, std::int32_t units, std::int32_t depth,
                        float size) {
        std::vector<std::int8_t> data(static_cast<std::size_t>(units * depth));
        for (auto& w : data) w = static_cast<std::int8_t>(draw(-127, 127));
        return builder_.constant<std::int8_t>(name, ElementType::int8, {units, depth}, data,
                                              model::per_tensor(size, 0));
    }

    TensorIndex lstm(TensorIndex from, const Sizes& sizes, float in_scale, int number) {
        const auto name = [&](const char* of) { return fmt::format("{}{}", of, number); };
        const float hidden = std::uniform_real_distribution<float>(0.004F, 0.01F)(random_);
        const auto quantized = numbers(hidden);
        std::vector<TensorIndex> inputs{from};
        std::vector<float> sizes_of_weights;
        for (const std::int32_t depth : {sizes.depth, sizes.units})
            for (int g = 0; g < 4; ++g) {
                const float size = std::uniform_real_distribution<float>(0.002F, 0.02F)(random_);
                sizes_of_weights.push_back(size);
                inputs.push_back(weights(fmt::format("w{}_{}", number, inputs.size()), sizes.units,
                                         depth, size));
            }
        inputs.insert(inputs.end(), 3, model::absent_tensor);
        for (std::size_t g = 0; g < 4; ++g) {
            std::vector<std::int32_t> bias(static_cast<std::size_t>(sizes.units));
            for (auto& b : bias) b = draw(-3000, 3000);
            inputs.push_back(builder_.constant<std::int32_t>(
                fmt::format("b{}_{}", number, g), ElementType::int32, {sizes.units}, bias,
                model::per_tensor(in_scale * sizes_of_weights[g], 0)));
        }
        inputs.insert(inputs.end(), 2, model::absent_tensor);
        inputs.push_back(
            builder_.variable(name("hidden"), ElementType::int8, {1, sizes.units}, quantized));
        inputs.push_back(builder_.variable(name("cell"), ElementType::int16, {1, sizes.units},
                                           model::per_tensor(0x1p-12F, 0)));
        inputs.insert(inputs.end(), 4, model::absent_tensor);
        const auto to = builder_.tensor(name("out"), ElementType::int8,
                                        {1, sizes.steps, sizes.units}, quantized);
        builder_.add(
            Op::unidirectional_sequence_lstm, inputs, {to},
            model::UnidirectionalSequenceLstmOptions{.activation = model::Activation::tanh});
        last_scale_ = hidden;
        return to;
    }

    std::mt19937 random_;
    model::Builder builder_{"recurrent"};
    float last_scale_ = 1;
};

}  // namespace

model::Model random_recurrent_network(unsigned seed) {
    return RecurrentMaker(seed).run();
}

model::Model recurrent_network(unsigned seed, std::int32_t steps, std::int32_t units) {
    return RecurrentMaker(seed).run(steps, units);
}

}  // namespace reef::test
