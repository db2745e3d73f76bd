// Programs of Reef's own compiler made for other numbers: right in every byte, or refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "changed_weights.h"
#include "compiler/random_network.h"
#include "edgetpu/retarget/other_numbers.h"
#include "own_models.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/retarget.h"
#include "reef/model/builder.h"
#include "reef/model/operator_samples.h"
#include "support/compiled_session.h"
#include "support/drawn_seeds.h"

namespace reef::edgetpu {
namespace {

/// How many were made, and how many refused, with the source and without.
class Tally {
  public:
    void count(bool with_source, const Result<Retargeted>& result) {
        ++(result ? made : refused)[with_source ? 1 : 0];
        if (!result) {
            EXPECT_EQ(result.error().cause, Cause::unsupported) << result.error().message();
        }
    }
    [[nodiscard]] std::string text() const {
        return fmt::format("with the source {} made and {} refused, without {} made and {} refused",
                           made[1], refused[1], made[0], refused[0]);
    }
    std::array<std::size_t, 2> made{}, refused{};
};

void expect_right_or_refused(const model::Model& plain, const model::Model& compiled, unsigned seed,
                             Tally& tally) {
    for (const test::Change change : {test::Change::all, test::Change::slight}) {
        const auto target = test::with_other_numbers(plain, seed, change);
        for (const bool with_source : {true, false}) {
            SCOPED_TRACE(fmt::format("{}, {} the source",
                                     change == test::Change::all ? "all numbers" : "slight changes",
                                     with_source ? "with" : "without"));
            const auto result = with_source ? retarget(compiled, plain, target, {})
                                            : retarget(compiled, target, {});
            tally.count(with_source, result);
            if (result) test::expect_computes(target, result->model, seed);
        }
    }
}

/// The same for a target of which a scale or two are others.
void expect_other_scales_right_or_refused(const model::Model& plain, const model::Model& compiled,
                                          unsigned seed, Tally& tally) {
    using test::ScaleChange;
    for (const auto change : {ScaleChange::copied, ScaleChange::exchanged, ScaleChange::halved}) {
        const auto target = test::with_other_scales(plain, seed, change);
        // Scales that no kernel takes have no result to compare with.
        if (!test::open_compared(target, compiled)) continue;
        for (const bool with_source : {true, false}) {
            SCOPED_TRACE(fmt::format("change {}, {} the source", static_cast<int>(change),
                                     with_source ? "with" : "without"));
            const auto result = with_source ? retarget(compiled, plain, target, {})
                                            : retarget(compiled, target, {});
            tally.count(with_source, result);
            if (result) test::expect_computes(target, result->model, seed);
        }
    }
}

TEST(OwnRetarget, OfEveryOperatorIsRightOrRefused) {
    Tally tally, scales;
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type).value();
        for (const model::OperatorSample& sample : samples) {
            SCOPED_TRACE(fmt::format("{} {}, {}", name_of(type), sample.name, sample.variant));
            const auto compiled = compile(sample.model, {});
            if (!compiled || packages_of(compiled->model).value().empty()) continue;
            expect_right_or_refused(sample.model, compiled->model, 3, tally);
            expect_other_scales_right_or_refused(sample.model, compiled->model, 3, scales);
        }
    }
    fmt::print("of other scales {}\n", scales.text());
    fmt::print("{}\n", tally.text());
    EXPECT_GT(tally.made[1], 2 * tally.refused[1]);
    EXPECT_GT(tally.made[0], tally.refused[0]);
}

/// Numbers of a network in which channels are padded for a sum, as face detection has them.
struct Padded {
    std::int64_t zero = 3;  ///< of what is padded
    float sum_scale = 0.04F;
    int weight = 5;  ///< each of them, in turn with its opposite
};

model::Model network_with_pad(const Padded& numbers) {
    using model::per_tensor;
    model::Builder builder("padded");
    const auto q = per_tensor(0.02F, numbers.zero);
    const auto image = builder.input("image", ElementType::int8, {1, 8, 8, 4}, q);
    std::vector<std::int8_t> weights;
    for (int i = 0; i < 8 * 4; ++i)
        weights.push_back(static_cast<std::int8_t>(i % 3 == 0 ? -numbers.weight : numbers.weight));
    const auto kernel = builder.constant<std::int8_t>("kernel", ElementType::int8, {8, 1, 1, 4},
                                                      weights, per_tensor(0.01F, 0));
    const std::vector<std::int32_t> biases(8, 100), widths{0, 0, 0, 0, 0, 0, 0, 4};
    const auto bias = builder.constant<std::int32_t>("bias", ElementType::int32, {8}, biases,
                                                     per_tensor(0.0002F, 0));
    const auto channels =
        builder.constant<std::int32_t>("widths", ElementType::int32, {4, 2}, widths);
    const auto wide = builder.tensor("wide", ElementType::int8, {1, 8, 8, 8}, q);
    const auto padded = builder.tensor("padded", ElementType::int8, {1, 8, 8, 8}, q);
    const auto sum =
        builder.tensor("sum", ElementType::int8, {1, 8, 8, 8}, per_tensor(numbers.sum_scale, -7));
    builder.add(model::Op::conv_2d, {image, kernel, bias}, {wide},
                model::Conv2dOptions{.stride_h = 1, .stride_w = 1});
    builder.add(model::Op::pad, {image, channels}, {padded});
    builder.add(model::Op::add, {padded, wide}, {sum}, model::AddOptions{});
    builder.output(sum);
    return builder.finish().value();
}

