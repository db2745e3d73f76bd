// What the arithmetic takes for granted, in the programs that the vendor's compiler made of
// the same models: which operators are on the chip, the factors and clamps of each, the tables.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "cpu/prepare/convolution.h"
#include "edgetpu/numerics/closest_ratio.h"
#include "edgetpu/numerics/forms.h"
#include "edgetpu/numerics/functions.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/requantisation.h"
#include "edgetpu/params/pairs.h"
#include "reef/edgetpu/compiled_parameters.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/operators.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

using edgetpu::Instruction;
using model::Activation;
using model::Op;

/// A plain model beside the program made of it.
struct Pair {
    std::string name;
    edgetpu::CompiledParameters parameters;
    std::vector<edgetpu::CompiledOperator> programs;  ///< holds the instructions' bytes
    std::vector<Instruction> instructions;
    NamedArrays arrays;  ///< what the parameter blobs hold

    [[nodiscard]] const model::Model& plain() const { return parameters.plain(); }
    [[nodiscard]] const model::Subgraph& graph() const { return plain().subgraphs[0]; }
};

Pair open_pair(const test::CompiledPair& files) {
    auto compiled = model::load_tflite(files.compiled).value();
    auto programs = edgetpu::packages_of(compiled).value();
    Pair pair{files.name,
              edgetpu::CompiledParameters::open(model::load_tflite(files.plain).value(),
                                                std::move(compiled))
                  .value(),
              std::move(programs),
              {},
              {}};
    for (const auto& program : pair.programs)
        for (const auto& executable : program.package.executables)
            for (const auto& stream : executable.bitstreams) {
                const auto decoded = edgetpu::decode(stream.instructions.view()).value();
                pair.instructions.insert(pair.instructions.end(), decoded.begin(), decoded.end());
            }
    pair.arrays = pair.parameters.get().value();
    return pair;
}

const std::vector<Pair>& pairs() {
    static const std::vector<Pair> all = [] {
        std::vector<Pair> opened;
        for (const test::CompiledPair& files : test::compiled_pairs())
            opened.push_back(open_pair(files));
        return opened;
    }();
    return all;
}

std::int32_t number(const Instruction& instruction, std::string_view field) {
    return static_cast<std::int32_t>(instruction.value(field).value());
}

float real(const Instruction& instruction, std::string_view field) {
    return std::bit_cast<float>(number(instruction, field));
}

/// What an instruction must hold, zero points in the uint8 domain.
struct Held {
    float scale = 1;
    FloatRequantisation requantise;
    std::int32_t out_zero = 0;
    std::int32_t initial = 0;
};

bool holds(const Instruction& instruction, const Held& held) {
    return instruction.info->find("clamp_max") != nullptr &&
           real(instruction, "scale") == held.scale &&
           real(instruction, "clamp_min") == held.requantise.min &&
           real(instruction, "clamp_max") == held.requantise.max &&
           number(instruction, "out_zero") == held.out_zero &&
           number(instruction, "initial") == held.initial;
}

std::int32_t chip_zero(ElementType type, std::int32_t zero_point) {
    return zero_point + (type == ElementType::int8 ? 128 : 0);
}

class CompiledModels : public testing::Test {
  protected:
    static Held held(float scale, Activation activation, const model::Tensor& output) {
        const auto requantise = float_requantisation(activation, output).value();
        return {scale, requantise, chip_zero(output.type, requantise.zero_point), 0};
    }

    /// Calls check(pair, index, operator) for the chip's operators of one kind; gives their number.
    template <typename Check>
    static std::size_t each(const std::vector<Op>& kinds, const Check& check) {
        std::size_t count = 0;
        for (const Pair& pair : pairs()) {
            for (std::size_t i = 0; i < pair.graph().operators.size(); ++i) {
                const model::Operator& op = pair.graph().operators[i];
                if (!pair.parameters.on_chip()[i]) continue;
                if (std::ranges::find(kinds, op.code.builtin) == kinds.end()) continue;
                SCOPED_TRACE(pair.name + ", " + model::place_of(pair.graph(), i));
                check(pair, OperatorView(pair.plain(), pair.graph(), i));
                ++count;
            }
        }
        return count;
    }

