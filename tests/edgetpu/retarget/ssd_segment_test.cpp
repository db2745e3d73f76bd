// Compiled models without a plain one: the two parts of a detector cut for two chips. Their plain
// models are built from the published architecture (SSD on MobileNet v1) with the numbers that the
// compiled files hold: weights and biases out of the parameter blobs, scales, limits and zero
// points out of the instructions' fields. The CPU floor computes them in the chip's arithmetic;
// every byte that the simulated programs give must be the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <span>

#include "edgetpu/retarget/template_recovery.h"
#include "reef/model/builder.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using model::TensorIndex;

/// A convolution with RELU6 of the published architecture.
struct Layer {
    std::string name;
    std::size_t source = 0;  ///< index; the model's input has 0, layer i has i + 1
    bool depthwise = false;
    std::int32_t kernel = 1, stride = 1, channels = 0;
    std::optional<std::size_t> output;  ///< of the compiled model
};
using Architecture = std::vector<Layer>;

/// MobileNet v1, all of it but the classifier. The detector reads two of its tensors.
Architecture feature_extractor() {
    struct Block {
        std::int32_t stride, channels;
    };
    constexpr Block blocks[] = {{1, 64},  {2, 128},  {1, 128}, {2, 256}, {1, 256},
                                {2, 512}, {1, 512},  {1, 512}, {1, 512}, {1, 512},
                                {1, 512}, {2, 1024}, {1, 1024}};
    Architecture layers = {{"conv0", 0, false, 3, 2, 32, {}}};
    for (const auto [stride, channels] : blocks) {
        const std::size_t number = layers.size() / 2 + 1;
        layers.push_back({fmt::format("depthwise{}", number),
                          layers.size(),
                          true,
                          3,
                          stride,
                          layers.back().channels,
                          {}});
        layers.push_back(
            {fmt::format("pointwise{}", number), layers.size(), false, 1, 1, channels, {}});
        if (number == 11) layers.back().output = 0;
        if (number == 13) layers.back().output = 1;
    }
    return layers;
}

/// What a compiled file holds of a layer.
struct LayerNumbers {
    std::vector<std::byte> weights;
    std::vector<std::int32_t> biases;
    float multiplier = 1;
    ClampLimits limits;
    std::int32_t weight_zero = 0, out_zero = 0;
    // Not in the file: scales of weights and results that give its multiplier and limits.
    float weight_scale = 1, out_scale = 1;
};
using Numbers = std::vector<LayerNumbers>;  ///< by layer

const model::Tensor& tensor_of(const model::Subgraph& graph, TensorIndex index) {
    return graph.tensors[static_cast<std::size_t>(index)];
}

/// The plain model of the architecture, with the compiled one's inputs and outputs.
model::Model plain_model(const Architecture& layers, const model::Subgraph& compiled,
                         const Numbers& numbers) {
    using model::Activation::relu6;
    model::Builder builder("rebuilt");
    const auto& in = tensor_of(compiled, compiled.inputs[0]);
    std::vector<TensorIndex> tensors = {
        builder.input(in.name, in.type, in.shape, in.quantization.value())};
    std::vector<std::vector<std::int32_t>> shapes = {in.shape};
    std::vector<float> scales = {in.quantization->scale[0]};
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const Layer& layer = layers[i];
        const LayerNumbers& own = numbers[i];
        const auto source = shapes[layer.source];
        const std::int32_t size = (source[1] + layer.stride - 1) / layer.stride;
        shapes.push_back({1, size, size, layer.channels});
        scales.push_back(own.out_scale);
        const auto weights = builder.constant_bytes(
            layer.name + "/weights", ElementType::uint8,
            {layer.depthwise ? 1 : layer.channels, layer.kernel, layer.kernel,
             layer.depthwise ? layer.channels : source[3]},
            own.weights, model::per_tensor(own.weight_scale, own.weight_zero));
        const auto bias = builder.constant<std::int32_t>(
            layer.name + "/bias", ElementType::int32, {layer.channels}, own.biases,
            model::per_tensor(scales[layer.source] * own.weight_scale, 0));
        const auto out = builder.tensor(
            layer.output ? tensor_of(compiled, compiled.outputs[*layer.output]).name : layer.name,
            ElementType::uint8, shapes.back(), model::per_tensor(own.out_scale, own.out_zero));
        if (layer.depthwise)
            builder.add(model::Op::depthwise_conv_2d, {tensors[layer.source], weights, bias}, {out},
                        model::DepthwiseConv2dOptions{.stride_h = layer.stride,
                                                      .stride_w = layer.stride,
                                                      .depth_multiplier = 1,
                                                      .activation = relu6});
        else
            builder.add(
                model::Op::conv_2d, {tensors[layer.source], weights, bias}, {out},
                model::Conv2dOptions{
                    .stride_h = layer.stride, .stride_w = layer.stride, .activation = relu6});
        tensors.push_back(out);
        if (layer.output) builder.output(out);
    }
    return builder.finish().value();
}

/// Of the sizes that the architecture asks for: to find out where a compiled file has its own.
Numbers any_numbers(const Architecture& layers, const model::Subgraph& compiled) {
    Numbers numbers(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const Layer& layer = layers[i];
        const std::int32_t ins = layer.depthwise ? 1
                                 : layer.source == 0
                                     ? tensor_of(compiled, compiled.inputs[0]).shape[3]
                                     : layers[layer.source - 1].channels;
        numbers[i].weights.resize(
            static_cast<std::size_t>(layer.kernel * layer.kernel * ins * layer.channels));
        numbers[i].biases.assign(static_cast<std::size_t>(layer.channels), 1);
    }
    return numbers;
}

