// Tensors that lie in the host's scratch memory while no step touches them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/network_draft.h"
#include "compiler/random_network.h"
#include "edgetpu/compiler/outcome.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/transfers.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/model/builder.h"
#include "support/drawn_seeds.h"

namespace reef {
namespace {

edgetpu::CompileOptions spilling(std::string how) {
    return {.settings = {{"spill", std::move(how)}}};
}

/// A tensor that is read again at the end, by a sum or beside what lies in between.
class SkipMaker : test::NetworkDraft {
  public:
    using NetworkDraft::NetworkDraft;

    /// What is turned in the midst is put together on every tile, where no bands help.
    model::Model turned(std::int32_t side, std::int32_t wide, std::int32_t narrow) {
        const Live skip = convolution(input(side, side, 4), wide, 3);
        Live at = convolution(skip, narrow, 1);
        const Live from = at;
        at.index = made(at);
        builder_.add(model::Op::transpose,
                     {from.index, constant<std::int32_t>(ElementType::int32, {4}, {0, 2, 1, 3})},
                     {at.index});
        at = convolution(at, wide, 1);
        return finish(sum(skip, at));
    }

    model::Model random() {
        const Live in = input(draw(5, 40), draw(5, 40), draw(1, 20));
        std::vector<Live> kept{in};
        Live at = in;
        for (int left = draw(3, 7); left > 0; --left) {
            at = convolution(at, draw(1, 24), chance(2) ? 1 : 3);
            if (chance(2)) kept.push_back(at);
        }
        for (; !kept.empty(); kept.pop_back()) {
            const Live& skip = kept.back();
            if (skip.index == at.index) continue;
            // The CPU joins int8 of one scale alone.
            if (!is_signed_ && chance(2)) {
                at = beside(skip, at);
                continue;
            }
            if (at.c != skip.c) at = convolution(at, skip.c, 1);
            at = sum(skip, at);
        }
        return finish(at);
    }

  private:
    using Live = test::Live;