    static void expect_held(const Pair& pair, const Held& expected) {
        EXPECT_TRUE(std::ranges::any_of(
            pair.instructions, [&](const Instruction& one) { return holds(one, expected); }))
            << fmt::format("scale {} clamp {} to {} zero {} initial {}", expected.scale,
                           expected.requantise.min, expected.requantise.max, expected.out_zero,
                           expected.initial);
    }
};

TEST_F(CompiledModels, TheSameOperatorsAreOnTheChip) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(exists(shared));
    EXPECT_GT(pairs().size(), 15U);
    for (const Pair& pair : pairs()) {
        const std::vector<bool>& on_chip = pair.parameters.on_chip();
        const auto reasons = reasons_for_cpu(pair.plain(), pair.graph());
        ASSERT_EQ(reasons.size(), on_chip.size());
        for (std::size_t i = 0; i < reasons.size(); ++i)
            EXPECT_EQ(reasons[i].empty(), on_chip[i])
                << pair.name << ", " << model::place_of(pair.graph(), i) << ": " << reasons[i];
    }
}

/// Of spec/edgetpu/operators.xml: `seen` are those on the chip in some pair.
TEST_F(CompiledModels, SeenOperatorsAreThoseOfThePairs) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(exists(shared));
    auto files = test::compiled_pairs();
    for (auto& pair : test::wild_pairs()) files.push_back(std::move(pair));
    std::set<std::string> on_chip;
    for (const auto& file : files) {
        const auto parameters = edgetpu::CompiledParameters::open(
            model::load_tflite(file.plain).value(), model::load_tflite(file.compiled).value());
        ASSERT_TRUE(parameters) << file.name;
        const auto& operators = parameters->plain().subgraphs[0].operators;
        for (std::size_t i = 0; i < operators.size(); ++i)
            if (parameters->on_chip()[i])
                on_chip.insert(model::builtin_name(operators[i].code.builtin));
    }
    std::set<std::string> seen;
    for (const auto& one : edgetpu::operators())
        if (one.grade == edgetpu::OperatorGrade::seen) seen.emplace(one.name);
    EXPECT_EQ(on_chip, seen);
}

TEST_F(CompiledModels, LayersHaveTheirScalesAndClamps) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(exists(shared));
    std::size_t per_channel = 0;
    const std::size_t layers =
        each({Op::conv_2d, Op::depthwise_conv_2d, Op::fully_connected},
             [&](const Pair& pair, const OperatorView& op) {
                 const Op kind = op.op().code.builtin;
                 const auto read = kind == Op::conv_2d             ? read_conv_2d
                                   : kind == Op::depthwise_conv_2d ? read_depthwise_conv_2d
                                                                   : read_fully_connected;
                 const auto& rules = kind == Op::conv_2d             ? conv_2d_rules
                                     : kind == Op::depthwise_conv_2d ? depthwise_conv_2d_rules
                                                                     : fully_connected_rules;
                 const auto layer = read(op, &rules);
                 ASSERT_TRUE(layer) << layer.error().message();
                 const FloatStage& stage = *layer->float_stage;
                 const float first = stage.scales[0];
                 const bool equal =
                     std::ranges::all_of(stage.scales, [&](float s) { return s == first; });
                 expect_held(pair, {equal ? first : 1.0F, stage.requantise,
                                    chip_zero(layer->type, layer->output_zero), 0});
                 if (equal) return;
                 ++per_channel;
                 const auto array = std::ranges::find(pair.arrays, op.input(1).name + ":multiplier",
                                                      &NamedArrays::value_type::first);
                 ASSERT_NE(array, pair.arrays.end());
                 EXPECT_EQ(array->second.data,
                           std::vector(std::as_bytes(std::span(stage.scales)).begin(),
                                       std::as_bytes(std::span(stage.scales)).end()));
             });
    EXPECT_GT(layers, 200U);
    EXPECT_GT(per_channel, 50U);
}

