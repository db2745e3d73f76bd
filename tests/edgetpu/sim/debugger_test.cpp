// The debugger of a simulated chip: what it shows against what is known otherwise, and that a run
// under it gives what a run without it gives.
#include "reef/edgetpu/debugger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "edgetpu/sim/core/scalar_core.h"
#include "reef/base/file.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/simulator.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

template <typename T>
T value_of(Result<T> result) {
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : T{};
}

/// A template's debugger, and its bytes from a run without one.
class DebuggedTemplate : public testing::Test {
  protected:
    void SetUp() override {
        REEF_SHARED_OR_SKIP(shared);
        folder = shared / "data/edgetpu/templates";
    }
    void open(const std::string& name) {
        const auto file = read_file((folder / (name + "_edgetpu.tflite")).string());
        ASSERT_TRUE(file);
        const auto model = model::read_tflite(*file);
        ASSERT_TRUE(model);
        package = value_of(packages_of(*model)).front().package;
        auto prepared = SimulatedPackage::prepare(package);
        ASSERT_TRUE(prepared);
        input = random_bytes(tensor_bytes(prepared->executable().inputs[0]).value(), 5);
        output.resize(tensor_bytes(prepared->executable().outputs[0]).value());
        Simulator chip;
        const std::vector<Bytes> inputs = {input};
        const std::vector<MutableBytes> outputs = {output};
        ASSERT_TRUE(prepared->run(chip, inputs, outputs));
        auto opened = simulated_debugger(package, inputs);
        ASSERT_TRUE(opened) << opened.error().message();
        debugger = std::move(*opened);
    }
    /// The first instruction of that name in the computing executable.
    ProgramWord word_of(std::string_view mnemonic) {
        const StreamView stream = debugger->streams().back();
        InstructionCursor cursor(stream.bytes);
        while (const auto one = cursor.next())
            if (one->info->name == mnemonic)
                return {stream.first.executable, stream.first.stream, one->word};
        ADD_FAILURE() << "no " << mnemonic;
        return {};
    }
    RunStop run(RunUntil until, std::uint64_t count = 1) {
        return value_of(debugger->run(until, count));
    }
    EngineState engine(unsigned tile, std::string_view name) {
        for (const auto& state : value_of(debugger->engines()))
            if (state.unit.tile == TileNumber{tile} && state.unit.engine == name) return state;
        return {};
    }

    std::filesystem::path folder;
    Package package;
    std::vector<std::byte> input;
    std::vector<std::byte> output;
    std::unique_ptr<Debugger> debugger;
};

TEST_F(DebuggedTemplate, ARunGivesTheBytesOfAnUndisturbedRun) {
    for (const char* name : {"dense_256", "gabor_64x64_7k_4o_2s", "bright_16x16"}) {
        open(name);
        EXPECT_EQ(run(RunUntil::breakpoint).reason, RunStop::Reason::ended);
        EXPECT_EQ(value_of(debugger->outputs()).at(0), output) << name;
        ASSERT_TRUE(debugger->restart());
        for (unsigned i = 0; i < 50; ++i)
            EXPECT_EQ(run(RunUntil::instruction, 3).reason, RunStop::Reason::stepped);
        EXPECT_EQ(run(RunUntil::breakpoint).reason, RunStop::Reason::ended);
        EXPECT_EQ(value_of(debugger->outputs()).at(0), output) << name;
    }
}

