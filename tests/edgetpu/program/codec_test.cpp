#include "edgetpu/program/codec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "edgetpu/isa/program_data.h"
#include "edgetpu/program/encode_stream.h"
#include "edgetpu/sim/copy_program.h"
#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu::program {
namespace {

/// Whether the typed form makes the same bits again.
testing::AssertionResult comes_back(const edgetpu::Instruction& instruction) {
    const auto typed = decode(instruction);
    const auto again = encode(typed);
    if (!again) return testing::AssertionFailure() << again.error().message();
    if (&again->info() != instruction.info)
        return testing::AssertionFailure() << "became " << again->info().name;
    if (!std::ranges::equal(again->bytes(), instruction.bytes))
        return testing::AssertionFailure() << instruction.info->name << " has other bits";
    return testing::AssertionSuccess();
}

void expect_stream_comes_back(Bytes stream, const std::string& name) {
    const auto typed = decode_stream(stream);
    ASSERT_TRUE(typed) << name << ": " << typed.error().message();
    const auto again = encode_stream(*typed);
    ASSERT_TRUE(again) << name << ": " << again.error().message();
    EXPECT_TRUE(std::ranges::equal(*again, stream)) << name;
}

TEST(TypedProgram, EveryReferenceStreamComesBack) {
    std::size_t streams = 0;
    auto files = edgetpu::test::program_files();
    std::ranges::move(edgetpu::test::wild_program_files(), std::back_inserter(files));
    for (const auto& file : files)
        for (const auto& program : file.programs)
            for (std::size_t chunk = 0; chunk < program.chunks.size(); ++chunk) {
                expect_stream_comes_back(program.chunks[chunk],
                                         file.name + " " + program.chunk_name(chunk));
                ++streams;
            }
    if (files.empty()) GTEST_SKIP() << "no reference data";
    EXPECT_GE(streams, 100U);
}

TEST(TypedProgram, SmallProgramsComeBack) {
    for (const auto& text : {sim::copy_program(), sim::interrupting_copy_program()}) {
        const auto stream = assemble(text);
        ASSERT_TRUE(stream) << stream.error().message();
        expect_stream_comes_back(*stream, text.substr(0, 40));
    }
}

/// One field at a time set to random bits, over nothing and over random bits: any bits come back,
/// and no field's bits change another's member.
TEST(TypedProgram, AnyBitsComeBack) {
    std::mt19937_64 random(7);
    for (const auto& info : instruction_set()) {
        InstructionBuilder noise(info);
        for (const auto& field : info.fields) set_field_bits(noise.bytes(), field, random());
        EXPECT_TRUE(comes_back({&info, 0, noise.bytes()}));
        for (const auto& field : info.fields) {
            for (unsigned i = 0; i < 20; ++i) {
                InstructionBuilder one(info);
                set_field_bits(one.bytes(), field, i == 0 ? ~std::uint64_t{0} : random());
                EXPECT_TRUE(comes_back({&info, 0, one.bytes()})) << field.name;
                set_field_bits(noise.bytes(), field, random());
                EXPECT_TRUE(comes_back({&info, 0, noise.bytes()})) << field.name;
            }
        }
    }
}

/// A member holds what it stands for, or the bits are kept beside the members: a field's change
/// shows in one of the two.
TEST(TypedProgram, EveryFieldIsAMembersOrKeptByItsNumber) {
    for (const auto& info : instruction_set()) {
        const InstructionBuilder empty(info);
        const auto before = decode({&info, 0, empty.bytes()});
        const auto held = members_of(before.operation);
        for (std::size_t f = 0; f < info.fields.size(); ++f) {
            const auto& field = info.fields[f];
            InstructionBuilder one(info);
            const std::uint64_t usual = field.seen.empty() ? 0 : field.seen.front();
            const std::uint64_t other = usual == 1 ? 0 : 1;
            set_field_bits(one.bytes(), field, other);
            const auto after = decode({&info, 0, one.bytes()});
            if (held[f]) {
                EXPECT_FALSE(after.operation == before.operation) << info.name << " " << field.name;
                EXPECT_EQ(after.others, before.others) << info.name << " " << field.name;
                continue;
            }
            EXPECT_EQ(after.operation, before.operation) << info.name << " " << field.name;
            const auto kept = std::ranges::find(after.others, f, &OtherBits::field);
            ASSERT_NE(kept, after.others.end()) << info.name << " " << field.name;
            EXPECT_EQ(kept->bits, other);
        }
    }
}

/// What no program's purpose is known for, and nothing else, is no member.
TEST(TypedProgram, OnlyUnknownBitsAreNoMembers) {
    for (const auto& info : instruction_set()) {
        const InstructionBuilder empty(info);
        const auto held = members_of(decode({&info, 0, empty.bytes()}).operation);
        for (std::size_t f = 0; f < info.fields.size(); ++f)
            if (!held[f]) {
                EXPECT_EQ(info.fields[f].grade, Grade::guess)
                    << info.name << " " << info.fields[f].name;
            }
    }
}

TEST(TypedProgram, WhatACompilerWritesHasTheConstantBits) {
    const auto push = encode({RingPush{}});
    ASSERT_TRUE(push) << push.error().message();
    const auto read = [](const InstructionBuilder& one) {
        return edgetpu::Instruction{&one.info(), 0, one.bytes()};
    };
    EXPECT_EQ(read(*push).value("unknown_392"), 1);
    const auto mac = encode({Tensor{}});
    ASSERT_TRUE(mac) << mac.error().message();
    EXPECT_EQ(read(*mac).value("unknown_1844"), 1);
    EXPECT_TRUE(decode(read(*mac)).others.empty());
}

std::string refusal(TypedInstruction instruction) {
    const auto bits = encode(instruction);
    return bits ? "" : bits.error().message();
}

TEST(TypedProgram, ValuesWiderThanTheirFieldAreRefusedByName) {
    Bundle bundle;
    bundle.alu.dst = 32;
    EXPECT_EQ(refusal({bundle}), "bundle: alu.dst: 32 does not fit 5 bits (use 0 to 31)");
    RingSend send;
    send.src.base = 0x10000;
    EXPECT_THAT(refusal({send}), testing::HasSubstr("ring_send: src.base: 65536 does not fit"));
    send.src.base = 0;
    send.src.count[2] = 0;
    EXPECT_EQ(refusal({send}), "ring_send: src.limit2: a count of 0, of 1 to 65536");
    send.src.count[2] = 0x10001;
    EXPECT_EQ(refusal({send}), "ring_send: src.limit2: a count of 65537, of 1 to 65536");
    send.src = {.dimensions = 4};
    send.wait[1].level = 4;
    EXPECT_THAT(refusal({send}), testing::HasSubstr("ring_send: wait1.level: 4 does not fit 2"));
    Tensor mac;
    mac.in.step[3] = -(1 << 18) - 1;
    EXPECT_THAT(refusal({mac}),
                testing::HasSubstr("mac: in.stride3: -262145 does not fit 19 signed"));
    Mesh mesh{.to = Direction::east};
    mesh.work.base_register = 32;
    EXPECT_THAT(refusal({mesh}), testing::HasSubstr("mesh_east: base_register: 32 does not fit"));
    TypedInstruction raw{Fence{}, {{0, 1}}};
    EXPECT_THAT(refusal(raw), testing::HasSubstr("fence: field 0 is a member's"));
}

TEST(TypedProgram, WhatTheBitsHaveNoPlaceForIsRefusedByName) {
    RingPush push;
    push.src.dimensions = 4;
    EXPECT_EQ(refusal({push}), "ring_push: src.base: a nest of other than 3 dimensions");
    push.src.dimensions = 3;
    push.src.count[5] = 2;
    EXPECT_EQ(refusal({push}), "ring_push: src.base: a nest of other than 3 dimensions");
    push.src.count[5] = 1;
    push.wait[0].destination = true;
    EXPECT_EQ(refusal({push}), "ring_push: wait0.counter: this wait has no place for a side");
    Tensor mac;
    mac.loops.step[0] = 4;
    EXPECT_EQ(refusal({mac}), "mac: loop.limit0: loops have counts and a crop and nothing else");
}

}  // namespace
}  // namespace reef::edgetpu::program
