// What the compiler does besides its main job: options, passes that are left out or printed,
// threads, cancelling, refusals, and the ways that it takes when a network does not fit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <span>
#include <thread>

#include "compiler/random_network.h"
#include "edgetpu/compiler/island_network.h"
#include "edgetpu/compiler/outcome.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef {
namespace {

TEST(Compile, EqualModelsGiveEqualBytesOnAnyThread) {
    const auto model = test::random_network(7);
    const auto bytes = [&] {
        const auto compiled = edgetpu::compile(model, {});
        return compiled ? model::write_tflite(compiled->model).value() : std::vector<std::byte>{};
    };
    const auto once = bytes();
    ASSERT_FALSE(once.empty());
    std::vector<std::vector<std::byte>> again(4);
    std::vector<std::jthread> threads;
    for (auto& one : again) threads.emplace_back([&] { one = bytes(); });
    threads.clear();
    for (const auto& one : again) EXPECT_TRUE(one == once);
}

TEST(Compile, EndsWhenItIsCancelled) {
    std::atomic<bool> cancelled = false;
    edgetpu::CompileOptions options{.cancelled = &cancelled};
    std::vector<std::string> passes;
    options.progress = [&](std::string_view pass) {
        passes.emplace_back(pass);
        cancelled = pass == "windows";
    };
    const auto compiled = edgetpu::compile(test::random_network(7), options);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().cause, Cause::cancelled);
    EXPECT_EQ(passes.back(), "windows");
}

TEST(Compile, PrintsWhatEveryPassLeaves) {
    for (const auto pass : edgetpu::compiler_passes()) {
        const auto compiled =
            edgetpu::compile(test::random_network(7), {.print_after = std::string(pass)});
        ASSERT_TRUE(compiled) << compiled.error().message();
        EXPECT_FALSE(compiled->listing.empty()) << pass;
    }
    EXPECT_FALSE(edgetpu::compile(test::random_network(7), {.print_after = "sleep"}));
}

/// Its transfers take longer than the CPU.
TEST(Compile, IslandsThatCostMoreThanTheySaveAreLeftToTheCpu) {
    const auto model = test::island_network();
    const auto sparing = edgetpu::compile(model, {.most_programs = 2});
    const auto keeping = edgetpu::compile(model, {.most_programs = 2, .keep_islands = true});
    ASSERT_TRUE(sparing && keeping);
    EXPECT_EQ(keeping->programs.size(), 2U);
    ASSERT_EQ(sparing->programs.size(), 1U);
    EXPECT_NE(sparing->operators.back().reason.find("as a program of its own"), std::string::npos);
}

/// Convolutions of random weights behind one another.
class Chain {
  public:
    explicit Chain(std::vector<std::int32_t> shape) : shape_(std::move(shape)) {
        last_ = builder_.input("in", ElementType::uint8, shape_, numbers());
    }
    void conv(std::int32_t channels, std::int32_t side, std::int32_t stride = 1) {
        std::vector<std::int32_t> to{1, (shape_[1] + stride - 1) / stride,
                                     (shape_[2] + stride - 1) / stride, channels};
        std::vector<std::uint8_t> data(
            static_cast<std::size_t>(channels * side * side * shape_[3]));
        for (auto& byte : data) byte = static_cast<std::uint8_t>(random_());
        const auto weights = builder_.constant<std::uint8_t>(name(), ElementType::uint8,
                                                             {channels, side, side, shape_[3]},
                                                             data, model::per_tensor(0.005F, 128));
        add(model::Op::conv_2d, std::move(to), {weights},
            model::Conv2dOptions{
                model::Padding::same, stride, stride, 1, 1, model::Activation::none, {}});
    }
    /// Of the last result and others.
    void add(model::Op op, std::vector<std::int32_t> shape,
             const std::vector<model::TensorIndex>& others, model::Options options = {}) {
        const auto to = builder_.tensor(name(), ElementType::uint8, shape, numbers());
        std::vector<model::TensorIndex> from{last_};
        from.insert(from.end(), others.begin(), others.end());
        builder_.add(op, from, {to}, std::move(options));
        shape_ = std::move(shape);
        last_ = to;
    }
    [[nodiscard]] model::TensorIndex last() const { return last_; }
    model::TensorIndex order(const std::vector<std::int32_t>& axes) {
        return builder_.constant<std::int32_t>(name(), ElementType::int32,
                                               {static_cast<std::int32_t>(axes.size())}, axes);
    }
    model::Model finish() {
        builder_.output(last_);
        return builder_.finish().value();
    }