// dense_256: 16 tiles of which 4 have 64 outputs each; its output nest begins at byte 256.
TEST_F(DebuggedTemplate, NarrowMemoryHoldsTheOutputsAfterTheMultiplication) {
    open("dense_256");
    const ProgramWord mac = word_of("mac");
    ASSERT_TRUE(debugger->add_breakpoint(WordBreak{mac}));
    ASSERT_TRUE(debugger->add_breakpoint(WordBreak{mac, true}));
    const RunStop before = run(RunUntil::breakpoint);
    ASSERT_EQ(before.reason, RunStop::Reason::breakpoint);
    EXPECT_EQ(before.events[0].kind, DebugEvent::Kind::starts);
    EXPECT_EQ(before.events[0].at, mac);
    const EngineState state = engine(before.events[0].unit.tile->value, "OP");
    ASSERT_EQ(state.at, mac);
    const auto in = std::ranges::find(state.nests, "in", &NestState::name);
    ASSERT_NE(in, state.nests.end());
    EXPECT_EQ(in->visits_done, 0U) << "it has not begun";
    EXPECT_EQ(in->visits, 64U) << "256 inputs, four at a time";

    const RunStop after = run(RunUntil::breakpoint);
    ASSERT_EQ(after.reason, RunStop::Reason::breakpoint);
    EXPECT_EQ(after.events[0].kind, DebugEvent::Kind::finishes);
    // The plain model's outputs: tile t computes 64 of them.
    std::vector<std::byte> gathered;
    for (unsigned tile = 0; tile < 4; ++tile) {
        const auto bytes = value_of(
            debugger->read_memory({ChipMemory::narrow, TileNumber{tile}, 0x100, 0x100 + 63}));
        gathered.insert(gathered.end(), bytes.begin(), bytes.end());
    }
    EXPECT_EQ(gathered, output);
    // The inputs lie in front, as they came.
    EXPECT_EQ(value_of(debugger->read_memory({ChipMemory::narrow, TileNumber{0}, 0, 255})), input);
}

TEST_F(DebuggedTemplate, AWriteBreakStopsAtTheInstructionThatWrites) {
    open("dense_256");
    const ProgramWord mac = word_of("mac");
    // Output 5 of tile 2: only the multiplication writes there, before and after nothing does.
    const MemoryRange where{ChipMemory::narrow, TileNumber{2}, 0x105, 0x105};
    ASSERT_TRUE(debugger->add_breakpoint(WriteBreak{where}));
    const RunStop stop = run(RunUntil::breakpoint);
    ASSERT_EQ(stop.reason, RunStop::Reason::breakpoint);
    ASSERT_EQ(stop.events.size(), 1U);
    EXPECT_EQ(stop.events[0].kind, DebugEvent::Kind::writes);
    EXPECT_EQ(stop.events[0].at, mac);
    EXPECT_EQ(stop.events[0].unit.tile, TileNumber{2});
    EXPECT_EQ(stop.events[0].unit.engine, "OP");
    EXPECT_EQ(stop.events[0].memory->first, 0x104U);
    EXPECT_EQ(value_of(debugger->read_memory(where))[0], output[128 + 5]);
    EXPECT_EQ(debugger->breakpoints()[0].hits, 1U);
    EXPECT_EQ(run(RunUntil::breakpoint).reason, RunStop::Reason::ended);

    // Wide row 2 of tile 0 gets its weights from a ring, in the caching program.
    ASSERT_TRUE(debugger->restart());
    ASSERT_TRUE(debugger->delete_breakpoint(1));
    ASSERT_TRUE(debugger->add_breakpoint(WriteBreak{{ChipMemory::wide, TileNumber{0}, 2, 2}}));
    const RunStop row = run(RunUntil::breakpoint);
    ASSERT_EQ(row.reason, RunStop::Reason::breakpoint);
    EXPECT_THAT(std::string(row.events[0].instruction), HasSubstr("ring_receive"));
    EXPECT_EQ(row.events[0].at.executable, debugger->streams().front().first.executable);
}

