// Tensors inside the programs that Reef's compiler makes of random networks: what is compared with
// a tensor of the plain model is equal to it, for the programs are right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "compiler/random_network.h"
#include "own_models.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/model/builder.h"
#include "reef/model/operator_samples.h"
#include "reef/runtime/layer_dump.h"
#include "support/compiled_session.h"
#include "support/drawn_seeds.h"

namespace reef::edgetpu {
namespace {

struct Found {
    std::size_t layers = 0, gathered = 0, compared = 0;
};

std::string differences_of(const chip::LayerMatch& match) {
    std::string text;
    for (const auto& [field, held, wanted] : match.differences)
        text += fmt::format(", {} {} and not {}", field, held, wanted);
    return text;
}

void expect_no_false_difference(const model::Model& plain, const model::Model& compiled,
                                unsigned seed, Found& found) {
    auto sessions = test::open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    test::draw_inputs(sessions->chip, sessions->cpu, seed);
    ASSERT_TRUE(sessions->cpu.run());
    ASSERT_TRUE(sessions->chip.run());
    const auto dump = runtime::dump_layers(compiled, sessions->chip, &plain);
    ASSERT_TRUE(dump) << dump.error().message();
    found.layers += dump->layers.size();
    for (const runtime::DumpedLayer& one : dump->layers) {
        if (!one.layer.problem.empty()) continue;
        ++found.gathered;
        if (!one.match || !one.match->comparable) continue;
        ++found.compared;
        EXPECT_TRUE(std::ranges::equal(one.tensor.data, sessions->cpu.tensor(one.match->tensor)))
            << one.layer.name << " " << one.layer.instructions.front() << ": " << one.plain_op
            << " by " << one.match->by << differences_of(*one.match);
    }
}

TEST(OwnLayers, OfEveryOperatorAreEqualWhereTheyAreCompared) {
    Found found;
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type).value();
        for (const model::OperatorSample& sample : samples) {
            SCOPED_TRACE(fmt::format("{} {}, {}", name_of(type), sample.name, sample.variant));
            const auto compiled = compile(sample.model, {});
            if (!compiled || packages_of(compiled->model).value().empty()) continue;
            expect_no_false_difference(sample.model, compiled->model, 5, found);
        }
    }
    fmt::print("{} of {} layers gathered, {} compared\n", found.gathered, found.layers,
               found.compared);
    EXPECT_GT(2 * found.gathered, found.layers);
}

/// Every other row of a tensor that stands above itself: rows of both are one grid, in another
/// order.
model::Model network_of_rows_twice() {
    using model::per_tensor;
    model::Builder builder("rows twice");
    const auto q = per_tensor(0.05F, 3);
    const auto image = builder.input("image", ElementType::int8, {1, 3, 8, 8}, q);
    const auto both = builder.tensor("both", ElementType::int8, {1, 6, 8, 8}, q);
    const auto out = builder.tensor("out", ElementType::int8, {1, 3, 4, 8}, per_tensor(0.03F, -4));
    const std::vector<std::int8_t> factors{1, -2, 3, -4, 5, -6, 7, 8};
    const std::vector<std::int32_t> zeros(8, 0);
    const auto weights = builder.constant<std::int8_t>("weights", ElementType::int8, {1, 1, 1, 8},
                                                       factors, per_tensor(0.1F, 0));
    const auto bias = builder.constant<std::int32_t>("bias", ElementType::int32, {8}, zeros,
                                                     per_tensor(0.005F, 0));
    builder.add(model::Op::concatenation, {image, image}, {both},
                model::ConcatenationOptions{.axis = 1});
    builder.add(model::Op::depthwise_conv_2d, {both, weights, bias}, {out},
                model::DepthwiseConv2dOptions{.stride_h = 2, .stride_w = 2, .depth_multiplier = 1});
    builder.output(out);
    return builder.finish().value();
}

TEST(OwnLayers, OfBytesInAnotherOrderAreNotCompared) {
    const model::Model plain = network_of_rows_twice();
    const auto compiled = compile(plain, {.keep_islands = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    ASSERT_TRUE(std::ranges::all_of(compiled->operators, &chip::CompiledOperator::on_chip));
    Found found;
    expect_no_false_difference(plain, compiled->model, 1, found);
    EXPECT_EQ(found.compared, 0U);
}

TEST(OwnLayers, OfRandomNetworksAreEqualWhereTheyAreCompared) {
    using Maker = model::Model (*)(unsigned);
    constexpr std::array<Maker, 4> makers = {
        test::random_network, test::random_network_of_small_images, test::random_deciding_network,
        test::random_recurrent_network};
    const auto seeds = test::drawn_seeds(20);
    Found found;
    for (unsigned seed = seeds.first; seed < seeds.end(); ++seed)
        for (std::size_t kind = 0; kind < makers.size(); ++kind) {
            SCOPED_TRACE(fmt::format("network of kind {}, seed {}", kind, seed));
            const model::Model plain = makers[kind](seed);
            const auto compiled = compile(plain, test::options_in_turn(seed));
            if (!compiled || packages_of(compiled->model).value().empty()) continue;
            expect_no_false_difference(plain, compiled->model, seed, found);
        }
    fmt::print("{} of {} layers gathered, {} compared\n", found.gathered, found.layers,
               found.compared);
    EXPECT_GT(2 * found.gathered, found.layers);
    EXPECT_GT(found.compared, 2 * seeds.count);
}

}  // namespace
}  // namespace reef::edgetpu
