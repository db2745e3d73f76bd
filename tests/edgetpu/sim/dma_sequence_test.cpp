#include "edgetpu/sim/core/dma_sequence.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../package/package_data.h"
#include "reef/edgetpu/assembly.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

using ::testing::HasSubstr;

/// The transfers and interrupts of the hints.
std::vector<FiredTransfer> hinted(const DmaHints& hints) {
    std::vector<FiredTransfer> out;
    for (const auto& hint : hints.hints) {
        if (const auto* interrupt = std::get_if<InterruptHint>(&hint.what)) {
            const auto tag = static_cast<std::uint32_t>(Tag::interrupt_0) +
                             static_cast<std::uint32_t>(interrupt->interrupt);
            out.push_back({.tag = static_cast<Tag>(tag)});
        }
        const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what);
        if (!transfer) continue;
        auto tag =
            hint.direction == Direction::infeed ? Tag::input_activations : Tag::output_activations;
        if (transfer->meta.base == BaseAddress::parameter) tag = Tag::parameters;
        out.push_back({tag, transfer->meta.base, transfer->meta.name,
                       static_cast<std::uint64_t>(transfer->offset_bytes),
                       static_cast<std::uint64_t>(transfer->size_bytes)});
    }
    return out;
}

std::string text(const std::vector<FiredTransfer>& transfers) {
    std::string out;
    for (const auto& t : transfers)
        out += fmt::format("tag {} region {} {} offset {} bytes {}\n", static_cast<unsigned>(t.tag),
                           static_cast<int>(t.region), t.layer, t.offset, t.bytes);
    return out;
}

TEST(DmaSequence, EqualsTheHintsOfEveryDeterministicProgram) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t equal = 0;
    for (const auto& path : test::compiled_files()) {
        for (const auto& compiled : test::packages_in(path)) {
            for (const auto& executable : compiled.package.executables) {
                SCOPED_TRACE(path.filename().string() + " " + to_string(executable.type));
                ASSERT_TRUE(executable.dma_hints);
                const auto fired = dma_sequence(executable);
                ASSERT_TRUE(fired) << fired.error().message();
                if (!executable.dma_hints->fully_deterministic) continue;
                const auto expected = merged(hinted(*executable.dma_hints));
                EXPECT_EQ(text(merged(*fired)), text(expected));
                ++equal;
            }
        }
    }
    EXPECT_GE(equal, 37u) << shared;
}

const Executable* lstm(const std::vector<CompiledOperator>& packages) {
    return packages.empty() ? nullptr : packages[0].package.find(ExecutableType::execution_only);
}

// Its hints end with the inputs. What follows runs its branches: 28 time steps write a piece of the
// scratch region each, which then comes back as a whole, and the layers' sizes are known.
TEST(DmaSequence, RunsTheBranchesOfTheLstm) {
    REEF_SHARED_OR_SKIP(shared);
    const auto packages =
        test::packages_in(shared / "data/models/keras_lstm_mnist_ptq_edgetpu.tflite");
    const auto* executable = lstm(packages);
    ASSERT_NE(executable, nullptr);
    ASSERT_FALSE(executable->dma_hints->fully_deterministic);
    auto expected = hinted(*executable->dma_hints);
    ASSERT_EQ(expected.size(), 4u);
    constexpr std::uint64_t time_steps = 28;
    const auto scratch = static_cast<std::uint64_t>(executable->scratch_size_bytes);
    for (std::uint64_t step = 0; step < time_steps; ++step)
        expected.push_back({Tag::output_activations, BaseAddress::scratch, "",
                            step * scratch / time_steps, scratch / time_steps});
    expected.push_back({Tag::input_activations, BaseAddress::scratch, "", 0, scratch});
    for (const auto& layer : executable->outputs)
        expected.push_back({Tag::output_activations, BaseAddress::output_activation, layer.name, 0,
                            static_cast<std::uint64_t>(layer.size_bytes)});
    expected.push_back({.tag = Tag::interrupt_0});
    const auto fired = dma_sequence(*executable);
    ASSERT_TRUE(fired) << fired.error().message();
    EXPECT_EQ(text(*fired), text(expected));
}

