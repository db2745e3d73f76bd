// Programs of Reef's own compiler made for other numbers: right in every byte, or refused.
#include <fmt/format.h>
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
#include "reef/model/operator_samples.h"
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

TEST(OwnRetarget, OfEveryOperatorIsRightOrRefused) {
    Tally tally;
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type).value();
        for (const model::OperatorSample& sample : samples) {
            SCOPED_TRACE(fmt::format("{} {}, {}", name_of(type), sample.name, sample.variant));
            const auto compiled = compile(sample.model, {});
            if (!compiled || packages_of(compiled->model).value().empty()) continue;
            expect_right_or_refused(sample.model, compiled->model, 3, tally);
        }
    }
    fmt::print("{}\n", tally.text());
    EXPECT_GT(tally.made[1], 2 * tally.refused[1]);
    EXPECT_GT(tally.made[0], tally.refused[0]);
}

TEST(OwnRetarget, OfRandomNetworksIsRightOrRefused) {
    using Maker = model::Model (*)(unsigned);
    constexpr std::array<Maker, 4> makers = {
        test::random_network, test::random_network_of_small_images, test::random_deciding_network,
        test::random_recurrent_network};
    const auto seeds = test::drawn_seeds(20);
    Tally tally;
    for (unsigned seed = seeds.first; seed < seeds.end(); ++seed)
        for (std::size_t kind = 0; kind < makers.size(); ++kind) {
            SCOPED_TRACE(fmt::format("network of kind {}, seed {}", kind, seed));
            const model::Model plain = makers[kind](seed);
            const auto compiled = compile(plain, test::options_in_turn(seed));
            if (!compiled || packages_of(compiled->model).value().empty()) continue;
            expect_right_or_refused(plain, compiled->model, seed, tally);
        }
    fmt::print("{}\n", tally.text());
    EXPECT_GT(tally.made[1], 5 * tally.refused[1]);
    EXPECT_GT(tally.made[1], 4 * seeds.count);
}

}  // namespace
}  // namespace reef::edgetpu
