// Every kernel on random cases against its definition in real numbers. REEF_FIRST_SEED and
// REEF_SEEDS choose the cases; a failure names its seed.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "cpu/plain/operator_case.h"
#include "cpu/prepare/kernel.h"
#include "support/drawn_seeds.h"

namespace reef::plain {
namespace {

class Differential : public testing::TestWithParam<NamedMaker> {};

TEST_P(Differential, KernelsKeepTheirBounds) {
    const auto [first, seeds] = test::operator_seeds(250);
    double steps = 0;
    double floats = 0;
    for (unsigned seed = first; seed < first + seeds; ++seed) {
        Choices choices(seed);
        const Outcome outcome = run_case(GetParam().make(choices));
        ASSERT_EQ(outcome.wrong, "") << model::builtin_name(GetParam().op)
                                     << ": REEF_FIRST_SEED=" << seed << " REEF_SEEDS=1";
        steps = std::max(steps, outcome.most_steps);
        floats = std::max(floats, outcome.most_float);
    }
    std::cout << fmt::format(
        "seeds {} to {}: {:.3f} steps of quantised outputs, {:.3f} of the unit of float32\n", first,
        first + seeds - 1, steps, floats);
}

std::string operator_name(const testing::TestParamInfo<NamedMaker>& info) {
    return model::builtin_name(info.param.op);
}

INSTANTIATE_TEST_SUITE_P(Operators, Differential, testing::ValuesIn(all_makers()), operator_name);
INSTANTIATE_TEST_SUITE_P(Hybrids, Differential, testing::ValuesIn(hybrid_makers()), operator_name);

// The two decoders of detections are compared with definitions of their own (detection_test.cpp).
TEST(DifferentialList, NamesEveryBuiltinKernel) {
    std::set<std::string> made, known;
    for (const NamedMaker& maker : all_makers()) made.insert(model::builtin_name(maker.op));
    for (const cpu::KernelEntry& entry : cpu::kernel_registry())
        if (entry.op != model::Op::custom) known.insert(model::builtin_name(entry.op));
    EXPECT_EQ(made, known);
}

// What TFLite is asked of far scales (tests/peers) is beside the matter unless results lie beyond
// their types, as QUANTIZE's did that were once wrong, by 2^15 steps and more.
int beyond_types(const NamedMaker& maker, bool far) {
    int beyond = 0;
    for (unsigned seed = 1; seed <= 100; ++seed) {
        Choices choices(seed);
        if (far) choices.draw_far_scales();
        const OperatorCase one = maker.make(choices);
        for (const Expected& out : one.outputs)
            for (const double real : out.real)
                if (out.scale != 0 && std::abs(real / static_cast<double>(out.scale)) > 0x1p17)
                    ++beyond;
    }
    return beyond;
}

TEST(FarScales, LeaveResultsBeyondTheirTypes) {
    using enum model::Op;
    const std::set<model::Op> those = {add, conv_2d, leaky_relu, mul, quantize, sub};
    std::size_t tried = 0;
    for (const NamedMaker& maker : all_makers()) {
        if (!those.contains(maker.op)) continue;
        ++tried;
        EXPECT_EQ(beyond_types(maker, false), 0) << model::builtin_name(maker.op);
        EXPECT_GT(beyond_types(maker, true), 10) << model::builtin_name(maker.op);
    }
    EXPECT_EQ(tried, those.size());
}

// Another value than the definition's, at the other end of a quantised output's range.
double wrong_value(const Expected& out) {
    const double value = out.real.back();
    if (out.steps == 0) return value + 1 + std::abs(value) / 2;
    const auto [low, high] = range_of(out.type);
    const auto real = [&](double stored) {
        return (stored - static_cast<double>(out.zero)) * static_cast<double>(out.scale);
    };
    return value > real((low + high) / 2) ? real(low) : real(high);
}

TEST(DifferentialCheck, SeesOneWrongElement) {
    for (const NamedMaker& maker : all_makers()) {
        Choices choices(7);
        OperatorCase one = maker.make(choices);
        while (one.outputs.back().real.empty()) one = maker.make(choices);
        one.outputs.back().real.back() = wrong_value(one.outputs.back());
        EXPECT_THAT(run_case(one).wrong, testing::HasSubstr("output"))
            << model::builtin_name(maker.op);
    }
}

}  // namespace
}  // namespace reef::plain
