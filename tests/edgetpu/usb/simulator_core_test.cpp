// The simulated chip as bytes by tag, in pieces of any size.
#include "reef/edgetpu/usb/simulator_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "edgetpu/sim/copy_program.h"
#include "edgetpu/usb/stream_port.h"
#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu::usb {
namespace {

using sim::copied_bytes;
using sim::copy_program;
using sim::interrupting_copy_program;
using sim::with;
using ::testing::HasSubstr;

struct Streams {
    std::vector<std::byte> instructions, parameters, input;
};

Streams streams_of(const std::string& text, unsigned seed = 1) {
    const auto package = sim::copy_package(text);
    const auto view = [](const SharedBytes& bytes) {
        const Bytes all = bytes.view();
        return std::vector<std::byte>(all.begin(), all.end());
    };
    Streams streams{.instructions = view(package.executables[0].bitstreams[0].instructions),
                    .parameters = view(package.executables[0].parameters),
                    .input = std::vector<std::byte>(copied_bytes)};
    std::mt19937 random(seed);
    for (auto& byte : streams.input) byte = static_cast<std::byte>(random());
    return streams;
}

Status send(ChipCore& core, const Streams& streams) {
    REEF_CHECK(core.receive(Tag::instructions, streams.instructions));
    REEF_CHECK(core.receive(Tag::parameters, streams.parameters));
    return core.receive(Tag::input_activations, streams.input);
}

std::vector<std::byte> output_of(ChipCore& core, std::size_t room_bytes = 1024) {
    std::vector<std::byte> all, room(room_bytes);
    while (const std::size_t size = core.take_output(room))
        all.insert(all.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(size));
    return all;
}

/// Tags of what take_event() gives.
std::vector<Tag> events_of(ChipCore& core) {
    std::vector<Tag> tags;
    while (const auto event = core.take_event()) tags.push_back(event->tag);
    return tags;
}

TEST(SimulatorCore, RunsAProgramWhenItsBytesAreThere) {
    SimulatorCore core;
    const auto streams = streams_of(interrupting_copy_program());
    EXPECT_EQ(core.standstill(), "");
    ASSERT_TRUE(core.receive(Tag::instructions, streams.instructions));
    EXPECT_THAT(core.standstill(), HasSubstr("waits for data of the host"));
    ASSERT_TRUE(core.receive(Tag::parameters, streams.parameters));
    EXPECT_TRUE(output_of(core).empty());
    ASSERT_TRUE(core.receive(Tag::input_activations, streams.input));
    EXPECT_EQ(core.standstill(), "");
    EXPECT_EQ(output_of(core), streams.input);
    EXPECT_THAT(events_of(core), testing::ElementsAre(Tag::parameters, Tag::input_activations,
                                                      Tag::output_activations, Tag::interrupt_0));
}

// The host may wait for it before it reads the output.
TEST(SimulatorCore, AnInterruptComesWhenTheOutputAskedForBeforeIsThere) {
    SimulatorCore core;
    const auto streams = streams_of(interrupting_copy_program());
    ASSERT_TRUE(core.receive(Tag::instructions, streams.instructions));
    ASSERT_TRUE(core.receive(Tag::parameters, streams.parameters));
    EXPECT_FALSE(core.idle());
    EXPECT_THAT(events_of(core), testing::Not(testing::Contains(Tag::interrupt_0)));
    ASSERT_TRUE(core.receive(Tag::input_activations, streams.input));
    EXPECT_TRUE(core.idle());
    EXPECT_THAT(events_of(core), testing::Contains(Tag::interrupt_0));
    EXPECT_EQ(output_of(core), streams.input);
}

TEST(StreamPort, AnEventThatWaitsForTheHostSaysForHowMuch) {
    StreamPort port;
    ASSERT_TRUE(port.fire({.address = {}, .bytes = 20000, .tag = Tag::output_activations}));
    ASSERT_TRUE(port.fire({.address = {}, .bytes = 0, .tag = Tag::interrupt_0}));
    const std::vector<std::uint8_t> bytes(20000);
    EXPECT_TRUE(port.take_event());  // of the output's descriptor
    EXPECT_EQ(port.output_before_event(), 0U);
    ASSERT_TRUE(port.give(bytes));
    EXPECT_EQ(port.output_before_event(), 20000U);
    EXPECT_FALSE(port.take_event());
    std::vector<std::byte> room(10144);
    EXPECT_EQ(port.take_output(room), 10144U);
    EXPECT_EQ(port.output_before_event(), 0U);
    EXPECT_TRUE(port.take_event());
}

TEST(SimulatorCore, EventsSayWhatTheDescriptorsSay) {
    SimulatorCore core;
    ASSERT_TRUE(send(core, streams_of(copy_program())));
    const auto parameters = core.take_event(), input = core.take_event();
    ASSERT_TRUE(parameters && input);
    EXPECT_EQ(parameters->address, std::uint64_t{1} << 32U);
    EXPECT_EQ(parameters->size, 256U);
    EXPECT_EQ(input->address, std::uint64_t{3} << 32U);
    EXPECT_EQ(input->size, 64U);
}

TEST(SimulatorCore, PiecesOfAnySizeInAnyOrderGiveTheSame) {
    std::mt19937 random(5);
    for (unsigned trial = 0; trial < 50; ++trial) {
        SimulatorCore core(trial % 2 == 0 ? SimulatorOptions{}
                                          : SimulatorOptions{.random_seed = trial});
        // Three inferences: bytes of one may come before the one before is done.
        Streams all, wanted;
        for (unsigned seed = 0; seed < 3; ++seed) {
            const auto streams = streams_of(interrupting_copy_program(), seed);
            const auto add = [](auto& to, const auto& from) {
                to.insert(to.end(), from.begin(), from.end());
            };
            add(all.instructions, streams.instructions);
            add(all.parameters, streams.parameters);
            add(all.input, streams.input);
        }
        struct Left {
            Tag tag;
            Bytes bytes;
        };
        std::vector<Left> left = {{Tag::instructions, all.instructions},
                                  {Tag::parameters, all.parameters},
                                  {Tag::input_activations, all.input}};
        std::vector<std::byte> got;
        while (!left.empty()) {
            const std::size_t which = random() % left.size();
            Bytes& bytes = left[which].bytes;
            const std::size_t size = std::min<std::size_t>(1 + random() % 200, bytes.size());
            ASSERT_TRUE(core.receive(left[which].tag, bytes.first(size)));
            bytes = bytes.subspan(size);
            if (bytes.empty()) left.erase(left.begin() + static_cast<std::ptrdiff_t>(which));
            const auto some = output_of(core, 1 + random() % 100);
            got.insert(got.end(), some.begin(), some.end());
        }
        EXPECT_EQ(got, all.input) << "trial " << trial;
        EXPECT_EQ(core.translations(), 1U);
    }
}

TEST(SimulatorCore, OutputEndsWithItsDescriptor) {
    SimulatorCore core;
    ASSERT_TRUE(send(core, streams_of(copy_program())));
    ASSERT_TRUE(send(core, streams_of(copy_program())));
    std::vector<std::byte> room(1000);
    EXPECT_EQ(core.take_output(room), 64U);
    EXPECT_EQ(core.take_output(MutableBytes(room).first(40)), 40U);
    EXPECT_EQ(core.take_output(room), 24U);
    EXPECT_EQ(core.take_output(room), 0U);
}

TEST(SimulatorCore, WhatTheChipDoesNotKnowStopsItUntilAReset) {
    SimulatorCore core;
    const auto good = streams_of(copy_program());
    auto bad = good;
    std::memset(bad.instructions.data(), 0xff, 16);
    const auto refused = core.receive(Tag::instructions, bad.instructions);
    ASSERT_FALSE(refused);
    EXPECT_FALSE(core.receive(Tag::instructions, good.instructions));
    EXPECT_EQ(core.standstill(), refused.error().message());
    std::vector<std::byte> room(100);
    EXPECT_EQ(core.take_output(room), 0U);
    EXPECT_FALSE(core.take_event());
    core.reset();
    EXPECT_EQ(core.standstill(), "");
    ASSERT_TRUE(send(core, good));
    EXPECT_EQ(output_of(core), good.input);
}

TEST(SimulatorCore, AResetForgetsWhatWasBegun) {
    SimulatorCore core;
    const auto streams = streams_of(copy_program());
    ASSERT_TRUE(core.receive(Tag::instructions, Bytes(streams.instructions).first(100)));
    ASSERT_TRUE(core.receive(Tag::input_activations, Bytes(streams.input).first(10)));
    core.reset();
    ASSERT_TRUE(send(core, streams));
    EXPECT_EQ(output_of(core), streams.input);
}

TEST(SimulatorCore, ADeadlockThatTheHostCannotEndNamesItsInstructions) {
    SimulatorCore core;
    const auto stuck = core.receive(
        Tag::instructions,
        streams_of("start\nsync notified.count=1 notified.tiles=t0\nhalt\nend bits=128\n")
            .instructions);
    ASSERT_FALSE(stuck);
    EXPECT_THAT(stuck.error().message(), HasSubstr("deadlock"));
    EXPECT_THAT(core.standstill(), HasSubstr("sync"));
}

TEST(SimulatorCore, ATransferThatTheProgramDoesNotUseIsAnError) {
    SimulatorCore core;
    const auto streams = streams_of(
        "start\nbundle alu=movi(s1,s0,3)\nbundle alu=movi(s2,s0,64)\n"
        "bundle alu=movi(s3,s0,1)\nbundle store=descriptor(1,s1)\n"
        "bundle store=descriptor(2,s2)\nbundle store=descriptor(3,s3)\n"
        "bundle store=fire(0,s0)\nhalt\nend bits=128\n");
    const auto ended = core.receive(Tag::instructions, streams.instructions);
    ASSERT_FALSE(ended);
    EXPECT_THAT(ended.error().message(), HasSubstr("64 bytes not taken"));
}

TEST(SimulatorCore, EndlessStreamsAreRefused) {
    SimulatorCore core;
    const std::vector<std::byte> halts = [] {
        const auto one = assemble("halt\n").value();
        std::vector<std::byte> many;
        while (many.size() < 1U << 20U) many.insert(many.end(), one.begin(), one.end());
        return many;
    }();
    Status status;
    for (int i = 0; i < 20 && status; ++i) status = core.receive(Tag::instructions, halts);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message(), HasSubstr("without an end"));
}

