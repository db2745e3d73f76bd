// The compiler's own words for layers of which an independent driver's words, or a real chip's
// results, are known: with that driver's constants, planned and written by this compiler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <span>

#include "reef/base/file.h"
#include "rk3588/captures.h"
#include "rk3588/compiler/lowering.h"
#include "rk3588/compiler/plan.h"
#include "rk3588/sim/machine.h"
#include "support/shared_data.h"

namespace reef::rk3588::lowering {
namespace {

using test::ConvolutionVector;

constexpr std::size_t body_words = 126;

/// That driver's constants: the upper 15 bits of the mantissa, and one more but for operands.
ScaleAndShift driver_scale(float multiplier, std::uint32_t more) {
    const auto bits = std::bit_cast<std::uint32_t>(multiplier);
    const std::uint32_t scale = ((bits >> 9) & 0x7fff) + more;
    return {static_cast<std::int32_t>(scale < 1 << 14 ? scale | 1 << 14 : scale),
            static_cast<std::int32_t>(141 - (bits >> 23))};
}

/// A layer, and where its tensors stand.
struct Layer {
    std::int32_t size = 0, channels = 0, out_size = 0, out_channels = 0, kernel = 1, stride = 1,
                 padding = 0;
    bool depthwise = false;
    std::uint32_t input = 0, output = 0, addend = 0, weights = 0, operands = 0;
    std::int32_t input_zero = 0, weight_zero = 0, zero = 0;  ///< int8 domain
    ScaleAndShift scale;
    std::optional<FusedSum> sum{};
};

/// The words of its tasks, addresses of the memory in them.
Result<Artifact> words_of(const Layer& layer) {
    model::Model model;
    model.subgraphs.emplace_back().operators.emplace_back();
    compiler::Graph graph;
    graph.model = &model;
    const auto value = [&](const char* name, std::int32_t size, std::int32_t channels) {
        graph.values.push_back({.name = name, .height = size, .width = size, .channels = channels});
    };
    value("in", layer.size, layer.channels);
    value("out", layer.out_size, layer.out_channels);
    value("addend", layer.out_size, layer.out_channels);
    compiler::Convolution conv;
    conv.depthwise = layer.depthwise;
    conv.window = {.kernel_h = layer.kernel,
                   .kernel_w = layer.kernel,
                   .stride_h = layer.stride,
                   .stride_w = layer.stride,
                   .top = layer.padding,
                   .left = layer.padding};
    graph.nodes.push_back({"CONV_2D", {0}, {1}, conv});
    const compiler::Program program;
    ConvolutionStep step;
    step.shape = shape_of(graph, graph.nodes[0], conv);
    step.task_channels = channels_of_task(step.shape);
    if (step.task_channels == 0) return fail(Cause::unsupported, "no plan of the buffer");
    step.pieces = pieces_of(step.shape, step.task_channels, Split::rows, 1);
    step.input_zero = layer.input_zero;
    step.weight_zero = layer.weight_zero;
    step.numbers.scale = layer.scale.scale;
    step.numbers.shift = layer.scale.shift;
    step.numbers.zero = layer.zero;
    step.weights = layer.weights;
    step.operands = layer.operands;
    step.sum = layer.sum;
    Plan plan;
    plan.graph = &graph;
    plan.program = &program;
    plan.steps.push_back({.node = 0, .inputs = {0}, .output = 1, .kind = step});
    plan.roots = {{0, 0}, {1, 0}, {2, 0}};
    plan.offsets = {layer.input, layer.output, layer.addend};
    return emit(plan);
}

Layer layer_of(ConvolutionVector& vector) {
    const auto number = [&](const char* key) {
        return static_cast<std::int32_t>(vector.layer.at(key));
    };
    const auto real = [&](const char* key) { return static_cast<float>(vector.layer.at(key)); };
    Layer layer{.size = number("h"),
                .channels = number("c"),
                .out_size = number("oh"),
                .out_channels = number("oc"),
                .kernel = number("k"),
                .stride = number("stride"),
                .padding = number("pad_top"),
                .depthwise = number("dw") != 0,
                .input = vector.find("input")->address,
                .output = vector.find("output")->address,
                .weights = vector.find("weights")->address,
                .operands = vector.find("biases")->address,
                .input_zero = number("izp") - 128,
                .weight_zero = number("wzp") - 128,
                .zero = number("ozp") - 128,
                .scale = driver_scale(real("isc") * real("wsc") / real("osc"), 1)};
    if (number("add") == 0) return layer;
    layer.addend = vector.find("addend")->address;
    layer.sum = FusedSum{2, number("azp") - 128,
                         driver_scale(real("asc") / (real("isc") * real("wsc")), 0), false};
    return layer;
}

/// Two constants of the driver that are no part of a layer: its padding's value, which it writes in
/// one byte but for cases of its own, and the channels without those that fill an atom.
std::map<RegisterIndex, std::uint32_t> driver_constants(const ConvolutionVector& vector) {
    const auto& layer = vector.layer;
    const auto channels = static_cast<std::uint32_t>(layer.at("c"));
    const auto zero = static_cast<std::int32_t>(layer.at("izp")) - 128;
    std::uint32_t padding = static_cast<std::uint32_t>(zero);
    if (layer.at("k") >= 3 && layer.at("izp") == 0) padding = 0xffff8080;
    if (layer.at("add") != 0) padding = 0xffffff80;
    return {{register_named("CNA_PAD_CON1"), padding},
            {register_named("CNA_DATA_SIZE1"),
             (channels - 1) << 16 | std::max(16U, (channels + 15) / 16 * 16)}};
}

void set_value(std::span<std::uint64_t> words, RegisterIndex index, std::uint32_t value) {
    constexpr std::uint64_t mask = std::uint64_t{0xffffffff} << first_value_bit;
    for (std::uint64_t& word : words)
        if ((word & ~mask) == register_word(index, 0)) word = register_word(index, value);
}

// All words of the bodies: values by formula, order, addresses, tiles and banks are the compiler's.
TEST(DriverWords, AreTheIndependentDriversWithItsConstants) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data/rknpu/conv_int8"));
    auto vectors = test::convolution_vectors();
    ASSERT_EQ(vectors.size(), 9U);
    std::size_t equal = 0, all = 0, tasks = 0;
    for (ConvolutionVector& vector : vectors) {
        auto made = words_of(layer_of(vector));
        ASSERT_TRUE(made) << vector.name << ": " << made.error().message();
        ASSERT_EQ(made->tasks.size(), vector.starts.size()) << vector.name;
        const auto& commands = *vector.find("regcmd");
        for (std::size_t t = 0; t < made->tasks.size(); ++t, ++tasks) {
            ASSERT_EQ(made->tasks[t].words, vector.starts[t].words);
            const auto mine =
                std::span(made->commands).subspan(made->tasks[t].first_word, body_words);
            for (const auto& [index, value] : driver_constants(vector))
                set_value(mine, index, value);
            for (std::size_t w = 0; w < body_words; ++w) {
                std::uint64_t theirs = 0;
                std::memcpy(&theirs,
                            commands.bytes.data() + (vector.starts[t].address - commands.address) +
                                w * sizeof theirs,
                            sizeof theirs);
                EXPECT_EQ(mine[w], theirs) << fmt::format("{} task {} word {}: {:#x} and {:#x}",
                                                          vector.name, t, w, mine[w], theirs);
                equal += mine[w] == theirs ? 1 : 0;
                ++all;
            }
        }
    }
    fmt::print("{} of {} words of {} tasks\n", equal, all, tasks);
    EXPECT_EQ(all, 1638U);
    EXPECT_EQ(equal, all);
}

std::vector<std::byte> captured(const std::filesystem::path& shared, const char* name) {
    const auto path = shared / "data/rknpu/captures/teflon_dw_c64_8x8_k3" / name;
    const auto contents = read_file(path.string());
    EXPECT_TRUE(contents) << path;
    return contents ? std::vector<std::byte>(contents->view().begin(), contents->view().end())
                    : std::vector<std::byte>{};
}

// The layer that a real chip computed, on its memory. The padding's byte is that of the capture.
TEST(DriverWords, OwnWordsGiveTheRealChipsBytes) {
    REEF_SHARED_OR_SKIP(shared);
    constexpr std::uint32_t commands = 0x50000;
    const Layer layer{.size = 8,
                      .channels = 64,
                      .out_size = 8,
                      .out_channels = 64,
                      .kernel = 3,
                      .padding = 1,
                      .depthwise = true,
                      .input = 0x10000,
                      .output = 0x40000,
                      .weights = 0x20000,
                      .operands = 0x30000,
                      .input_zero = 0x7e,
                      .weight_zero = -128,
                      .zero = 5 - 128,
                      .scale = {17675, 22}};
    auto made = words_of(layer);
    ASSERT_TRUE(made) << made.error().message();
    ASSERT_EQ(made->tasks.size(), 1U);
    set_value(made->commands, register_named("CNA_PAD_CON1"), 0x7e);
    auto in = captured(shared, "mesa-input-000-000.bin");
    auto weights = captured(shared, "mesa-weights-000-000.bin");
    auto biases = captured(shared, "mesa-biases-000-000.bin");
    const auto chip = captured(shared, "mesa-output-000-000.bin");
    std::vector<std::byte> out(4096);
    sim::Memory memory;
    ASSERT_TRUE(memory.add(layer.input, in));
    ASSERT_TRUE(memory.add(layer.weights, weights));
    ASSERT_TRUE(memory.add(layer.operands, biases));
    ASSERT_TRUE(memory.add(layer.output, out));
    ASSERT_TRUE(memory.add(commands, std::as_writable_bytes(std::span(made->commands))));
    sim::Machine machine(memory, {});
    const auto run = machine.run(commands, made->tasks[0].words);
    ASSERT_TRUE(run) << run.error().message();
    std::size_t equal = 0;
    for (std::size_t i = 0; i < out.size(); ++i) equal += out[i] == chip.at(i) ? 1 : 0;
    EXPECT_EQ(equal, 4096U);
}

}  // namespace
}  // namespace reef::rk3588::lowering
