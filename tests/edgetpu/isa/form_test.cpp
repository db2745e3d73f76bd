// Forms of instructions: what they say and leave out, and the table of the vendor's.
#include "edgetpu/isa/form.h"

#include <gtest/gtest.h>

#include <set>

#include "edgetpu/isa/program_data.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

std::string form_of_builder(const InstructionBuilder& builder) {
    return form_of({.info = &builder.info(), .word = 0, .bytes = builder.bytes()});
}

TEST(Form, HasModesAndNoNumbers) {
    InstructionBuilder send(*find_instruction("ring_send"));
    const std::pair<const char*, std::int64_t> fields[] = {{"tiles", 4},
                                                           {"seq", 17},
                                                           {"src.base", 99},
                                                           {"src.mask", 1},
                                                           {"to_tiles", 0xffff},
                                                           {"signal.producer.enable", 1},
                                                           {"signal.producer.level", 1},
                                                           {"wait0.enable", 1},
                                                           {"wait0.counter", 17},
                                                           {"wait0.level", 2},
                                                           {"wait0.start", 300},
                                                           {"wait1.counter", 13}};
    for (const auto& [name, value] : fields) ASSERT_TRUE(send.set(name, value)) << name;
    EXPECT_EQ(form_of_builder(send), "ring_send src.mask=0x1 producer@1 wait RING_PRODUCER_A@2");
    ASSERT_TRUE(send.set("wait0.start", 301));
    ASSERT_TRUE(send.set("src.base", 3));
    EXPECT_EQ(form_of_builder(send), "ring_send src.mask=0x1 producer@1 wait RING_PRODUCER_A@2");
    ASSERT_TRUE(send.set("wait1.enable", 1));
    EXPECT_EQ(form_of_builder(send),
              "ring_send src.mask=0x1 producer@1 wait RING_PRODUCER_A@2 wait NARROW_TO_WIDE@0");
}

TEST(Form, WhatIsOffHasNone) {
    InstructionBuilder receive(*find_instruction("ring_receive_b"));
    ASSERT_TRUE(receive.set("head.level", 2));
    ASSERT_TRUE(receive.set("head.rows", 3));
    EXPECT_EQ(form_of_builder(receive), "ring_receive_b");
    ASSERT_TRUE(receive.set("head.enable", 1));
    EXPECT_EQ(form_of_builder(receive), "ring_receive_b head.enable head.level=0x2 head.rows=0x3");
}

TEST(Form, AnUnknownOneIsTheNearestWithADifference) {
    const std::string form(known_forms().front());
    EXPECT_TRUE(is_known_form(form));
    const std::string other =
        "ring_send src.mask=0x1 producer@0 wait RING_PRODUCER_A@1 wait RING_WRITE@3 destination";
    ASSERT_FALSE(is_known_form(other));
    EXPECT_EQ(difference_to_known(other), "with wait RING_WRITE@3 destination");
    EXPECT_EQ(difference_to_known("tensor_4 single"), "no known program has the instruction");
}

/// The table has each form of the vendor's programs and no other.
TEST(Form, TheTableIsThatOfTheReferenceData) {
    REEF_SHARED_OR_SKIP(shared);
    (void)shared;
    auto files = test::program_files();
    for (auto& file : test::wild_program_files()) files.push_back(std::move(file));
    ASSERT_GT(files.size(), 50U);
    std::set<std::string> forms;
    for (const auto& file : files)
        for (const auto& program : file.programs)
            for (const Bytes stream : program.chunks) {
                const auto instructions = decode(stream);
                ASSERT_TRUE(instructions) << file.name;
                for (const auto& one : *instructions) forms.insert(form_of(one));
            }
    const std::set<std::string> known(known_forms().begin(), known_forms().end());
    EXPECT_EQ(forms, known) << "cmake --build ... --target edgetpu_forms";
}

}  // namespace
}  // namespace reef::edgetpu