TEST_F(DebuggedTemplate, ATileOfAWordBreakIsThatTile) {
    open("gabor_64x64_7k_4o_2s");
    const ProgramWord mac = debugger->layers().back().instructions.front();
    ASSERT_TRUE(debugger->add_breakpoint(WordBreak{mac, false, TileNumber{9}}));
    const RunStop stop = run(RunUntil::breakpoint);
    ASSERT_EQ(stop.reason, RunStop::Reason::breakpoint);
    EXPECT_EQ(stop.events[0].unit.tile, TileNumber{9});
    EXPECT_EQ(engine(9, "OP").nests[0].visits_done, 0U);
    // It walks one step in a round, or says what it waits for.
    std::uint64_t waited = 0;
    for (std::uint64_t done = 0; done < 20;) {
        run(RunUntil::round);
        const EngineState state = engine(9, "OP");
        ASSERT_EQ(state.at, mac);
        ASSERT_EQ(state.nests[0].visits_done, done + (state.waits.empty() ? 1 : 0));
        waited += state.waits.empty() ? 0 : 1;
        done = state.nests[0].visits_done;
    }
    EXPECT_GT(waited, 0U) << "parameters come while it waits";
    EXPECT_EQ(run(RunUntil::breakpoint).reason, RunStop::Reason::ended);
}

TEST_F(DebuggedTemplate, LayersFollowEachOther) {
    open("gabor_64x64_7k_4o_2s");
    const auto layers = debugger->layers();
    ASSERT_GE(layers.size(), 2U);
    for (const ProgramLayer& layer : layers) {
        const RunStop stop = run(RunUntil::layer);
        ASSERT_EQ(stop.reason, RunStop::Reason::stepped);
        EXPECT_EQ(stop.events[0].at, layer.instructions.front());
        EXPECT_EQ(engine(stop.events[0].unit.tile->value, "OP").nests[0].visits_done, 0U);
    }
    EXPECT_EQ(run(RunUntil::layer).reason, RunStop::Reason::ended);
    EXPECT_EQ(value_of(debugger->outputs()).at(0), output);
}

// The scalar core's registers and scalar memory against the core run by itself over the program's
// own instructions: dense_256 is a straight line.
TEST_F(DebuggedTemplate, RegistersAreThoseOfTheCoreAlone) {
    open("dense_256");
    const StreamView stream = debugger->streams().front();
    sim::ScalarCore core;
    std::size_t steps = 0;
    InstructionCursor cursor(stream.bytes);
    for (auto one = cursor.next(); one && one->info->name != "halt"; one = cursor.next(), ++steps) {
        if (sim::ScalarCore::executes(*one)) {
            ASSERT_TRUE(core.execute(*one));
        } else {
            core.pass(*one);
        }
        while (true) {
            const CoreState state = value_of(debugger->core());
            ASSERT_TRUE(state.at);
            if (state.at->word == core.program_counter()) break;
            run(RunUntil::round);
        }
        const CoreState state = value_of(debugger->core());
        EXPECT_TRUE(std::ranges::equal(state.registers[scalar_file], core.registers()))
            << one->word;
        EXPECT_TRUE(std::ranges::equal(state.registers[predicate_file], core.predicates()))
            << one->word;
    }
    EXPECT_GT(steps, 10U);
}

TEST_F(DebuggedTemplate, BreaksOfTheScalarCoreComeBeforeTheInstruction) {
    open("dense_256");
    const ProgramWord sync = word_of("sync");
    const ProgramWord bundle = word_of("bundle");
    const ProgramWord fence = word_of("fence");
    for (const ProgramWord& word : {sync, bundle, fence})
        ASSERT_TRUE(debugger->add_breakpoint(WordBreak{word}));
    std::vector<ProgramWord> hits;
    for (RunStop stop = run(RunUntil::breakpoint); stop.reason != RunStop::Reason::ended;
         stop = run(RunUntil::breakpoint)) {
        for (const DebugEvent& event : stop.events) {
            hits.push_back(event.at);
            if (event.at == fence)
                EXPECT_EQ(event.unit.engine, "dispatch");
            else
                EXPECT_EQ(value_of(debugger->core()).at, event.at);
        }
    }
    for (const ProgramWord& word : {sync, bundle, fence})
        EXPECT_EQ(std::ranges::count(hits, word), 1) << word.word;
}

