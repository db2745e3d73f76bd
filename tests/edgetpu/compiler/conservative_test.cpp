// Programs of which every instruction has a form that a program of the vendor has.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "compiler/random_network.h"
#include "edgetpu/compiler/conform.h"
#include "edgetpu/compiler/emission.h"
#include "edgetpu/compiler/forms.h"
#include "edgetpu/compiler/outcome.h"
#include "edgetpu/isa/form.h"
#include "edgetpu/sim/program/nest.h"
#include "reef/edgetpu/compiler.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/drawn_seeds.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using lowering::nest;

std::string form_of(const program::Operation& operation) {
    return lowering::form_of_operation({operation}).value();
}

/// Addresses in the order of the visits.
std::vector<std::int32_t> addresses_of(const LoopNest& nest) {
    std::vector<std::int32_t> out;
    for (sim::NestCursor at(nest); !at.done(); at.advance()) out.push_back(at.address());
    return out;
}

template <typename Op>
std::optional<Op> conformed(const Op& op) {
    program::Operation operation = op;
    if (!lowering::conform(operation)) {
        EXPECT_EQ(std::get<Op>(operation), op);
        return std::nullopt;
    }
    EXPECT_TRUE(is_known_form(form_of(operation)));
    return std::get<Op>(operation);
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
    ASSERT_FALSE(is_known_form(form_of(before)));
    const auto after = conformed(before);
    ASSERT_TRUE(after);
    EXPECT_EQ(addresses_of(after->in), addresses_of(before.in));
    EXPECT_EQ(addresses_of(after->out), addresses_of(before.out));
    EXPECT_EQ(addresses_of(after->par), addresses_of(before.par));
    EXPECT_EQ(after->loops.visits(), before.loops.visits());
    for (const auto& wait : after->wait) EXPECT_EQ(wait.start, 0);
    // Once it has such a form it stays.
    EXPECT_EQ(conformed(*after), after);
}

/// Bytes of a strip: the vendor's takes turns between two, ours is one group of a rotation.
TEST(Conform, ARotationIsAddedWhereAllIsOneGroup) {
    program::Tensor op = lowering::word_copy();
    op.work.tiles = 1;
    op.loops = lowering::loops({3, 7, 5});
    op.in = nest(8, 9, {{1, 3}, {3, 7}, {21, 5}});
    op.out = nest(8, 256, {{4, 1}, {4, 7}, {40, 5}});
    op.par = nest(8, 4 * lowering::identity_row, {{1, 3}, {0, 7}, {0, 5}});
    op.acc = lowering::rotating(nest(8, 0, {{0, 3}, {0, 7}, {0, 5}}), 1, 4);
    op.in_bytewise = op.single = op.single_par = true;
    op.group_level = 3;
    op.reduction_mask = 1;
    op.avdata = lowering::signal_at(3);
    const auto after = conformed(op);
    ASSERT_TRUE(after);
    EXPECT_TRUE(after->in.rotates());
    EXPECT_EQ(addresses_of(after->in), addresses_of(op.in));
    EXPECT_EQ(addresses_of(after->out), addresses_of(op.out));
    EXPECT_EQ(after->acc.visits_below(after->acc.rotate_level), 3U);
}

/// Modes that no program of the vendor has, and loops that no form of such a copy holds.
TEST(Conform, WhatNoFormDoesIsLeftAsItWas) {
    auto narrow = copy_of_pixels();
    narrow.par_16bit = true;
    EXPECT_FALSE(conformed(narrow));
    auto deep = copy_of_pixels();
    deep.in = nest(8, 64, {{4, 2}, {12, 5}, {96, 3}, {900, 2}, {2500, 2}});
    deep.out = nest(8, 8192, {{4, 2}, {12, 5}, {96, 3}, {900, 2}, {2500, 2}});
    deep.par = nest(8, 4 * lowering::identity_row, {{0, 120}});
    deep.loops = lowering::loops({120});
    EXPECT_FALSE(conformed(deep));
}