TEST_F(CompiledModels, SumsHaveTheirWeightsOffsetAndScale) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(exists(shared));
    const std::size_t sums = each({Op::add}, [&](const Pair& pair, const OperatorView& op) {
        const auto a = per_tensor_parameters(op.input(0)).value();
        const auto b = per_tensor_parameters(op.input(1)).value();
        const auto out = per_tensor_parameters(op.output(0)).value();
        const Ratio ratio = closest_ratio(double{a.scale} / double{b.scale}, 32767);
        Held expected =
            held(float_scale(a.scale / static_cast<float>(ratio.numerator), out).value(),
                 op.options<model::AddOptions>().value().activation, op.output(0));
        expected.initial = -(chip_zero(op.input(0).type, a.zero_point) * ratio.numerator +
                             chip_zero(op.input(1).type, b.zero_point) * ratio.denominator);
        expect_held(pair, expected);
    });
    EXPECT_GT(sums, 20U);
}

TEST_F(CompiledModels, OtherOperatorsHaveTheirScalesAndClamps) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(exists(shared));
    const auto scale_of = [](const model::Tensor& tensor) {
        return per_tensor_parameters(tensor).value();
    };
    EXPECT_GT(each({Op::average_pool_2d},
                   [&](const Pair& pair, const OperatorView& op) {
                       const auto given = op.options<model::Pool2dOptions>().value();
                       const float share =
                           1.0F / static_cast<float>(given.filter_h * given.filter_w);
                       expect_held(pair, held(float_scale(scale_of(op.input(0)).scale * share,
                                                          scale_of(op.output(0)))
                                                  .value(),
                                              given.activation, op.output(0)));
                   }),
              4U);
    EXPECT_GT(each({Op::mul},
                   [&](const Pair& pair, const OperatorView& op) {
                       // A factor that is one number and makes the whole 1 costs no product.
                       if (op.input(1).element_count() == 1) return;
                       expect_held(pair, held(float_scale(scale_of(op.input(0)).scale *
                                                              scale_of(op.input(1)).scale,
                                                          scale_of(op.output(0)))
                                                  .value(),
                                              Activation::none, op.output(0)));
                   }),
              2U);
    EXPECT_GT(each({Op::quantize},
                   [&](const Pair& pair, const OperatorView& op) {
                       const auto in = scale_of(op.input(0)), out = scale_of(op.output(0));
                       if (in.scale == out.scale) return;  // the same bytes
                       expect_held(pair, held(float_scale(in.scale, out).value(), Activation::none,
                                              op.output(0)));
                   }),
              1U);
    EXPECT_GT(each({Op::logistic},
                   [&](const Pair& pair, const OperatorView& op) {
                       const FloatRequantisation limits{-sigmoid_limit, sigmoid_limit, 0, {}};
                       expect_held(pair, {scale_of(op.input(0)).scale, limits, 0, 0});
                   }),
              1U);
}

/// Whether some load_table holds it.
bool loads(const Pair& pair, const PolynomialTable& table) {
    return std::ranges::any_of(pair.instructions, [&](const Instruction& one) {
        if (one.info->name != "load_table") return false;
        for (std::size_t s = 0; s < 8; ++s)
            for (std::size_t i = 0; i < 5; ++i)
                if (real(one, fmt::format("segment{}.c{}", s, i)) != table.coefficients[s][i])
                    return false;
        for (std::size_t i = 0; i < 7; ++i)
            if (real(one, fmt::format("break{}", i)) != table.breaks[i]) return false;
        return true;
    });
}

TEST_F(CompiledModels, FunctionsAreTheTablesThatProgramsLoad) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(exists(shared));
    EXPECT_GT(each({Op::softmax},
                   [&](const Pair& pair, const OperatorView&) {
                       EXPECT_TRUE(loads(pair, exponential_65536));
                       EXPECT_TRUE(loads(pair, inverse_root_65536));
                   }),
              4U);
    EXPECT_EQ(each({Op::unidirectional_sequence_lstm},
                   [&](const Pair& pair, const OperatorView&) {
                       EXPECT_TRUE(loads(pair, sigmoid_255));
                       EXPECT_TRUE(loads(pair, tanh_127));
                       EXPECT_TRUE(loads(pair, tanh_16383));
                   }),
              1U);
    EXPECT_GT(
        each({Op::logistic},
             [&](const Pair& pair, const OperatorView&) { EXPECT_TRUE(loads(pair, sigmoid_256)); }),
        1U);
}

}  // namespace
}  // namespace reef::edgetpu::numerics