TEST_F(DebuggedTemplate, RegistersCanBeWritten) {
    open("dense_256");
    ASSERT_TRUE(debugger->write_register("s7", 0xdeadbeef));
    ASSERT_TRUE(debugger->write_register("p3", 1));
    EXPECT_EQ(value_of(debugger->read_register("s7")), 0xdeadbeefU);
    const CoreState core = value_of(debugger->core());
    EXPECT_EQ(core.registers[scalar_file][7], 0xdeadbeefU);
    EXPECT_EQ(core.registers[predicate_file][3], 1U);
    EXPECT_EQ(debugger->write_register("s7", 0x100000000).error().cause, Cause::bad_argument);
    EXPECT_EQ(debugger->write_register("p3", 2).error().cause, Cause::bad_argument);
    EXPECT_EQ(debugger->read_register("s32").error().cause, Cause::not_found);
    EXPECT_EQ(debugger->read_register("currentPc").error().cause, Cause::not_found);
}

TEST_F(DebuggedTemplate, WhatDoesNotExistIsRefused) {
    open("dense_256");
    ProgramWord inside = word_of("mac");
    ++inside.word;
    const auto refused = debugger->add_breakpoint(WordBreak{inside});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("mac contains it"));
    ProgramWord beyond = inside;
    beyond.word = 1 << 20;
    EXPECT_FALSE(debugger->add_breakpoint(WordBreak{beyond}));
    EXPECT_FALSE(debugger->add_breakpoint(WordBreak{word_of("sync"), false, TileNumber{1}}));
    EXPECT_FALSE(debugger->add_breakpoint(WriteBreak{{ChipMemory::wide, {}, 0, 0x820}}));
    EXPECT_FALSE(debugger->add_breakpoint(WriteBreak{{ChipMemory::scalar, TileNumber{1}, 0, 0}}));
    EXPECT_FALSE(debugger->delete_breakpoint(1));
    EXPECT_FALSE(debugger->read_memory({ChipMemory::narrow, {}, 0, 0}));
    EXPECT_FALSE(debugger->read_memory({ChipMemory::narrow, TileNumber{16}, 0, 0}));
    EXPECT_FALSE(debugger->read_memory({ChipMemory::narrow, TileNumber{0}, 0, 0x40000}));
    EXPECT_FALSE(debugger->read_memory({ChipMemory::scalar, TileNumber{0}, 0, 0}));
    EXPECT_FALSE(debugger->outputs()) << "it has not ended";
    run(RunUntil::breakpoint);
    EXPECT_EQ(debugger->run(RunUntil::round, 1).error().cause, Cause::bad_argument);
}

TEST_F(DebuggedTemplate, ADeadlockCanBeLookedAt) {
    open("dense_256");
    // A counter that the first multiplication waits for never comes so far.
    auto& executable = package.executables[debugger->streams().back().first.executable];
    auto& stream = executable.bitstreams.front().instructions;
    std::vector<std::byte> bytes(stream.view().begin(), stream.view().end());
    const ProgramWord mac = word_of("mac");
    const auto* info = find_instruction("mac");
    const auto part = MutableBytes(bytes).subspan(mac.word * word_bytes, info->size_bytes());
    ASSERT_TRUE(set_field(part, *info->find("wait0.start"), 3000));
    stream = SharedBytes::copy_of(bytes);
    const std::vector<Bytes> inputs = {input};
    debugger = value_of(simulated_debugger(package, inputs));
    const auto stopped = debugger->run(RunUntil::breakpoint, 1);
    ASSERT_FALSE(stopped);
    EXPECT_THAT(stopped.error().message(), HasSubstr("deadlock"));
    EXPECT_THAT(engine(0, "OP").waits, HasSubstr(">= 3000"));
    EXPECT_FALSE(debugger->run(RunUntil::round, 1));
    EXPECT_TRUE(debugger->restart());
    EXPECT_TRUE(debugger->run(RunUntil::round, 1));
}

}  // namespace
}  // namespace reef::edgetpu