/// The numbers next to one.
std::vector<float> around(float value) {
    std::vector<float> all;
    for (int step = -8; step <= 8; ++step)
        all.push_back(std::bit_cast<float>(std::bit_cast<std::int32_t>(value) + step));
    return all;
}

/// Scales that give every multiplier and limit to the last bit. Many do; the file has those of its
/// inputs and outputs, which are `known`.
class ScaleSearch {
  public:
    ScaleSearch(const Architecture& layers, Numbers& numbers, const model::Subgraph& compiled)
        : layers_(layers), numbers_(numbers), compiled_(compiled) {}

    bool run() {
        const auto& input = tensor_of(compiled_, compiled_.inputs[0]);
        return readers(0, input.quantization->scale[0]);
    }

  private:
    /// Of all layers that read the tensor.
    bool readers(std::size_t tensor, float scale) {
        for (std::size_t i = 0; i < layers_.size(); ++i)
            if (layers_[i].source == tensor && !layer(i, scale)) return false;
        return true;
    }

    bool layer(std::size_t i, float in_scale) {
        LayerNumbers& own = numbers_[i];
        const auto output = layers_[i].output;
        const auto outs = output
                              ? tensor_of(compiled_, compiled_.outputs[*output]).quantization->scale
                              : around(6 / own.limits.max);
        for (const float out : outs) {
            if (clamp_limits(out, own.out_zero, 0, 255, ActivationLimits::relu6) != own.limits)
                continue;
            const auto weights = around(own.multiplier * out / in_scale);
            const auto exact = std::ranges::find_if(weights, [&](float scale) {
                return layer_multiplier(in_scale, scale, out) == own.multiplier;
            });
            if (exact == weights.end()) continue;
            own.weight_scale = *exact;
            own.out_scale = out;
            if (readers(i + 1, out)) return true;
        }
        return false;
    }

    const Architecture& layers_;
    Numbers& numbers_;
    const model::Subgraph& compiled_;
};

float real(const Instruction& instruction, std::string_view field) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(instruction.value(field).value()));
}
std::int32_t number(const Instruction& instruction, std::string_view field) {
    return static_cast<std::int32_t>(instruction.value(field).value());
}

/// The compiled file's numbers.
void read_numbers(const Architecture& layers, const model::Model& compiled, Numbers& numbers) {
    const auto plain = plain_model(layers, compiled.subgraphs.front(), numbers);
    const auto opened = CompiledParameters::open(plain, compiled);
    ASSERT_TRUE(opened) << opened.error().message();
    const auto recovered = recover_program(*opened);
    ASSERT_TRUE(recovered) << recovered.error().message();
    EXPECT_TRUE(recovered->parameters.placement().unexplained.empty());
    const auto arrays = recovered->parameters.get();
    ASSERT_TRUE(arrays) << arrays.error().message();
    ASSERT_EQ(arrays->size(), 2 * layers.size());
    for (const auto& [name, array] : *arrays) {
        const auto slash = name.rfind('/');
        const auto layer = std::ranges::find(layers, name.substr(0, slash), &Layer::name);
        ASSERT_NE(layer, layers.end()) << name;
        LayerNumbers& own = numbers[static_cast<std::size_t>(layer - layers.begin())];
        const MutableBytes to = name.substr(slash) == "/weights"
                                    ? MutableBytes(own.weights)
                                    : std::as_writable_bytes(std::span(own.biases));
        ASSERT_EQ(array.data.size(), to.size()) << name;
        std::ranges::copy(array.data, to.begin());
    }
    const auto roles = requantisations(plain, opened->on_chip(), opened->parts());
    std::set<std::size_t> held;
    for (const MatchedInstruction& one : recovered->program) {
        const std::size_t op = roles[one.role].op;  // operators are in the layers' order
        const Instruction& mac = one.at.instruction;
        LayerNumbers& own = numbers[op];
        own.multiplier = real(mac, "scale");
        own.limits = {real(mac, "clamp_min"), real(mac, "clamp_max")};
        own.weight_zero = number(mac, "par_zero");
        own.out_zero = number(mac, "out_zero");
        held.insert(op);
    }
    ASSERT_EQ(held.size(), layers.size());
}

model::Model segment(const std::filesystem::path& shared, unsigned number) {
    const auto name = fmt::format(
        "data/models/ssd_mobilenet_v1_coco_quant_postprocess_segment_{}_of_2_edgetpu.tflite",
        number);
    return test::load_model(shared / name);
}

TEST(SsdSegment, FeaturesAreThoseOfTheArchitectureWithTheFilesNumbers) {
    REEF_SHARED_OR_SKIP(shared);
    const auto compiled = segment(shared, 0);
    const auto& graph = compiled.subgraphs.front();
    const auto layers = feature_extractor();
    ASSERT_EQ(layers.size(), 27U);
    Numbers numbers = any_numbers(layers, graph);
    read_numbers(layers, compiled, numbers);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(ScaleSearch(layers, numbers, graph).run());
    const auto plain = plain_model(layers, graph, numbers);
    auto sessions = test::open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    auto& [cpu, chip] = *sessions;
    for (const unsigned seed : {1U, 2U, 3U}) {
        test::draw_inputs(cpu, chip, seed);
        ASSERT_TRUE(cpu.run());
        const auto ran = chip.run();
        ASSERT_TRUE(ran) << ran.error().message();
        EXPECT_GT(test::expect_equal_compiled_tensors(chip, cpu), 50U) << "few different values";
    }
}

}  // namespace
}  // namespace reef::edgetpu
