// Reef's kernels against TensorFlow Lite itself, on random cases of every operator:
// REEF_TFLITE_LIBRARY names its library (`./dev tflite` fetches it). REEF_FIRST_SEED and REEF_SEEDS
// choose the cases.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>

#include "cpu/plain/operator_case.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "support/drawn_seeds.h"
#include "tflite_child.h"
#include "with_tflite.h"

namespace reef::peers {
namespace {

using plain::NamedMaker;
using plain::OperatorCase;

TensorBytes inputs_of(const OperatorCase& one) {
    TensorBytes inputs;
    for (const plain::Values& values : one.inputs)
        if (values.role == plain::Role::input) inputs.push_back(plain::stored_bytes(values));
    return inputs;
}

Result<TensorBytes> run_ours(const model::Model& model, const OperatorCase& one,
                             cpu::KernelSet kernels) {
    auto ours =
        REEF_TRY(graph::Executor::create(model, {.placers = {cpu::placer({.kernels = kernels})}}));
    const auto inputs = inputs_of(one);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        std::ranges::copy(inputs[i], ours.input(i).begin());
    REEF_CHECK(ours.run());
    TensorBytes outputs;
    for (std::size_t o = 0; o < ours.output_count(); ++o)
        outputs.emplace_back(ours.output(o).begin(), ours.output(o).end());
    return outputs;
}

float float_at(const std::vector<std::byte>& bytes, std::size_t i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

/// Whose results TFLite's kernels for 64-bit ARM round otherwise than those for x86-64, which keep
/// its reference kernels' rule (docs/exactness.md): quantised ones may be a step apart.
bool rounds_otherwise_there([[maybe_unused]] model::Op op) {
#if defined(__aarch64__)
    constexpr model::Op those[] = {model::Op::quantize,          model::Op::dequantize,
                                   model::Op::conv_2d,           model::Op::fully_connected,
                                   model::Op::depthwise_conv_2d, model::Op::transpose_conv,
                                   model::Op::resize_bilinear};
    return std::ranges::find(those, op) != std::end(those);
#else
    return false;
#endif
}

/// A float32 that the integers of a CAST do not hold, and of which TFLite for 64-bit ARM gives what
/// that processor's conversion does (docs/exactness.md).
bool converts_otherwise_there([[maybe_unused]] const OperatorCase& one) {
#if defined(__aarch64__)
    const plain::Values& in = one.inputs[0];
    const ElementType to = one.outputs[0].type;
    if (one.op != model::Op::cast || in.type != ElementType::float32) return false;
    const double end = to == ElementType::int64 ? 0x1p63 : 0x1p31;
    return to != ElementType::float32 && std::ranges::any_of(in.stored, [&](double x) {
               return !(std::trunc(x) >= -end && std::trunc(x) < end);
           });
#else
    return false;
#endif
}

/// How far two float32 results of the operator may be from each other, in the unit of the kernel's
/// bound: each within it of the real one.
double most_apart(model::Op op) {
    if (op == model::Op::dequantize && rounds_otherwise_there(op)) return 2;
    return 2 * plain::float_bound(op);
}

/// DEQUANTIZE is scale * stored - scale * zero point there, the latter rounded first.
double dequantized_apart(const OperatorCase& one, float a, double distance) {
    const plain::Values& in = one.inputs[0];
    const double product = in.scale(0) * static_cast<double>(in.zero);
    return distance / (0x1p-24 * (std::abs(product) + static_cast<double>(std::abs(a))));
}

/// In that unit. TFLite's GELU, x (1 + erf(x / sqrt 2)) / 2, has lost all digits where x is far
/// below zero: its distance is that of a sum near 1 times x.
double apart(const OperatorCase& one, std::size_t output, std::size_t i, float a, float b) {
    const double distance = std::abs(static_cast<double>(a) - static_cast<double>(b));
    if (one.op == model::Op::dequantize && rounds_otherwise_there(one.op))
        return dequantized_apart(one, a, distance);
    if (one.op != model::Op::gelu) return plain::float_distance(one, output, i, distance);
    constexpr double last_bit_of_one = 0x1p-23;
    return distance / (last_bit_of_one * std::abs(one.inputs[0].stored[i]));
}

/// Whether the operator is a FULLY_CONNECTED with a scale per channel, of which TFLite 2.9 knows
/// one (docs/exactness.md).
bool has_unknown_scales(const OperatorCase& one) {
    return one.op == model::Op::fully_connected && one.inputs[1].scales.size() > 1;
}

/// The same layer as a CONV_2D of 1 x 1, whose scales TFLite 2.9 knows. Both have one rule where
/// TFLite has scales for both, from 2.14 on: sums of int32, each by the channel's own multiplier,
/// (input scale * weight scale) / output scale in double, and MultiplyByQuantizedMultiplier().
OperatorCase as_convolution(OperatorCase one) {
    const auto& options = std::get<model::FullyConnectedOptions>(one.options);
    const auto as_image = [](plain::Shape& shape) { shape.insert(shape.begin() + 1, {1, 1}); };
    as_image(one.inputs[0].shape);
    as_image(one.inputs[1].shape);
    as_image(one.outputs[0].shape);
    plain::Values& bias = one.inputs[2];
    if (bias.role == plain::Role::absent) {
        const std::size_t channels = one.inputs[1].scales.size();
        bias = {.type = plain::i32,
                .shape = {static_cast<std::int32_t>(channels)},
                .stored = std::vector<double>(channels),
                .role = plain::Role::constant};
        for (const float scale : one.inputs[1].scales)
            bias.scales.push_back(one.inputs[0].scales[0] * scale);
    }
    one.options =
        model::Conv2dOptions{.stride_h = 1, .stride_w = 1, .activation = options.activation};
    one.op = model::Op::conv_2d;
    return one;
}

/// What TFLite 2.9 does not take, and part of what it says then, or how it ends.
struct Refusal {
    model::Op op;
    std::string_view says;
};
constexpr Refusal refusals[] = {
    {model::Op::relu_n1_to_1, "got INT16"},
    // Shapes of five dimensions and more that differ.
    {model::Op::select_v2, "ended by signal 6"},
    {model::Op::tile, "'INT16'"},
    {model::Op::split, "input_type =="},
    {model::Op::unpack, "'INT64'"},
    {model::Op::gather_nd, "NumElements(params) > 0"},
    {model::Op::space_to_depth, "data_type =="},
    {model::Op::depth_to_space, "data_type =="},
    {model::Op::padv2, "PadKernelMaxDimensionCount"},
    {model::Op::mirror_pad, "failed to invoke"},
    {model::Op::space_to_batch_nd, "Type 7"},
    {model::Op::batch_to_space_nd, "Type 7"},
    // No bias; groups.
    {model::Op::conv_2d, "index 2 was optional"},
    {model::Op::conv_2d, "input->dims->data[3] != filter->dims->data[3]"},
    {model::Op::depthwise_conv_2d, "index 2 was optional"},
    // No bias: of int8 it looks for one without asking.
    {model::Op::unidirectional_sequence_lstm, "was optional but was expected"},
    {model::Op::unidirectional_sequence_lstm, "ended by signal 11"},
};

bool is_known(model::Op op, std::string_view says) {
    return std::ranges::any_of(refusals, [&](const Refusal& refusal) {
        return refusal.op == op && says.find(refusal.says) != std::string_view::npos;
    });
}

/// What all cases of an operator showed.
struct Findings {
    int compared = 0, wrong = 0;
    int as_convolutions = 0;                      ///< of those that are compared
    int a_step_off = 0, nearer = 0, as_near = 0;  ///< quantised elements; to the real number, ours
    int beyond_int32 = 0;                         ///< elements that overflow there
    int refused_here = 0;                         ///< cases of far scales
    double farthest = 0;                          ///< of float32, in the unit of the kernel's bound
    std::map<std::string, int> refusals{};
    std::string first_wrong{}, first_off{};
};

std::int64_t quantised_at(ElementType type, const std::vector<std::byte>& bytes, std::size_t i) {
    if (type == ElementType::int8) return static_cast<std::int8_t>(bytes[i]);
    if (type == ElementType::uint8) return std::to_integer<std::int64_t>(bytes[i]);
    std::int16_t value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

/// Whether an int32 of TFLite's overflows, of which C++ says nothing: a result of CONCATENATION in
/// steps, or an input of HARD_SWISH, of up to 15 bits, that is shifted by 16 and more.
bool overflows_there(const OperatorCase& one, double real) {
    constexpr double shifted_by_16 = 0x1p16 * 128 * 3 / 32768;
    return (one.op == model::Op::concatenation && std::abs(real) > 0x1p31) ||
           (one.op == model::Op::hard_swish && one.inputs[0].scale(0) >= shifted_by_16);
}

/// Of a quantised output; a result a step off is counted where the operator is known for it.
std::string compare_steps(const OperatorCase& one, std::size_t output,
                          const std::vector<std::byte>& ours, const std::vector<std::byte>& theirs,
                          Findings& found) {
    const plain::Expected& out = one.outputs[output];
    if (ours.size() != out.real.size() * *size_of(out.type))
        return fmt::format("output {} has {} bytes", output, ours.size());
    for (std::size_t i = 0; i < out.real.size(); ++i) {
        const auto a = quantised_at(out.type, ours, i), b = quantised_at(out.type, theirs, i);
        if (a == b) continue;
        const double real = out.real[i] / static_cast<double>(out.scale) +  //
                            static_cast<double>(out.zero);
        const auto [low, high] = plain::range_of(out.type);
        if (overflows_there(one, real) &&
            std::abs(static_cast<double>(a) - std::clamp(real, low, high)) <= 1) {
            ++found.beyond_int32;
            continue;
        }
        if (!rounds_otherwise_there(one.op) || std::abs(a - b) > 1)
            return fmt::format("output {}, element {} of {}: {}, theirs {}, of {}", output, i,
                               out.real.size(), a, b, real);
        const double ours_off = std::abs(static_cast<double>(a) - real);
        const double theirs_off = std::abs(static_cast<double>(b) - real);
        constexpr double same = 1e-6;
        if (++found.a_step_off == 1)
            found.first_off =
                fmt::format("{}: {}, theirs {}, of {}", name_of(out.type), a, b, real);
        found.nearer += ours_off < theirs_off - same ? 1 : 0;
        found.as_near += std::abs(ours_off - theirs_off) <= same ? 1 : 0;
    }
    return {};
}

std::string compare_reals(const OperatorCase& one, std::size_t output,
                          const std::vector<std::byte>& ours, const std::vector<std::byte>& theirs,
                          Findings& found) {
    for (std::size_t i = 0; i < ours.size() / sizeof(float); ++i) {
        const float a = float_at(ours, i), b = float_at(theirs, i);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        found.farthest = std::max(found.farthest, apart(one, output, i, a, b));
        if (!(apart(one, output, i, a, b) <= most_apart(one.op)))
            return fmt::format("output {}, float {}: {}, theirs {}", output, i, a, b);
    }
    return {};
}

std::string compare(const OperatorCase& one, const TensorBytes& ours, const TensorBytes& theirs,
                    Findings& found) {
    for (std::size_t o = 0; o < one.outputs.size(); ++o) {
        const plain::Expected& out = one.outputs[o];
        if (ours[o].size() != theirs[o].size())
            return fmt::format("output {} has {} bytes, theirs {}", o, ours[o].size(),
                               theirs[o].size());
        std::string wrong;
        if (out.type == ElementType::float32)
            wrong = compare_reals(one, o, ours[o], theirs[o], found);
        else if (out.scale != 0 && plain::is_quantised(out.type))
            wrong = compare_steps(one, o, ours[o], theirs[o], found);
        else if (ours[o] != theirs[o])
            wrong = fmt::format("output {} is another", o);
        if (!wrong.empty()) return wrong;
    }
    return {};
}

/// Where scales are far apart, a model that either side refuses is no wrong answer.
enum class Scales { near, far };

/// That it was refused for what it is, by the plain kernels already.
bool is_refusal(const Result<TensorBytes>& ours, cpu::KernelSet kernels) {
    return !ours && kernels == cpu::KernelSet::reference &&
           (ours.error().cause == Cause::unsupported || ours.error().cause == Cause::bad_input);
}

void try_case(const OperatorCase& one, std::uint64_t seed, Scales scales, Findings& found) {
    const auto model = plain::model_of(one);
    ASSERT_TRUE(model);
    const auto inputs = inputs_of(one);
    if (converts_otherwise_there(one)) {
        ++found.refusals["another processor's conversion"];
        return;
    }
    const bool by_convolution = has_unknown_scales(one);
    const auto asked = by_convolution ? plain::model_of(as_convolution(one)) : *model;
    ASSERT_TRUE(asked);
    const auto theirs = run_tflite_child(*asked, std::span(&inputs, 1));
    if (!theirs) {
        const std::string& says = theirs.error().what;
        ++found.refusals[says];
        if (scales == Scales::near && !is_known(one.op, says) && ++found.wrong == 1)
            found.first_wrong = fmt::format("seed {}: not taken there: {}", seed, says);
        return;
    }
    ++found.compared;
    if (by_convolution) ++found.as_convolutions;
    for (const cpu::KernelSet kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
        const auto ours = run_ours(*model, one, kernels);
        if (scales == Scales::far && is_refusal(ours, kernels)) {
            ++found.refused_here;
            return;
        }
        const std::string wrong =
            ours ? compare(one, *ours, theirs->front(), found) : ours.error().message();
        if (wrong.empty()) continue;
        if (++found.wrong == 1) found.first_wrong = fmt::format("seed {}: {}", seed, wrong);
        return;
    }
}

class TfliteOperators : public WithTflite, public testing::WithParamInterface<NamedMaker> {};

Findings try_operator(const NamedMaker& maker, Scales scales) {
    const auto [first, seeds] = test::operator_seeds(250);
    Findings found;
    for (unsigned seed = first; seed < first + seeds; ++seed) {
        plain::Choices choices(seed);
        if (scales == Scales::far) choices.draw_far_scales();
        try_case(maker.make(choices), seed, scales, found);
    }
    std::cout << fmt::format(
        "{} compared ({} as a CONV_2D), {} different; float32 at most {:.2f} of "
        "{:.2f} units apart\n",
        found.compared, found.as_convolutions, found.wrong, found.farthest, most_apart(maker.op));
    if (found.a_step_off > 0)
        std::cout << fmt::format(
            "  {} elements a step off, ours nearer to the real number in {}, as near in {} ({})\n",
            found.a_step_off, found.nearer, found.as_near, found.first_off);
    if (found.beyond_int32 > 0 || found.refused_here > 0)
        std::cout << fmt::format("  {} elements beyond 32 bits, {} not taken here\n",
                                 found.beyond_int32, found.refused_here);
    for (const auto& [why, count] : found.refusals)
        std::cout << fmt::format("  {} not taken there: {}\n", count, why);
    EXPECT_EQ(found.wrong, 0) << found.first_wrong;
    // Of CONV_2D, of which it takes the fewest, nearly half are not.
    EXPECT_GE(5 * static_cast<std::uint64_t>(found.compared), 2 * seeds);
    return found;
}

TEST_P(TfliteOperators, GiveTheSameBytes) {
    const Findings found = try_operator(GetParam(), Scales::near);
    EXPECT_EQ(found.beyond_int32, 0);
}

TEST_P(TfliteOperators, GiveTheSameBytesOfFarScales) {
    const Findings found = try_operator(GetParam(), Scales::far);
    EXPECT_LE(2 * found.refused_here, found.compared);
}

std::string operator_name(const testing::TestParamInfo<NamedMaker>& info) {
    return model::builtin_name(info.param.op);
}

INSTANTIATE_TEST_SUITE_P(Operators, TfliteOperators, testing::ValuesIn(plain::all_makers()),
                         operator_name);

}  // namespace
}  // namespace reef::peers