  private:
    static model::Quantization numbers() { return model::per_tensor(0.05F, 120); }
    std::string name() { return fmt::format("t{}", names_++); }
    model::Builder builder_{"chain"};
    std::mt19937 random_{3};
    std::vector<std::int32_t> shape_;
    model::TensorIndex last_ = 0;
    int names_ = 0;
};

/// Each makes this one faster: limits apart from a sum, halos, layers behind one another, an
/// input of many rows, and a small image of many channels.
model::Model with_work_for_every_pass() {
    Chain chain({1, 64, 64, 4});
    chain.conv(32, 3, 2);
    chain.add(model::Op::add, {1, 32, 32, 32}, {chain.last()}, model::AddOptions{});
    chain.add(model::Op::relu6, {1, 32, 32, 32}, {});
    chain.conv(64, 3, 2);
    chain.conv(64, 3, 2);
    chain.conv(256, 3, 2);
    chain.conv(512, 1);
    return chain.finish();
}

/// Each may be left out, alone or with others, and the bytes stay.
TEST(Compile, PassesThatMakeProgramsFasterMayBeLeftOut) {
    const auto model = with_work_for_every_pass();
    const auto gains = edgetpu::gains_of(model, {});
    ASSERT_TRUE(gains) << gains.error().message();
    const auto names = edgetpu::improvements();
    ASSERT_EQ(gains->size(), names.size() + 2);
    const edgetpu::Gain &all = gains->front(), &none = gains->back();
    EXPECT_EQ(all.without, "");
    for (std::size_t i = 0; i < names.size(); ++i) {
        SCOPED_TRACE(names[i]);
        const edgetpu::Gain& gain = (*gains)[i + 1];
        EXPECT_EQ(gain.without, names[i]);
        EXPECT_EQ(gain.operators, all.operators);
        EXPECT_GT(gain.cycles, all.cycles);
        EXPECT_LT(gain.cycles, none.cycles);
        const auto alone = edgetpu::compile(model, {.settings = {{"without", names[i]}}});
        ASSERT_TRUE(alone) << alone.error().message();
        EXPECT_EQ(alone->programs.front().cycles, gain.cycles);
        EXPECT_EQ(test::outcome_of(model, {.settings = {{"without", names[i]}}}).problem, "");
    }
    EXPECT_EQ(test::outcome_of(model, {.settings = {{"without", "halo,input"}}}).problem, "");
    EXPECT_EQ(edgetpu::compile(model, {.settings = {{"without", "sleep"}}}).error().cause,
              Cause::bad_argument);
}

/// What lies in the midst is too large, and the input is rearranged whole in front of it.
TEST(Compile, BandsInANetworksMidstGiveTheSameBytes) {
    Chain chain({1, 40, 40, 8});
    chain.add(model::Op::transpose, {1, 40, 40, 8}, {chain.order({0, 2, 1, 3})});
    chain.conv(128, 3);
    chain.conv(8, 3);
    const auto model = chain.finish();
    const auto whole = edgetpu::compile(model, {});
    ASSERT_TRUE(whole) << whole.error().message();
    constexpr std::size_t less = 16000;
    EXPECT_GT(whole->programs.front().narrow_bytes, less);
    const test::Outcome out = test::outcome_of(model, {.most_activation_bytes = less});
    EXPECT_EQ(out.on_chip, 3U);
    EXPECT_TRUE(out.problem.starts_with("finding: reads a second time")) << out.problem;
}

/// All products of a tile's part take four times its bytes. Both tensors are given, so that bands
/// do not make the part smaller.
TEST(Compile, ProductsThatDoNotFitAtOnceAreComputedInRows) {
    model::Builder builder("gate");
    const std::vector<std::int32_t> shape{1, 80, 80, 16};
    const auto in = builder.input("in", ElementType::uint8, shape, model::per_tensor(0.05F, 120));
    const auto gate =
        builder.tensor("gate", ElementType::uint8, shape, model::per_tensor(1.0F / 256, 0));
    const auto out = builder.tensor("out", ElementType::uint8, shape, model::per_tensor(0.04F, 9));
    builder.add(model::Op::logistic, {in}, {gate});
    builder.add(model::Op::mul, {in, gate}, {out}, model::MulOptions{});
    builder.output(gate);
    builder.output(out);
    const test::Outcome done =
        test::outcome_of(builder.finish().value(), {.most_activation_bytes = 40000});
    EXPECT_EQ(done.problem, "");
    EXPECT_EQ(done.on_chip, 2U);
}