/// Who fills scaling memory waits for results: a copy may count them as rarely as the form does,
/// one with biases as often as before.
TEST(Conform, ResultsThatAreWaitedForAreCountedAsOften) {
    for (unsigned level = 0; level <= 3; ++level) {
        auto op = copy_of_pixels();
        op.bias = true;
        op.avdata = lowering::signal_at(level);
        const program::Tensor after = conformed(op).value_or(op);
        EXPECT_TRUE(after.avdata.enabled);
        EXPECT_EQ(after.out.passes_from(after.avdata.level), op.out.passes_from(level));
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
    const auto after = conformed(op);
    ASSERT_TRUE(after);
    EXPECT_EQ(after->dst.passes_from(after->written.level), op.dst.passes_from(op.written.level));
    EXPECT_EQ(addresses_of(after->src), addresses_of(op.src));
    EXPECT_EQ(addresses_of(after->dst), addresses_of(op.dst));
    EXPECT_EQ(after->wait[0].start, 1);
}

/// Two groups of rows, the second of fewer: what is cropped keeps its place, or there is no form.
TEST(Conform, ACropKeepsItsVisits) {
    program::RingReceive op;
    op.work.tiles = 1;
    op.dst = lowering::rotating(nest(4, 100, {{1, 4}, {0, 3}}), 1, 4);
    op.dst.crop_level = 1;
    op.dst.crop_count = 2;
    op.dst.crop_left_out = 2;
    op.ring_read = lowering::signal_at(1);
    op.wait[0] = lowering::room_for(lowering::counter::WIDE_TO_NARROW_, 1, 0, 4);
    const auto after = conformed(op);
    ASSERT_TRUE(after);
    EXPECT_EQ(addresses_of(after->dst), addresses_of(op.dst));
    op.dst.crop_level = 2;  // always cropped
    const auto other = conformed(op);
    EXPECT_EQ(addresses_of(other.value_or(op).dst), addresses_of(op.dst));
}

TEST(Conform, ATransferBehindAStopWaitsForNothing) {
    program::Mesh op;
    op.work.tiles = 1;
    op.to = program::Direction::west;
    op.src = nest(4, 100, {{1, 6}, {20, 3}});
    op.dst = nest(4, 300, {{1, 6}, {20, 3}});
    op.in = lowering::signal_at(2);
    const auto after = conformed(op);
    ASSERT_TRUE(after);
    EXPECT_EQ(addresses_of(after->src), addresses_of(op.src));
    EXPECT_EQ(addresses_of(after->dst), addresses_of(op.dst));
    EXPECT_EQ(after->dst.passes_from(after->in.level), 1U);
    for (const auto& wait : after->wait) EXPECT_EQ(wait.start, 0);
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
        CompileOptions options = conservative();
        options.stream_parameters = seed % 5 == 0;
        const auto compiled = compile(model, options);
        if (!compiled) continue;
        EXPECT_EQ(compiled->forms.known, compiled->forms.instructions) << "seed " << seed;
        const test::Outcome out = test::outcome_of(model, options);
        EXPECT_EQ(out.problem, "") << "seed " << seed;
        equal += out.problem.empty() ? 1 : 0;
        on_chip += out.on_chip;
        left += out.left;
    }
    fmt::print("{} of {} equal and clean; {} operators on the chip, {} left\n", equal, count,
               on_chip, left);
    EXPECT_GE(10 * equal, 9 * count);
    EXPECT_GE(on_chip, 4 * left);
}

struct RealModel {
    const char* name;
    std::size_t least_on_chip;
};

/// With most of a network's operators on the chip.
/// More words than an instruction counts: the operator stays with the CPU, known forms or not.
TEST(CompileConservative, WhatNoInstructionHoldsIsLeftToTheCpu) {
    model::Builder b("wide");
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto in = b.input("in", ElementType::uint8, {1, 16, 16, 16}, numbers);
    const auto other = b.input("other", ElementType::uint8, {1, 16, 16, 16}, numbers);
    const auto wide = b.input("wide", ElementType::uint8, {1, 1, 1, 70000}, numbers);
    const auto sum = b.tensor("sum", ElementType::uint8, {1, 16, 16, 16}, numbers);
    const auto relu = b.tensor("relu", ElementType::uint8, {1, 1, 1, 70000}, numbers);
    b.add(model::Op::add, {in, other}, {sum}, model::AddOptions{});
    b.add(model::Op::relu, {wide}, {relu});
    b.output(sum);
    b.output(relu);
    const auto model = b.finish().value();
    for (const bool conservative : {false, true}) {
        SCOPED_TRACE(conservative);
        const auto compiled = compile(model, {.known_forms_only = conservative});
        ASSERT_TRUE(compiled) << compiled.error().message();
        EXPECT_TRUE(compiled->operators[0].on_chip);
        EXPECT_FALSE(compiled->operators[1].on_chip);
        EXPECT_THAT(compiled->operators[1].reason,
                    testing::HasSubstr("too large for the chip's instructions"));
    }
}

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
