// Compiled models without a plain one: the two parts of a detector cut for two chips. Their plain
// models are built from the published architecture (SSD on MobileNet v1) with the numbers that the
// compiled files hold: weights and biases out of the parameter blobs, scales, limits and zero
// points out of the instructions' fields. The CPU floor computes them in the chip's arithmetic;
// every byte that the simulated programs give must be the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "edgetpu/retarget/other_numbers.h"
#include "edgetpu/retarget/template_recovery.h"
#include "reef/edgetpu/device/program_layers.h"
#include "reef/edgetpu/layer_dump.h"
#include "reef/edgetpu/retarget.h"
#include "reef/model/builder.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using model::TensorIndex;

/// A convolution of the published architecture.
struct Layer {
    std::string name;
    std::size_t source = 0;  ///< index; the model's inputs come first, then the layers
    bool depthwise = false;
    std::int32_t kernel = 1, stride = 1, channels = 0;
    model::Activation activation = model::Activation::relu6;
    std::optional<std::size_t> output = {};  ///< of the compiled operator
    std::optional<std::size_t> head = {};    ///< that it predicts for
};

/// Predictions for all boxes, one after another: those of its layers.
struct Head {
    std::string name;
    std::size_t output = 0;   ///< of the compiled operator
    std::int32_t values = 0;  ///< of a box
    bool logistic = false;
};

struct Architecture {
    std::size_t inputs = 1;
    std::vector<Layer> layers;
    std::vector<Head> heads;
};

/// MobileNet v1, all of it but the classifier. The detector reads two of its tensors.
Architecture feature_extractor() {
    struct Block {
        std::int32_t stride, channels;
    };
    constexpr Block blocks[] = {{1, 64},  {2, 128},  {1, 128}, {2, 256}, {1, 256},
                                {2, 512}, {1, 512},  {1, 512}, {1, 512}, {1, 512},
                                {1, 512}, {2, 1024}, {1, 1024}};
    std::vector<Layer> layers = {{"conv0", 0, false, 3, 2, 32}};
    for (const auto [stride, channels] : blocks) {
        const std::size_t number = layers.size() / 2 + 1;
        layers.push_back({fmt::format("depthwise{}", number), layers.size(), true, 3, stride,
                          layers.back().channels});
        layers.push_back(
            {fmt::format("pointwise{}", number), layers.size(), false, 1, 1, channels});
        if (number == 11) layers.back().output = 0;
        if (number == 13) layers.back().output = 1;
    }
    return {1, std::move(layers), {}};
}

/// The rest of the detector: four more pairs of convolutions behind the second input, and on the
/// inputs and each pair a 1x1 convolution for places of boxes and one for scores.
Architecture box_predictor() {
    struct Map {
        std::size_t source;
        std::int32_t boxes;
    };
    constexpr std::pair<std::int32_t, std::int32_t> pairs[] = {
        {256, 512}, {128, 256}, {128, 256}, {64, 128}};
    constexpr std::int32_t classes = 91;
    std::vector<Layer> layers;
    std::vector<Map> maps = {{0, 3}, {1, 6}};
    for (const auto& [narrow, wide] : pairs) {
        const std::size_t number = maps.size();
        layers.push_back(
            {fmt::format("narrow{}", number), maps.back().source, false, 1, 1, narrow});
        layers.push_back({fmt::format("wide{}", number), layers.size() + 1, false, 3, 2, wide});
        maps.push_back({layers.size() + 1, 6});
    }
    for (const auto [source, boxes] : maps) {
        using model::Activation::none;
        layers.push_back(
            {fmt::format("boxes{}", source), source, false, 1, 1, boxes * 4, none, {}, 0});
        layers.push_back(
            {fmt::format("scores{}", source), source, false, 1, 1, boxes * classes, none, {}, 1});
    }
    return {2, std::move(layers), {{"places", 0, 4, false}, {"scores", 1, classes, true}}};
}