/// Models that no file held.
TEST(Compile, RefusesModelsThatBreakARule) {
    const model::Model good = test::random_network(3);
    const auto refusal = [&](auto&& spoil) {
        model::Model bad = good;
        spoil(bad.subgraphs.front());
        const auto compiled = edgetpu::compile(bad, {});
        const auto mapped = edgetpu::mapping(bad, {});
        if (compiled || mapped) return std::string("none");
        EXPECT_EQ(compiled.error().cause, Cause::bad_input);
        EXPECT_EQ(mapped.error(), compiled.error());
        return compiled.error().message();
    };
    EXPECT_THAT(refusal([](model::Subgraph& g) { g.operators[0].inputs[0] = 9999; }),
                testing::HasSubstr("9999"));
    EXPECT_THAT(refusal([](model::Subgraph& g) { g.tensors[0].buffer = 9999; }),
                testing::HasSubstr("9999"));
    EXPECT_THAT(refusal([](model::Subgraph& g) { std::ranges::reverse(g.operators); }),
                testing::HasSubstr("no operator before it writes"));
}

/// A bias next to the least number of 32 bits: what the chip makes of the sum is not known.
TEST(Compile, LeavesSumsBeyond32BitsToTheCpu) {
    for (const std::int32_t bias : {2'147'400'000, -2'147'481'269}) {
        SCOPED_TRACE(bias);
        model::Builder b("sums");
        const auto numbers = model::per_tensor(0.05F, 120);
        const auto in = b.input("in", ElementType::uint8, {1, 8, 8, 4}, numbers);
        const auto sum = b.tensor("sum", ElementType::uint8, {1, 8, 8, 4}, numbers);
        const auto out = b.tensor("out", ElementType::uint8, {1, 8, 8, 4}, numbers);
        const auto weights = b.constant<std::uint8_t>("weights", ElementType::uint8, {1, 3, 3, 4},
                                                      std::vector<std::uint8_t>(36, 250),
                                                      model::per_tensor(0.01F, 3));
        const auto biases = b.constant<std::int32_t>("biases", ElementType::int32, {4},
                                                     std::vector<std::int32_t>{0, bias, 0, 0},
                                                     model::per_tensor(0.05F * 0.01F, 0));
        b.add(model::Op::add, {in, in}, {sum}, model::AddOptions{});
        b.add(model::Op::depthwise_conv_2d, {sum, weights, biases}, {out},
              model::DepthwiseConv2dOptions{.padding = model::Padding::same,
                                            .stride_h = 1,
                                            .stride_w = 1,
                                            .depth_multiplier = 1});
        b.output(out);
        const auto compiled = edgetpu::compile(b.finish().value(), {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        EXPECT_TRUE(compiled->operators[0].on_chip);
        EXPECT_EQ(compiled->operators[1].reason, "its sums may need more than 32 bits");
    }
}

TEST(Compile, LeavesGatesWithSumsBeyond32BitsToTheCpu) {
    model::Model model = test::random_recurrent_network(1);
    auto& graph = model.subgraphs.front();
    const auto lstm = std::ranges::find(graph.operators, model::Op::unidirectional_sequence_lstm,
                                        [](const auto& op) { return op.code.builtin; });
    ASSERT_NE(lstm, graph.operators.end());
    constexpr std::size_t forget_bias = 13;
    auto& tensor = graph.tensors[static_cast<std::size_t>(lstm->inputs[forget_bias])];
    const auto biases = static_cast<std::size_t>(*tensor.byte_count()) / sizeof(std::int32_t);
    const std::vector<std::int32_t> least(biases, std::numeric_limits<std::int32_t>::min());
    tensor.buffer = static_cast<std::uint32_t>(model.buffers.size());
    model.buffers.push_back(SharedBytes::copy_of(std::as_bytes(std::span(least))));
    const auto verdicts = edgetpu::mapping(model, {});
    ASSERT_TRUE(verdicts) << verdicts.error().message();
    EXPECT_EQ((*verdicts)[static_cast<std::size_t>(lstm - graph.operators.begin())].reason,
              "its sums may need more than 32 bits");
}

TEST(Compile, RefusesSettingsThatThereAreNot) {
    const auto model = test::random_network(3);
    const auto refused = edgetpu::compile(model, {.settings = {{"nosuch", "true"}}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, Cause::bad_argument);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("no setting 'nosuch'"));
    const auto none = edgetpu::compile_together({}, {});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().cause, Cause::bad_argument);
}

/// Three layers of 2048 x 2048: what the chip does not hold comes with every inference.
TEST(Compile, StreamsWhatIsBeyondTheChipsMemory) {
    constexpr std::int32_t units = 2048;
    std::mt19937 random(8);
    model::Builder builder("large");
    const auto numbers = model::per_tensor(0.05F, 3);
    auto at = builder.input("in", ElementType::int8, {1, units}, numbers);
    for (int layer = 0; layer < 3; ++layer) {
        std::vector<std::uint8_t> weights(std::size_t{units} * units);
        for (auto& weight : weights) weight = static_cast<std::uint8_t>(random() % 255 + 129);
        const std::vector<std::int32_t> biases(units, 40 * layer);
        const auto name = [layer](const char* what) { return fmt::format("{}{}", what, layer); };
        const auto w = builder.constant<std::uint8_t>(name("w"), ElementType::int8, {units, units},
                                                      weights, model::per_tensor(0.001F, 0));
        const auto b = builder.constant<std::int32_t>(name("b"), ElementType::int32, {units},
                                                      biases, model::per_tensor(0.05F * 0.001F, 0));
        const auto out = builder.tensor(name("t"), ElementType::int8, {1, units}, numbers);
        builder.add(model::Op::fully_connected, {at, w, b}, {out}, model::FullyConnectedOptions{});
        at = out;
    }
    builder.output(at);
    const auto plain = builder.finish().value();
    const test::Outcome done = test::outcome_of(plain);
    EXPECT_EQ(done.problem, "");
    EXPECT_EQ(done.on_chip, 3U);
    const auto compiled = edgetpu::compile(plain, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    std::size_t bytes = 0;
    const auto packages = edgetpu::packages_of(compiled->model).value();
    for (const auto& op : packages)
        for (const auto& executable : op.package.executables) bytes += executable.parameters.size();
    EXPECT_GT(bytes, std::size_t{3} * units * units);
}

/// Images of 640 x 640 in bands, products in rows, inputs in several pieces.
TEST(Compile, TakesWhatTheVendorTakesOfAnImageOf640) {
    REEF_SHARED_OR_SKIP(shared);
    const auto compiled = edgetpu::compile(
        test::load_model(shared / "data/edgetpu/wild/lite640__yolov8n_full_integer_quant.tflite"),
        {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    EXPECT_GE(std::ranges::count_if(compiled->operators, [](const auto& op) { return op.on_chip; }),
              230);
}

/// The input and what follows it in bands, layers in the midst in others, and the average of an
/// image of which a tile does not hold all channels.
TEST(Compile, TakesAllOfMobilenetOfAnImageOf672) {
    REEF_SHARED_OR_SKIP(shared);
    auto network = test::load_model(shared / "data/models/tf2_mobilenet_v2_1.0_224_ptq.tflite");
    for (auto& tensor : network.subgraphs.front().tensors) {
        const bool constant = !network.buffers[tensor.buffer].view().empty();
        if (constant || tensor.shape.size() != 4 || tensor.shape[1] == 1) continue;
        tensor.shape[1] *= 3;
        tensor.shape[2] *= 3;
    }
    const auto compiled = edgetpu::compile(network, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    for (const auto& op : compiled->operators) EXPECT_TRUE(op.on_chip) << op.reason;
    EXPECT_EQ(compiled->programs.size(), 1U);
}

/// The version that the programs of a compiled model ask for.
std::int32_t runtime_of(const model::Model& model) {
    for (const auto& op : model.subgraphs.front().operators)
        if (edgetpu::is_compiled(op)) return edgetpu::package_of(op).value().min_runtime_version;
    return 0;
}

model::Model one_copy(ElementType type) {
    model::Builder builder("copy");
    const std::vector<std::int32_t> shape{1, 8, 8, 16};
    const auto in = builder.input("in", type, shape, model::per_tensor(0.05F, 10));
    const auto out = builder.tensor("out", type, shape, model::per_tensor(0.05F, 10));
    builder.add(model::Op::relu, {in}, {out});
    builder.output(out);
    return builder.finish().value();
}

/// A runtime is asked for that is known to take what the program has.
TEST(Compile, RuntimeVersionsAreThoseThatAreAskedForWhereTheyAreEnough) {
    const auto with = [](const model::Model& model, const char* version,
                         edgetpu::CompileOptions options = {}) {
        options.settings["runtime_version"] = version;
        return edgetpu::compile(model, options);
    };
    const auto plain = one_copy(ElementType::uint8), is_signed = one_copy(ElementType::int8);
    EXPECT_EQ(runtime_of(edgetpu::compile(plain, {}).value().model), 14);
    for (const auto& version : edgetpu::runtime_versions())
        EXPECT_EQ(runtime_of(with(plain, version.c_str()).value().model), std::stoi(version));
    EXPECT_EQ(runtime_of(with(is_signed, "12").value().model), 12);
    const auto refused = with(is_signed, "11");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, Cause::unsupported);
    EXPECT_EQ(refused.error().what,
              "signed values of 'in' are known of runtime version 12 and newer ones, not of 11");
    const auto spilled = with(test::random_network(90), "13", {.settings = {{"spill", "always"}}});
    ASSERT_FALSE(spilled);
    EXPECT_NE(spilled.error().what.find("scratch memory"), std::string::npos);
    Chain chain({1, 8, 8, 16});
    chain.conv(16, 3);
    const auto streamed = with(chain.finish(), "10", {.stream_parameters = true});
    ASSERT_FALSE(streamed);
    EXPECT_NE(streamed.error().what.find("come with every inference"), std::string::npos);
    for (const char* none : {"9", "15", "13.5", ""})
        EXPECT_EQ(with(plain, none).error().cause, Cause::bad_argument) << none;
}

/// Two programs around an operator of the CPU, so that inner tensors are at borders, too.
model::Model two_programs_of(const std::vector<std::string>& names) {
    model::Builder builder("names");
    const std::vector<std::int32_t> shape{1, 8, 8, 16};
    const auto quantised = model::per_tensor(0.05F, 10);
    std::vector<model::TensorIndex> t{
        builder.input(names[0], ElementType::uint8, shape, quantised),
        builder.input(names[1], ElementType::uint8, shape, quantised)};
    const auto unit = model::per_tensor(1.0F / 128, 128);
    for (std::size_t i = 2; i < names.size(); ++i)
        t.push_back(builder.tensor(names[i], ElementType::uint8, shape, i == 2 ? quantised : unit));
    builder.add(model::Op::add, {t[0], t[1]}, {t[2]}, model::AddOptions{});
    builder.add(model::Op::l2_normalization, {t[2]}, {t[3]}, model::L2NormOptions{});
    builder.add(model::Op::relu6, {t[3]}, {t[4]});
    builder.output(t[4]);
    return builder.finish().value();
}

/// A program's layers are found by their names.
TEST(Compile, TensorsNeedNoNamesOfTheirOwn) {
    const edgetpu::CompileOptions both{.most_programs = 2, .keep_islands = true};
    for (const auto& names : std::vector<std::vector<std::string>>{
             {"a", "b", "c", "d", "a"}, {"a", "a", "a", "a", "a"}, {"", "", "", "", ""}}) {
        const auto model = two_programs_of(names);
        const test::Outcome out = test::outcome_of(model, both);
        EXPECT_EQ(out.problem + out.refusal, "");
        EXPECT_EQ(out.on_chip, 2U);
        const auto compiled = edgetpu::compile(model, both).value();
        EXPECT_EQ(compiled.programs.size(), 2U);
        const auto& graph = compiled.model.subgraphs.front();
        const auto& last = graph.tensors[static_cast<std::size_t>(graph.outputs[0])];
        EXPECT_EQ(last.name, names[0].empty() ? "tensor_4" : "a");
    }
}

TEST(Compile, RefusesWhatIsCompiledAlready) {
    const auto once = edgetpu::compile(test::random_network(7), {});
    ASSERT_TRUE(once) << once.error().message();
    const auto again = edgetpu::compile(once->model, {});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().cause, Cause::bad_input);
}

TEST(Compile, ModelsWithNothingForTheChipAreRefusedWithReasons) {
    model::Builder builder("float");
    const auto in = builder.input("in", ElementType::float32, {1, 4, 4, 4});
    const auto out = builder.tensor("out", ElementType::float32, {1, 4, 4, 4});
    builder.add(model::Op::logistic, {in}, {out});
    builder.output(out);
    const auto compiled = edgetpu::compile(builder.finish().value(), {});
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().cause, Cause::unsupported);
    EXPECT_NE(compiled.error().what.find("'in' is float32"), std::string::npos);
}

}  // namespace
}  // namespace reef