    Live input(std::int32_t h, std::int32_t w, std::int32_t c) {
        Live in{0, h, w, c, scale(), zero(), false};
        in.index = builder_.input("in", type(), shape(in), numbers(in));
        return in;
    }
    Live tensor(const Live& like, std::int32_t channels) {
        Live out = like;
        out.c = channels;
        out.scale = scale();
        out.zero = zero();
        out.index = made(out);
        return out;
    }
    Live convolution(const Live& in, std::int32_t channels, std::int32_t side) {
        const Live out = tensor(in, channels);
        const auto taps =
            constant<std::uint8_t>(type(), {channels, side, side, in.c},
                                   weights(static_cast<std::size_t>(channels * side * side * in.c)),
                                   model::per_tensor(0.004F, is_signed_ ? 0 : 128));
        builder_.add(
            model::Op::conv_2d, {in.index, taps}, {out.index},
            model::Conv2dOptions{model::Padding::same, 1, 1, 1, 1, model::Activation::none, {}});
        return out;
    }
    Live sum(const Live& a, const Live& b) {
        const Live out = tensor(a, a.c);
        builder_.add(model::Op::add, {a.index, b.index}, {out.index}, model::AddOptions{});
        return out;
    }
    Live beside(const Live& a, const Live& b) {
        const Live out = tensor(a, a.c + b.c);
        builder_.add(model::Op::concatenation, {a.index, b.index}, {out.index},
                     model::ConcatenationOptions{3});
        return out;
    }
    model::Model finish(const Live& out) {
        builder_.output(out.index);
        return builder_.finish().value();
    }
};

/// 64 x 64 x 32 on every tile, and a sixteenth of 64 x 64 x 208: more than 192 KiB.
model::Model too_long() {
    return SkipMaker(1).turned(64, 208, 32);
}

std::size_t on_chip(const edgetpu::Compiled& compiled) {
    return static_cast<std::size_t>(
        std::ranges::count_if(compiled.operators, [](const auto& op) { return op.on_chip; }));
}

edgetpu::Package package_in(const model::Model& compiled) {
    return std::move(edgetpu::packages_of(compiled).value().at(0).package);
}

/// Transfers of scratch memory and fences, in order.
std::vector<std::string> scratch_hints(const edgetpu::Executable& executable) {
    std::vector<std::string> out;
    for (const auto& hint : executable.dma_hints->hints) {
        if (std::holds_alternative<edgetpu::FenceHint>(hint.what)) out.emplace_back("fence");
        const auto* dma = std::get_if<edgetpu::DmaDescriptorHint>(&hint.what);
        if (dma == nullptr || dma->meta.base != edgetpu::BaseAddress::scratch) continue;
        out.push_back(fmt::format("{} {} at {}",
                                  hint.direction == edgetpu::Direction::infeed ? "in" : "out",
                                  dma->size_bytes, dma->offset_bytes));
    }
    return out;
}

TEST(Spill, WhatBandsDoNotMakeFitFitsWithALongSkipOnTheHost) {
    const auto model = too_long();
    const auto without = edgetpu::compile(model, spilling("never"));
    ASSERT_TRUE(without) << without.error().message();
    EXPECT_LT(on_chip(*without), 5U);
    const auto compiled = edgetpu::compile(model, {.print_after = "spill"});
    ASSERT_TRUE(compiled) << compiled.error().message();
    EXPECT_EQ(on_chip(*compiled), 5U);
    EXPECT_THAT(compiled->listing, testing::HasSubstr(": spill of "));
    EXPECT_THAT(compiled->listing, testing::HasSubstr(": fetch of "));
    const auto& program = compiled->programs.front();
    ASSERT_EQ(program.spilled.size(), 1U);
    EXPECT_EQ(program.spilled.front().name, "t1");
    EXPECT_EQ(program.spilled.front().bytes, 64U * 64 * 208);
    EXPECT_EQ(program.spilled.front().fetches, 1U);
    EXPECT_EQ(program.host_bytes, 64U * 64 * 208);
    const auto package = package_in(compiled->model);
    const auto* executable = package.find(edgetpu::ExecutableType::execution_only);
    ASSERT_NE(executable, nullptr);
    EXPECT_EQ(executable->scratch_size_bytes, 64 * 64 * 208);
    EXPECT_THAT(scratch_hints(*executable),
                testing::ElementsAre("out 851968 at 0", "fence", "in 851968 at 0"));
    EXPECT_EQ(test::outcome_of(model).problem, "");
}

/// All of them that can, and as many as a smaller chip needs.
TEST(Spill, RandomNetworksWithLongSkipsGiveTheSameBytes) {
    const auto [first, count] = test::drawn_seeds(40);
    std::size_t all = 0, needed = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(seed);
        const auto model = SkipMaker(seed).random();
        const auto whole = edgetpu::compile(model, spilling("never"));
        const auto every = edgetpu::compile(model, spilling("always"));
        ASSERT_TRUE(whole && every);
        EXPECT_TRUE(whole->programs.front().spilled.empty());
        all += every->programs.front().spilled.empty() ? 0 : 1;
        EXPECT_EQ(test::outcome_of(model, spilling("always")).problem, "");
        const edgetpu::CompileOptions less{.most_activation_bytes =
                                               whole->programs.front().narrow_bytes * 3 / 4};
        const auto fitted = edgetpu::compile(model, less);
        if (!fitted || fitted->programs.front().spilled.empty()) continue;
        ++needed;
        const auto problem = test::outcome_of(model, less).problem;
        EXPECT_TRUE(problem.empty() || problem.starts_with("finding: reads a second time"))
            << problem;
    }
    fmt::print("{} of {} with tensors on the host, {} where they must be\n", all, count, needed);
    EXPECT_GE(6 * all, 5 * count);
    EXPECT_GE(12 * needed, count);
}

/// In place of bands, where the estimate is less with all transfers.
TEST(Spill, WhereItIsFasterThanBandsTheBytesAreTheSame) {
    const auto [first, count] = test::drawn_seeds(40);
    std::size_t faster = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(seed);
        const auto model = SkipMaker(seed).random();
        const auto whole = edgetpu::compile(model, {});
        ASSERT_TRUE(whole) << whole.error().message();
        const std::size_t less = whole->programs.front().narrow_bytes * 3 / 4;
        const auto needed = edgetpu::compile(model, {.most_activation_bytes = less});
        const edgetpu::CompileOptions options{.most_activation_bytes = less,
                                              .settings = {{"spill", "faster"}}};
        const auto chosen = edgetpu::compile(model, options);
        ASSERT_EQ(needed.has_value(), chosen.has_value());
        if (!needed) continue;
        const auto &one = needed->programs.front(), &other = chosen->programs.front();
        EXPECT_LE(other.seconds, one.seconds);
        if (one.spilled.size() == other.spilled.size()) continue;
        ++faster;
        const auto problem = test::outcome_of(model, options).problem;
        EXPECT_TRUE(problem.empty() || problem.starts_with("finding: reads a second time"))
            << problem;
    }
    fmt::print("{} of {} faster with tensors on the host than in bands\n", faster, count);
}