/// What a compiled file holds of a layer.
struct LayerNumbers {
    std::vector<std::byte> weights;
    std::vector<std::int32_t> biases;
    float multiplier = 1;
    std::optional<float> head_multiplier = {};  ///< where the head has another scale
    ClampLimits limits;
    std::int32_t weight_zero = 0, out_zero = 0;
    // Not in the file: scales of weights and results that give its multipliers and limits.
    float weight_scale = 1, out_scale = 1;
};

/// All predictions of a head have one quantisation.
struct HeadNumbers {
    float scale = 1;
    std::int32_t zero = 0;
};

struct Numbers {
    std::vector<LayerNumbers> layers;
    std::vector<HeadNumbers> heads;
};

const model::Tensor& tensor_of(const model::Subgraph& graph, TensorIndex index) {
    return graph.tensors[static_cast<std::size_t>(index)];
}

/// Output of the compiled operator, of which there is one.
TensorIndex output_index(const model::Subgraph& compiled, std::size_t output) {
    return std::ranges::find_if(compiled.operators, is_compiled)->outputs[output];
}
const model::Tensor& output_of(const model::Subgraph& compiled, std::size_t output) {
    return tensor_of(compiled, output_index(compiled, output));
}

/// The architecture's layers that predict for the head, in order.
std::vector<std::size_t> predictors(const Architecture& net, std::size_t head) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < net.layers.size(); ++i)
        if (net.layers[i].head == head) all.push_back(i);
    return all;
}

/// The plain model of the architecture, with the compiled one's inputs and outputs. Operators are
/// the layers, then for every head its RESHAPEs, CONCATENATION and LOGISTIC.
class PlainModel {
  public:
    PlainModel(const Architecture& net, const model::Model& compiled, const Numbers& numbers)
        : net_(net), model_(compiled), compiled_(model_.subgraphs.front()), numbers_(numbers) {}

    model::Model build() {
        for (std::size_t i = 0; i < net_.inputs; ++i) {
            const auto& in = tensor_of(compiled_, compiled_.inputs[i]);
            known_.push_back({builder_.input(in.name, in.type, in.shape, in.quantization.value()),
                              in.shape, in.quantization->scale[0]});
        }
        for (std::size_t i = 0; i < net_.layers.size(); ++i)
            add_layer(net_.layers[i], numbers_.layers[i]);
        for (std::size_t i = 0; i < net_.heads.size(); ++i)
            add_head(i, net_.heads[i], numbers_.heads[i]);
        add_operators_behind();
        return builder_.finish().value();
    }

  private:
    struct Known {
        TensorIndex tensor;
        std::vector<std::int32_t> shape;
        float scale;
    };

    void add_layer(const Layer& layer, const LayerNumbers& own) {
        const Known source = known_[layer.source];
        const std::int32_t size = (source.shape[1] + layer.stride - 1) / layer.stride;
        const std::vector<std::int32_t> shape = {1, size, size, layer.channels};
        const auto weights = builder_.constant_bytes(
            layer.name + "/weights", ElementType::uint8,
            {layer.depthwise ? 1 : layer.channels, layer.kernel, layer.kernel,
             layer.depthwise ? layer.channels : source.shape[3]},
            own.weights, model::per_tensor(own.weight_scale, own.weight_zero));
        const auto bias = builder_.constant<std::int32_t>(
            layer.name + "/bias", ElementType::int32, {layer.channels}, own.biases,
            model::per_tensor(source.scale * own.weight_scale, 0));
        const auto out = layer.output
                             ? same(output_index(compiled_, *layer.output))
                             : builder_.tensor(layer.name, ElementType::uint8, shape,
                                               model::per_tensor(own.out_scale, own.out_zero));
        if (layer.depthwise)
            builder_.add(model::Op::depthwise_conv_2d, {source.tensor, weights, bias}, {out},
                         model::DepthwiseConv2dOptions{.stride_h = layer.stride,
                                                       .stride_w = layer.stride,
                                                       .depth_multiplier = 1,
                                                       .activation = layer.activation});
        else
            builder_.add(model::Op::conv_2d, {source.tensor, weights, bias}, {out},
                         model::Conv2dOptions{.stride_h = layer.stride,
                                              .stride_w = layer.stride,
                                              .activation = layer.activation});
        known_.push_back({out, shape, own.out_scale});
    }

