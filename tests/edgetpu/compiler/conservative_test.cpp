// Programs of which every instruction has a form that a program of the vendor has.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "compiler/random_network.h"
#include "edgetpu/compiler/conform.h"
#include "edgetpu/compiler/emission.h"
#include "edgetpu/compiler/outcome.h"
#include "edgetpu/isa/form.h"
#include "edgetpu/program/codec.h"
#include "reef/edgetpu/compiler.h"
#include "reef/model/tflite.h"
#include "support/drawn_seeds.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using lowering::nest;

std::string form_of_operation(const program::Operation& operation) {
    const auto encoded = program::encode({operation}).value();
    return form_of({.info = &encoded.info(), .word = 0, .bytes = encoded.bytes()});
}

/// Addresses in the order of the visits, by the rule of LoopNest.
std::vector<std::int64_t> addresses_of(const LoopNest& nest) {
    std::vector<std::int64_t> out;
    std::array<std::uint32_t, LoopNest::most_dimensions> index{};
    std::int64_t at = nest.base;
    for (;;) {
        std::uint64_t group = 0, size = 1;
        for (unsigned d = nest.rotate_level; nest.rotates() && d < nest.dimensions; ++d) {
            group += index[d] * size;
            size *= nest.count[d];
        }
        out.push_back(at + (group % 2 == 1 ? nest.rotate_size : 0));
        unsigned d = 0;
        while (d < nest.dimensions && index[d] + 1 == nest.count[d]) index[d++] = 0;
        if (d == nest.dimensions) return out;
        ++index[d];
        at += nest.step[d];
    }
}

/// 3 rows of 5 pixels of 2 words, through the identity.
program::Tensor copy_of_pixels() {
    program::Tensor op = lowering::word_copy();
    op.work.tiles = 1;
    op.loops = lowering::loops({30});
    op.in = nest(8, 64, {{4, 2}, {8, 5}, {48, 3}});
    op.out = nest(8, 1024, {{4, 2}, {12, 5}, {96, 3}});
    op.par = nest(8, 4 * lowering::identity_row, {{0, 30}});
    op.acc = lowering::rotating(nest(8, 0, {{0, 30}}), 0, 4);
    op.group_level = 1;
    op.avdata = lowering::signal_at(3);
    return op;
}

TEST(Conform, ACopyTakesTheFormOfTheVendorsAndVisitsTheSame) {
    const program::Tensor before = copy_of_pixels();
    ASSERT_FALSE(is_known_form(form_of_operation(before)));
    program::Operation operation = before;
    ASSERT_TRUE(lowering::conform(operation));
    EXPECT_TRUE(is_known_form(form_of_operation(operation)));
    const auto& after = std::get<program::Tensor>(operation);
    EXPECT_EQ(addresses_of(after.in), addresses_of(before.in));
    EXPECT_EQ(addresses_of(after.out), addresses_of(before.out));
    EXPECT_EQ(addresses_of(after.par), addresses_of(before.par));
    EXPECT_EQ(after.loops.visits(), before.loops.visits());
    for (const auto& wait : after.wait) EXPECT_EQ(wait.start, 0);
}

TEST(Conform, WhatHasAKnownFormStays) {
    program::Operation operation = copy_of_pixels();
    ASSERT_TRUE(lowering::conform(operation));
    const program::Operation once = operation;
    ASSERT_TRUE(lowering::conform(operation));
    EXPECT_EQ(operation, once);
}

/// A mode that no program of the vendor has, and loops that no form of such a copy holds.
TEST(Conform, WhatNoFormDoesIsLeftAsItWas) {
    auto narrow = copy_of_pixels();
    narrow.par_16bit = true;
    auto deep = copy_of_pixels();
    deep.in = nest(8, 64, {{4, 2}, {12, 5}, {96, 3}, {900, 2}, {2500, 2}});
    deep.out = nest(8, 8192, {{4, 2}, {12, 5}, {96, 3}, {900, 2}, {2500, 2}});
    deep.par = nest(8, 4 * lowering::identity_row, {{0, 120}});
    deep.loops = lowering::loops({120});
    for (const program::Tensor& op : {narrow, deep}) {
        program::Operation operation = op;
        EXPECT_FALSE(lowering::conform(operation));
        EXPECT_EQ(std::get<program::Tensor>(operation), op);
    }
}