TEST(OwnRetarget, OfPaddedChannelsKeepsTheirZeroPoint) {
    const model::Model plain = network_with_pad({});
    const auto compiled = compile(plain, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    ASSERT_TRUE(std::ranges::all_of(compiled->operators, &chip::CompiledOperator::on_chip));
    test::expect_computes(plain, compiled->model, 1);

    const model::Model other_zero = network_with_pad({.zero = -9});
    for (const auto& refused : {retarget(compiled->model, plain, other_zero, {}),
                                retarget(compiled->model, other_zero, {})}) {
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().cause, Cause::unsupported);
        EXPECT_THAT(refused.error().message(),
                    testing::AllOf(testing::HasSubstr("operator 1 PAD"),
                                   testing::HasSubstr("its zero point may differ")));
    }

    const model::Model same_zero = network_with_pad({.sum_scale = 0.05F, .weight = 9});
    const auto made = retarget(compiled->model, plain, same_zero, {});
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_GT(made->changed_instructions, 0U);
    EXPECT_GT(made->changed_parameter_bytes, 0U);
    test::expect_computes(same_zero, made->model, 2);
}

/// A product with an image of five channels, which begin at no word: programs of known forms leave
/// it to the CPU. The pool is on the chip.
model::Model network_with_a_factor(std::int8_t factor, std::int64_t zero) {
    using model::per_tensor;
    model::Builder builder("factor");
    const std::vector<std::int32_t> shape{1, 8, 8, 5};
    const auto q = per_tensor(0.02F, 3);
    const auto image = builder.input("image", ElementType::int8, shape, q);
    const std::vector<std::int8_t> factors(std::size_t{8} * 8 * 5, factor);
    const auto by = builder.constant<std::int8_t>("by", ElementType::int8, shape, factors,
                                                  per_tensor(0.01F, zero));
    const auto product = builder.tensor("product", ElementType::int8, shape, q);
    const auto pooled = builder.tensor("pooled", ElementType::int8, {1, 4, 4, 5}, q);
    builder.add(model::Op::mul, {image, by}, {product}, model::MulOptions{});
    builder.add(model::Op::max_pool_2d, {product}, {pooled},
                model::Pool2dOptions{.padding = model::Padding::valid,
                                     .stride_h = 2,
                                     .stride_w = 2,
                                     .filter_h = 2,
                                     .filter_w = 2});
    builder.output(pooled);
    return builder.finish().value();
}

/// The program has none of the numbers that change: it is the target's own.
TEST(OwnRetarget, TakesWhatTheCpuComputesWithFromTheTarget) {
    const model::Model plain = network_with_a_factor(90, 0),
                       target = network_with_a_factor(40, -20);
    const auto compiled = compile(plain, {.keep_islands = true, .known_forms_only = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    ASSERT_FALSE(compiled->operators[0].on_chip);
    ASSERT_TRUE(compiled->operators[1].on_chip);
    for (const auto& made :
         {retarget(compiled->model, plain, target, {}), retarget(compiled->model, target, {})}) {
        ASSERT_TRUE(made) << made.error().message();
        EXPECT_EQ(made->changed_instructions, 0U);
        test::expect_computes(target, made->model, 2);
    }
}

TEST(OwnRetarget, OfRandomNetworksIsRightOrRefused) {
    using Maker = model::Model (*)(unsigned);
    constexpr std::array<Maker, 4> makers = {
        test::random_network, test::random_network_of_small_images, test::random_deciding_network,
        test::random_recurrent_network};
    const auto seeds = test::drawn_seeds(20);
    Tally tally, other_scales;
    for (unsigned seed = seeds.first; seed < seeds.end(); ++seed)
        for (std::size_t kind = 0; kind < makers.size(); ++kind) {
            SCOPED_TRACE(fmt::format("network of kind {}, seed {}", kind, seed));
            const model::Model plain = makers[kind](seed);
            const auto compiled = compile(plain, test::options_in_turn(seed));
            if (!compiled || packages_of(compiled->model).value().empty()) continue;
            expect_right_or_refused(plain, compiled->model, seed, tally);
            expect_other_scales_right_or_refused(plain, compiled->model, seed, other_scales);
        }
    fmt::print("{}; of other scales {}\n", tally.text(), other_scales.text());
    EXPECT_GT(other_scales.made[0], seeds.count);
    EXPECT_GT(tally.made[1], 5 * tally.refused[1]);
    EXPECT_GT(tally.made[1], 4 * seeds.count);
}

}  // namespace
}  // namespace reef::edgetpu