    void add_head(std::size_t index, const Head& head, const HeadNumbers& own) {
        std::vector<TensorIndex> parts;
        std::int32_t boxes = 0;
        for (const std::size_t i : predictors(net_, index)) {
            const Known& from = known_[net_.inputs + i];
            const std::int32_t count = from.shape[1] * from.shape[2] * from.shape[3] / head.values;
            const std::vector<std::int32_t> shape = {1, count, head.values};
            parts.push_back(
                builder_.tensor(net_.layers[i].name + "/list", ElementType::uint8, shape,
                                model::per_tensor(from.scale, numbers_.layers[i].out_zero)));
            builder_.add(model::Op::reshape, {from.tensor}, {parts.back()},
                         model::ReshapeOptions{shape});
            boxes += count;
        }
        const auto out = same(output_index(compiled_, head.output));
        const auto all =
            head.logistic ? builder_.tensor(head.name, ElementType::uint8, {1, boxes, head.values},
                                            model::per_tensor(own.scale, own.zero))
                          : out;
        builder_.add(model::Op::concatenation, parts, {all},
                     model::ConcatenationOptions{.axis = 1});
        if (head.logistic) builder_.add(model::Op::logistic, {all}, {out});
    }

    /// The compiled model's tensor, taken over.
    TensorIndex same(TensorIndex index) {
        const auto [found, is_new] = taken_.try_emplace(index, model::absent_tensor);
        if (!is_new) return found->second;
        const auto& tensor = tensor_of(compiled_, index);
        const Bytes data = model_.constant(tensor);
        const auto quantization = tensor.quantization.value_or(model::Quantization{});
        found->second = data.empty()
                            ? builder_.tensor(tensor.name, tensor.type, tensor.shape, quantization)
                            : builder_.constant_bytes(tensor.name, tensor.type, tensor.shape, data,
                                                      quantization);
        return found->second;
    }
    std::vector<TensorIndex> same(const std::vector<TensorIndex>& tensors) {
        std::vector<TensorIndex> all;
        for (const TensorIndex index : tensors) all.push_back(same(index));
        return all;
    }

    /// What the compiled model leaves to the CPU.
    void add_operators_behind() {
        for (const auto& op : compiled_.operators) {
            if (is_compiled(op)) continue;
            if (op.code.builtin == model::Op::custom)
                builder_.add_custom(op.code.custom, same(op.inputs), same(op.outputs),
                                    op.custom_options.view());
            else
                builder_.add(op.code.builtin, same(op.inputs), same(op.outputs), op.options);
        }
        for (const TensorIndex out : same(compiled_.outputs)) builder_.output(out);
    }

    const Architecture& net_;
    const model::Model& model_;
    const model::Subgraph& compiled_;
    const Numbers& numbers_;
    model::Builder builder_{"rebuilt"};
    std::map<TensorIndex, TensorIndex> taken_;  ///< by the compiled model's
    std::vector<Known> known_;                  ///< inputs and layers
};