// Four tiles of the first column hold seven of the 28 input rows each, from byte 140 on.
TEST(DmaSequence, RegistersOfTheLstmChooseTheTileOfEachTimeStep) {
    REEF_SHARED_OR_SKIP(shared);
    const auto packages =
        test::packages_in(shared / "data/models/keras_lstm_mnist_ptq_edgetpu.tflite");
    const auto* executable = lstm(packages);
    ASSERT_NE(executable, nullptr);
    const auto instructions = decode(executable->bitstreams.at(0).instructions.view());
    ASSERT_TRUE(instructions);
    std::vector<TileIssue> sends;
    std::vector<TileIssue> copies;
    ScalarCore core;
    for (bool halted = false; !halted;) {
        const auto found =
            std::ranges::find(*instructions, core.program_counter(), &Instruction::word);
        ASSERT_NE(found, instructions->end());
        if (ScalarCore::executes(*found)) {
            const auto effect = core.execute(*found);
            ASSERT_TRUE(effect) << effect.error().message();
            halted = effect->halted;
            continue;
        }
        if (found->value("tiles.indirect").value_or(0) != 0) {
            const auto issue = core.issue(*found);
            ASSERT_TRUE(issue) << issue.error().message();
            (found->info->name == "ring_send" ? sends : copies).push_back(*issue);
        }
        core.pass(*found);
    }
    ASSERT_EQ(sends.size(), 28u);
    ASSERT_EQ(copies.size(), 28u);
    for (std::uint32_t row = 0; row < 28; ++row) {
        const auto tiles = static_cast<std::uint16_t>(1U << (row / 7 * 4));
        EXPECT_EQ(sends[row], (TileIssue{true, tiles, std::nullopt})) << row;
        EXPECT_EQ(copies[row], (TileIssue{true, tiles, (140 + row % 7 * 28) / 4})) << row;
    }
}

TEST(DmaSequence, RefusesProgramsThatRunInCircles) {
    const auto stream = assemble("branch offset=0\n");
    ASSERT_TRUE(stream);
    Executable executable;
    executable.bitstreams.push_back({SharedBytes::copy_of(*stream), {}});
    const auto fired = dma_sequence(executable, 1000);
    ASSERT_FALSE(fired);
    EXPECT_THAT(fired.error().message(), HasSubstr("the program does not halt"));
}

TEST(DmaSequence, RefusesStreamsWithoutHaltAndStrayAddresses) {
    Executable executable;
    executable.bitstreams.push_back({SharedBytes::copy_of(*assemble("bundle\n")), {}});
    EXPECT_THAT(dma_sequence(executable).error().message(),
                HasSubstr("chunk 0: word 0x1: no instruction begins here"));
    executable.bitstreams[0].instructions =
        SharedBytes::copy_of(*assemble("bundle alu.op=0x2f alu.dst=1 alu.operand=1\n"
                                       "bundle store.op=5 store.address=3 store.reg=1\n"
                                       "bundle store.op=6\nhalt\n"));
    EXPECT_THAT(dma_sequence(executable).error().message(),
                HasSubstr("chunk 0: word 0x2: a DMA descriptor has the address 0x0"));
}

TEST(DmaSequence, MergesWhatGoesOn) {
    const FiredTransfer first{Tag::output_activations, BaseAddress::scratch, "", 0, 24};
    const FiredTransfer second{Tag::output_activations, BaseAddress::scratch, "", 24, 8};
    const FiredTransfer apart{Tag::output_activations, BaseAddress::scratch, "", 40, 8};
    const FiredTransfer other{Tag::input_activations, BaseAddress::scratch, "", 48, 8};
    EXPECT_EQ(text(merged({first, second, apart, other})),
              text({{Tag::output_activations, BaseAddress::scratch, "", 0, 32}, apart, other}));
}

}  // namespace
}  // namespace reef::edgetpu::sim