/// Every third with parameters that are streamed, too. All instructions of the steps that move
/// tensors have forms of the vendor's programs.
TEST(Spill, RandomNetworksGiveTheSameBytes) {
    const auto [first, count] = test::drawn_seeds(40);
    std::size_t spilled = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model =
            seed % 2 == 0 ? test::random_network(seed) : test::random_network_of_small_images(seed);
        auto options = spilling("always");
        options.most_programs = 1 + seed % 2;
        options.stream_parameters = seed % 3 == 0;
        options.list_forms = true;
        const auto compiled = edgetpu::compile(model, options);
        if (!compiled || compiled->programs.front().spilled.empty()) continue;
        ++spilled;
        for (const auto& form : compiled->forms.unproven)
            EXPECT_TRUE(form.part != "spill" && form.part != "fetch") << form.form;
        EXPECT_EQ(test::outcome_of(model, options).problem, "") << "seed " << seed;
    }
    EXPECT_GE(3 * spilled, count);
}

/// Through the whole driver, with one endpoint and with several.
TEST(Spill, ASimulatedStickGivesTheSimulatorsBytes) {
    const auto compiled = edgetpu::compile(too_long(), {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    const auto package = package_in(compiled->model);
    const auto program = edgetpu::usb::Program::prepare(package);
    ASSERT_TRUE(program) << program.error().message();
    std::vector<std::byte> in(edgetpu::tensor_bytes((*program)->inputs().front()).value());
    std::vector<std::byte> out(edgetpu::tensor_bytes((*program)->outputs().front()).value());
    std::mt19937 random(3);
    for (auto& byte : in) byte = static_cast<std::byte>(random());
    const std::vector<Bytes> ins{in};
    const std::vector<MutableBytes> outs{out};
    edgetpu::Simulator chip;
    auto simulated = edgetpu::SimulatedPackage::prepare(package);
    ASSERT_TRUE(simulated) << simulated.error().message();
    ASSERT_TRUE(simulated->run(chip, ins, outs));
    const auto expected = out;
    for (const auto endpoints :
         {edgetpu::usb::Endpoints::single, edgetpu::usb::Endpoints::multiple}) {
        const auto bus = std::make_shared<edgetpu::usb::SimulatedBus>();
        bus->plug({.port = "1-1", .has_firmware = true, .faults = {}},
                  std::make_unique<edgetpu::usb::SimulatorCore>(edgetpu::SimulatorOptions{}));
        auto device =
            edgetpu::usb::Device::open(bus, {.port = {}, .endpoints = endpoints, .firmware = {}});
        ASSERT_TRUE(device) << device.error().message();
        for (int run = 0; run < 2; ++run) {
            std::ranges::fill(out, std::byte{});
            const auto done = (*device)->run(*program, ins, outs);
            ASSERT_TRUE(done) << done.error().message();
            EXPECT_TRUE(out == expected);
        }
    }
}

TEST(Spill, RefusesOtherWordsAndTheVendorsSchedule) {
    const auto model = test::random_network(7);
    EXPECT_EQ(edgetpu::compile(model, spilling("sometimes")).error().cause, Cause::bad_argument);
    auto vendor = spilling("always");
    vendor.schedule = chip::Schedule::vendor;
    EXPECT_EQ(edgetpu::compile(model, vendor).error().cause, Cause::bad_argument);
}

}  // namespace
}  // namespace reef