/// Of the sizes that the architecture asks for: to find out where a compiled file has its own.
Numbers any_numbers(const Architecture& net, const model::Subgraph& compiled) {
    Numbers numbers;
    for (const Layer& layer : net.layers) {
        const std::int32_t ins = layer.depthwise ? 1
                                 : layer.source < net.inputs
                                     ? tensor_of(compiled, compiled.inputs[layer.source]).shape[3]
                                     : net.layers[layer.source - net.inputs].channels;
        LayerNumbers& own = numbers.layers.emplace_back();
        own.weights.resize(
            static_cast<std::size_t>(layer.kernel * layer.kernel * ins * layer.channels));
        own.biases.assign(static_cast<std::size_t>(layer.channels), 1);
    }
    for (const Head& head : net.heads) {
        const auto& out = output_of(compiled, head.output).quantization;
        numbers.heads.push_back({out->scale[0], static_cast<std::int32_t>(out->zero_point[0])});
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
/// inputs, outputs and heads.
class ScaleSearch {
  public:
    ScaleSearch(const Architecture& net, Numbers& numbers, const model::Subgraph& compiled)
        : net_(net), numbers_(numbers), compiled_(compiled) {}

    bool run() {
        for (std::size_t i = 0; i < net_.inputs; ++i) {
            const auto& input = tensor_of(compiled_, compiled_.inputs[i]);
            if (!readers(i, input.quantization->scale[0])) return false;
        }
        return true;
    }

  private:
    /// Of all layers that read the tensor.
    bool readers(std::size_t tensor, float scale) {
        for (std::size_t i = 0; i < net_.layers.size(); ++i)
            if (net_.layers[i].source == tensor && !layer(i, scale)) return false;
        return true;
    }

    /// That a layer's result may have.
    std::vector<float> out_scales(const Layer& layer, const LayerNumbers& own) const {
        if (layer.output) return output_of(compiled_, *layer.output).quantization->scale;
        if (!layer.head) return around(6 / own.limits.max);
        const float head = numbers_.heads[*layer.head].scale;
        if (!own.head_multiplier) return {head};
        auto scales = around(*own.head_multiplier * head);
        std::erase_if(scales,
                      [&](float scale) { return scale * (1.0F / head) != *own.head_multiplier; });
        return scales;
    }

    bool layer(std::size_t i, float in_scale) {
        LayerNumbers& own = numbers_.layers[i];
        const auto activation = net_.layers[i].activation == model::Activation::relu6
                                    ? ActivationLimits::relu6
                                    : ActivationLimits::none;
        for (const float out : out_scales(net_.layers[i], own)) {
            if (clamp_limits(out, own.out_zero, 0, 255, activation) != own.limits) continue;
            const auto weights = around(own.multiplier * out / in_scale);
            const auto exact = std::ranges::find_if(weights, [&](float scale) {
                return layer_multiplier(in_scale, scale, out) == own.multiplier;
            });
            if (exact == weights.end()) continue;
            own.weight_scale = *exact;
            own.out_scale = out;
            if (readers(net_.inputs + i, out)) return true;
        }
        return false;
    }

    const Architecture& net_;
    Numbers& numbers_;
    const model::Subgraph& compiled_;
};

float real(const Instruction& instruction, std::string_view field) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(instruction.value(field).value()));
}
std::int32_t number(const Instruction& instruction, std::string_view field) {
    return static_cast<std::int32_t>(instruction.value(field).value());
}

/// Those of the parameter blob.
void read_arrays(const Architecture& net, const Recovered& recovered, Numbers& numbers) {
    const auto arrays = recovered.parameters.get();
    ASSERT_TRUE(arrays) << arrays.error().message();
    ASSERT_EQ(arrays->size(), 2 * net.layers.size());
    for (const auto& [name, array] : *arrays) {
        const auto slash = name.rfind('/');
        const auto layer = std::ranges::find(net.layers, name.substr(0, slash), &Layer::name);
        ASSERT_NE(layer, net.layers.end()) << name;
        LayerNumbers& own = numbers.layers[static_cast<std::size_t>(layer - net.layers.begin())];
        const MutableBytes to = name.substr(slash) == "/weights"
                                    ? MutableBytes(own.weights)
                                    : std::as_writable_bytes(std::span(own.biases));
        ASSERT_EQ(array.data.size(), to.size()) << name;
        std::ranges::copy(array.data, to.begin());
    }
}