TEST(SimulatorCore, MutatedProgramsStopTheChipOrRunAndAResetHelps) {
    std::mt19937 random(9);
    SimulatorCore core({.most_steps = 20'000});
    const auto good = streams_of(interrupting_copy_program());
    unsigned stopped = 0, hung = 0;
    for (unsigned trial = 0; trial < 500; ++trial) {
        auto bad = good;
        for (unsigned change = 0; change <= trial % 4; ++change) {
            const std::size_t at = random() % bad.instructions.size();
            bad.instructions[at] ^= static_cast<std::byte>(1U << random() % 8);
        }
        Status status = core.receive(Tag::instructions, bad.instructions);
        if (status) status = core.receive(Tag::parameters, bad.parameters);
        if (status) status = core.receive(Tag::input_activations, bad.input);
        output_of(core, 1 + random() % 100);
        events_of(core);
        const std::string why = core.standstill();
        if (!status) {
            ++stopped;
            EXPECT_EQ(why, status.error().message());
        }
        hung += status && !why.empty();
        core.reset();
        ASSERT_TRUE(send(core, good)) << "trial " << trial << ": " << core.standstill();
        ASSERT_EQ(output_of(core), good.input) << "trial " << trial;
        core.reset();
    }
    EXPECT_GT(stopped, 50U);
    EXPECT_GT(hung, 0U);
}

TEST(SimulatorCore, ProgramsThatAreUsedAgainAreTranslatedOnce) {
    SimulatorCore core;
    const auto a = streams_of(copy_program()), b = streams_of(interrupting_copy_program());
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(send(core, i % 2 == 0 ? a : b));
        EXPECT_EQ(output_of(core), a.input);
        events_of(core);
    }
    EXPECT_EQ(core.translations(), 2U);
}

}  // namespace
}  // namespace reef::edgetpu::usb
