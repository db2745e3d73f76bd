// A chip that the product does not know: its description alone gives tables, decoding, encoding.
#include <gtest/gtest.h>

#include <cstring>

#include "reef_spec/toy_isa.h"
#include "reef_spec/toy_registers.h"

namespace reef::toy {
namespace {

const hw::InstructionSet& set = spec::instruction_set;

std::vector<std::byte> program() {
    std::vector<std::byte> bytes;
    const auto append = [&](const hw::InstructionBuilder& one) {
        bytes.insert(bytes.end(), one.bytes().begin(), one.bytes().end());
    };
    hw::InstructionBuilder load(spec::instructions[spec::op::load]);
    EXPECT_TRUE(load.set("number", -3));
    append(load);
    hw::InstructionBuilder add(spec::instructions[spec::op::add]);
    EXPECT_TRUE(add.set("from.first", 0xfffff));
    EXPECT_TRUE(add.set("to.buffer", spec::value::buffer::output_));
    EXPECT_TRUE(add.set("to.size", 15));
    append(add);
    append(hw::InstructionBuilder(*set.find("stop")));
    return bytes;
}

TEST(Toy, BuildsAndDecodesPrograms) {
    const auto bytes = program();
    ASSERT_EQ(bytes.size(), 32U);
    const auto decoded = hw::decode(set, bytes);
    ASSERT_TRUE(decoded) << decoded.error().message();
    ASSERT_EQ(decoded->size(), 3U);
    const auto& [load, add, stop] = std::tie((*decoded)[0], (*decoded)[1], (*decoded)[2]);
    EXPECT_EQ(load.value("number"), -3);
    EXPECT_EQ(add.word, 1U);
    EXPECT_EQ(add.value("from.first"), 0xfffff);
    EXPECT_EQ(add.value("from.size"), 0);
    EXPECT_EQ(add.value(add.info->fields[spec::field::add::to_size]), 15);
    EXPECT_EQ(add.info->find("to.buffer")->enumeration->find(1)->name, "output");
    EXPECT_EQ(stop.info->name, "stop");
    EXPECT_EQ(spec::Buffer::output_, static_cast<spec::Buffer>(add.value("to.buffer").value()));
}

TEST(Toy, RefusesWhatIsNoProgram) {
    auto bytes = program();
    const auto cut = hw::decode(set, std::span(bytes).first(16));
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().message(), "word 0x1: add needs 2 words and the program ends");
    bytes[0] = std::byte{7};
    const auto unknown = hw::decode(set, bytes);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().message(),
              "word 0x0: unknown opcode 0x07 (reef disasm shows such words as data)");
    const auto odd = hw::decode(set, std::span(bytes).subspan(24, 5));
    ASSERT_FALSE(odd);
    EXPECT_EQ(
        odd.error().message(),
        "word 0x0: 5 bytes after the last whole word (a program consists of words of 8 bytes)");
    hw::InstructionBuilder load(*set.find("load"));
    EXPECT_FALSE(load.set("number", 256));
}

TEST(Toy, AnyBytesComeBackWhole) {
    auto bytes = program();
    for (unsigned seed = 0; seed < 1000; ++seed) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>((seed * 2654435761U + i * 40503U) >> 7);
        std::size_t size = 0;
        hw::InstructionCursor cursor(set, bytes);
        while (const auto one = cursor.next()) {
            EXPECT_EQ(one->bytes.data(), bytes.data() + size);
            size += one->bytes.size();
            if (one->info == nullptr) continue;
            // Opcode and fields make up the instruction.
            hw::InstructionBuilder again(*one->info);
            for (const auto& field : one->info->fields)
                hw::set_field_bits(again.bytes(), field, one->bits(field));
            EXPECT_EQ(std::memcmp(again.bytes().data(), one->bytes.data(), one->bytes.size()), 0);
        }
        EXPECT_EQ(size, bytes.size());
    }
}

TEST(Toy, FindsRegistersByNameAndPlace) {
    const auto* run = hw::find_register(spec::registers, "run");
    ASSERT_NE(run, nullptr);
    EXPECT_EQ(run->reset, std::optional<std::uint64_t>(1));
    EXPECT_EQ(run->fields[0].name, "go");
    EXPECT_EQ(hw::find_register(spec::registers, 0x2c)->name, "number");
    EXPECT_EQ(hw::find_register(spec::registers, 0x30), nullptr);
    EXPECT_EQ(hw::element_of(*hw::find_register(spec::registers, "number"), 2).offset, 0x28U);
}

}  // namespace
}  // namespace reef::toy