/// Which predictor a CONCATENATION's role is for: it has one for each, in order.
std::size_t predictor_of(const Architecture& net, std::size_t head,
                         const std::vector<Requantisation>& roles, std::size_t role) {
    const auto first = std::ranges::find(roles, roles[role].op, &Requantisation::op);
    return predictors(net, head).at(role - static_cast<std::size_t>(first - roles.begin()));
}

/// What an instruction holds of an operator behind the layers.
void read_head_instruction(const Architecture& net, const model::Model& plain,
                           const std::vector<Requantisation>& roles, const MatchedInstruction& one,
                           Numbers& numbers) {
    const Instruction& mac = one.at.instruction;
    const std::size_t op = roles[one.role].op;
    const auto& operators = plain.subgraphs.front().operators;
    const auto heads_before =
        std::ranges::count_if(std::span(operators).first(op), [](const model::Operator& before) {
            return before.code.builtin == model::Op::concatenation;
        });
    switch (operators[op].code.builtin) {
        case model::Op::logistic:
            numbers.heads[static_cast<std::size_t>(heads_before) - 1] = {real(mac, "scale"),
                                                                         number(mac, "in_zero")};
            break;
        case model::Op::concatenation:
            numbers
                .layers[predictor_of(net, static_cast<std::size_t>(heads_before), roles, one.role)]
                .head_multiplier = real(mac, "scale");
            break;
        default:
            ADD_FAILURE() << "an instruction of " << model::place_of(plain.subgraphs.front(), op);
    }
}

/// The compiled file's numbers.
void read_numbers(const Architecture& net, const model::Model& compiled, Numbers& numbers) {
    const auto plain = PlainModel(net, compiled, numbers).build();
    const auto opened = CompiledParameters::open(plain, compiled, PartSearch::by_bytes);
    ASSERT_TRUE(opened) << opened.error().message();
    const auto flow = program_flow(*opened);
    ASSERT_TRUE(flow) << flow.error().message();
    const auto recovered = recover_program(*opened, *flow);
    ASSERT_TRUE(recovered) << recovered.error().message();
    EXPECT_TRUE(recovered->parameters.placement().unexplained.empty());
    ASSERT_NO_FATAL_FAILURE(read_arrays(net, *recovered, numbers));
    const auto roles = requantisations(plain, opened->on_chip(), opened->parts());
    std::set<std::size_t> held;
    for (const MatchedInstruction& one : recovered->program) {
        const std::size_t op = roles[one.role].op;
        if (op >= net.layers.size()) {
            read_head_instruction(net, plain, roles, one, numbers);
            continue;
        }
        const Instruction& mac = one.at.instruction;
        LayerNumbers& own = numbers.layers[op];
        own.multiplier = real(mac, "scale");
        own.limits = {real(mac, "clamp_min"), real(mac, "clamp_max")};
        own.weight_zero = number(mac, "par_zero");
        own.out_zero = number(mac, "out_zero");
        held.insert(op);
    }
    ASSERT_EQ(held.size(), net.layers.size());
}

model::Model segment(const std::filesystem::path& shared, unsigned number) {
    const auto name = fmt::format(
        "data/models/ssd_mobilenet_v1_coco_quant_postprocess_segment_{}_of_2_edgetpu.tflite",
        number);
    return test::load_model(shared / name);
}

/// The plain model of the segment with the compiled one's numbers.
std::optional<model::Model> rebuilt(const model::Model& compiled, const Architecture& net) {
    const auto& graph = compiled.subgraphs.front();
    Numbers numbers = any_numbers(net, graph);
    read_numbers(net, compiled, numbers);
    if (testing::Test::HasFatalFailure()) return std::nullopt;
    EXPECT_TRUE(ScaleSearch(net, numbers, graph).run());
    return PlainModel(net, compiled, numbers).build();
}