/// Events that an engine waits for stay as many.
TEST(Conform, RowsThatTakeTurnsAreHandedOverAsOften) {
    program::WideToNarrow op;
    op.work.tiles = 1;
    op.src = lowering::rotating(nest(4, 2070, {{0, 3}}), 0, 1);
    op.dst = nest(6, 100, {{1, 40}, {50, 4}});
    op.written = lowering::signal_at(0);
    op.wait[0] = lowering::wait_for(lowering::counter::RING_READ_A_, 0, 1, 1);
    op.row_level = 2;
    program::Operation operation = op;
    ASSERT_TRUE(lowering::conform(operation));
    const auto& after = std::get<program::WideToNarrow>(operation);
    EXPECT_EQ(after.dst.passes_from(after.written.level), op.dst.passes_from(op.written.level));
    EXPECT_EQ(addresses_of(after.src), addresses_of(op.src));
    EXPECT_EQ(addresses_of(after.dst), addresses_of(op.dst));
}

CompileOptions conservative() {
    return {.most_programs = 4, .keep_islands = true, .list_forms = true, .known_forms_only = true};
}

TEST(CompileConservative, RandomNetworksHaveKnownFormsAloneAndTheSameBytes) {
    const auto [first, count] = test::drawn_seeds(60);
    std::size_t equal = 0, on_chip = 0, left = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model =
            seed % 3 == 0 ? test::random_network_of_small_images(seed) : test::random_network(seed);
        const auto compiled = compile(model, conservative());
        if (!compiled) continue;
        EXPECT_EQ(compiled->forms.known, compiled->forms.instructions) << "seed " << seed;
        const test::Outcome out = test::outcome_of(model, conservative());
        EXPECT_EQ(out.problem, "") << "seed " << seed;
        equal += out.problem.empty() ? 1 : 0;
        on_chip += out.on_chip;
        left += out.left;
    }
    fmt::print("{} of {} equal and clean; {} operators on the chip, {} left\n", equal, count,
               on_chip, left);
    EXPECT_GE(4 * equal, 3 * count);
    EXPECT_GE(on_chip, left);
}

struct RealModel {
    const char* name;
    std::size_t least_on_chip;
};

/// With most of a network's operators on the chip.
TEST(CompileConservative, RealNetworksKeepTheirConvolutions) {
    REEF_SHARED_OR_SKIP(shared);
    const RealModel models[] = {{"mobilenet_v1_0.25_128_quant", 30},
                                {"mobilenet_v1_0.5_160_quant", 30},
                                {"tf2_mobilenet_v2_1.0_224_ptq", 64},
                                {"movenet_single_pose_lightning_ptq", 85},
                                {"deeplabv3_mnv2_dm05_pascal_quant", 60}};
    for (const RealModel& m : models) {
        SCOPED_TRACE(m.name);
        const auto model =
            model::load_tflite(shared / "data/models" / fmt::format("{}.tflite", m.name));
        ASSERT_TRUE(model) << model.error().message();
        CompileOptions options = conservative();
        options.keep_islands = false;
        const auto compiled = compile(*model, options);
        ASSERT_TRUE(compiled) << compiled.error().message();
        EXPECT_EQ(compiled->forms.known, compiled->forms.instructions);
        std::size_t on_chip = 0;
        for (const auto& op : compiled->operators) on_chip += op.on_chip ? 1 : 0;
        EXPECT_GE(on_chip, m.least_on_chip);
    }
}

}  // namespace
}  // namespace reef::edgetpu