/// Every byte on some pictures.
void expect_equal_outputs(const model::Model& plain, const model::Model& compiled,
                          std::initializer_list<unsigned> seeds) {
    auto sessions = test::open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    auto& [cpu, chip] = *sessions;
    for (const unsigned seed : seeds) {
        test::draw_inputs(cpu, chip, seed);
        ASSERT_TRUE(cpu.run());
        const auto ran = chip.run();
        ASSERT_TRUE(ran) << ran.error().message();
        EXPECT_GT(test::expect_equal_compiled_tensors(chip, cpu), 50U) << "few different values";
    }
}

/// Every byte of every convolution, as the program's own stores show it. Scores lie in rows that
/// are filled up to whole words.
void expect_equal_layers(const model::Model& plain, const model::Model& compiled) {
    auto sessions = test::open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    auto& [cpu, chip] = *sessions;
    test::draw_inputs(cpu, chip, 1);
    ASSERT_TRUE(cpu.run());
    ASSERT_TRUE(chip.run());
    const auto layers = edgetpu::program_layers(chip);
    ASSERT_TRUE(layers) << layers.error().message();
    const auto matches = match_layers(*layers, compiled, plain);
    ASSERT_TRUE(matches) << matches.error().message();
    for (const LayerMatch& match : *matches) {
        if (!match.comparable) continue;
        const auto& tensor = tensor_of(plain.subgraphs.front(), match.tensor);
        const Array mine = tensor_like((*layers)[match.layer], tensor, match.row);
        EXPECT_TRUE(std::ranges::equal(mine.data, cpu.tensor(match.tensor))) << tensor.name;
    }
    // Which leaves no convolution out.
    const auto left = operators_without_layer(*matches, compiled, plain);
    ASSERT_TRUE(left) << left.error().message();
    EXPECT_TRUE(left->empty()) << left->size() << " convolutions";
}

/// Every byte of the parameters and every instruction is the plain model's.
void expect_compiled_from(const model::Model& plain, const model::Model& compiled) {
    const auto opened = CompiledParameters::open(plain, compiled);
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_TRUE(opened->placement().complete());
    const auto again = retarget(compiled, plain, {});
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->changed_instructions + again->changed_parameter_bytes, 0U);
}

struct Proven {
    model::Model compiled, plain;
};
/// A segment and its plain model: every byte of the parameters, the program and the outputs.
std::optional<Proven> proven(const std::filesystem::path& shared, unsigned number,
                             const Architecture& net) {
    auto compiled = segment(shared, number);
    auto plain = rebuilt(compiled, net);
    if (!plain) return std::nullopt;
    expect_compiled_from(*plain, compiled);
    expect_equal_outputs(*plain, compiled, {1, 2, 3});
    return Proven{std::move(compiled), std::move(*plain)};
}

TEST(SsdSegment, FeaturesAreThoseOfTheArchitectureWithTheFilesNumbers) {
    REEF_SHARED_OR_SKIP(shared);
    const auto net = feature_extractor();
    ASSERT_EQ(net.layers.size(), 27U);
    ASSERT_TRUE(proven(shared, 0, net));
}

TEST(SsdSegment, PredictionsAreThoseOfTheArchitectureWithTheFilesNumbers) {
    REEF_SHARED_OR_SKIP(shared);
    const auto net = box_predictor();
    ASSERT_EQ(net.layers.size(), 20U);
    const auto both = proven(shared, 1, net);
    ASSERT_TRUE(both);
    const auto& [compiled, plain] = *both;
    expect_equal_layers(plain, compiled);
    // The same program with other numbers.
    const auto target = test::with_other_numbers(plain, 1, test::Change::slight);
    const auto with = retarget(compiled, plain, target, {});
    ASSERT_TRUE(with) << with.error().message();
    const auto without = retarget(compiled, target, {});
    ASSERT_TRUE(without) << without.error().message();
    EXPECT_EQ(with->model, without->model);
    EXPECT_GT(with->changed_parameter_bytes, 0U);
    expect_equal_outputs(target, with->model, {4});
}

}  // namespace
}  // namespace reef::edgetpu
