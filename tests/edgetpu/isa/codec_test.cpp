#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/registers.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu {
namespace {

std::vector<std::byte> random_bytes(std::size_t size, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> out(size);
    for (auto& b : out) b = static_cast<std::byte>(random());
    return out;
}

// Bit by bit, independent of the 64-bit loads under test.
std::uint64_t slow_bits(Bytes bytes, unsigned position, unsigned width) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
        const unsigned bit = position + i;
        value |= std::uint64_t{std::to_integer<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1} << i;
    }
    return value;
}

TEST(InstructionSet, FieldsAndOpcodeCoverEveryBit) {
    for (const auto& info : instruction_set()) {
        std::vector<int> claims(info.words * 128u, 0);
        for (unsigned bit = 6; bit < 12; ++bit) ++claims[bit];
        for (const auto& field : info.fields)
            for (unsigned bit = field.position; bit < field.position + field.width; ++bit)
                ++claims.at(bit);
        for (std::size_t bit = 0; bit < claims.size(); ++bit)
            ASSERT_EQ(claims[bit], 1) << info.name << " bit " << bit;
    }
}

TEST(InstructionSet, IsFoundByNameAndOpcode) {
    ASSERT_NE(find_instruction("mac"), nullptr);
    EXPECT_EQ(find_instruction("mac")->words, 17);
    EXPECT_EQ(find_instruction(Space::tile, 1), find_instruction("mac"));
    EXPECT_EQ(find_instruction(Space::scalar, 1), find_instruction("halt"));
    EXPECT_EQ(find_instruction(Space::scalar, 8), nullptr);
    EXPECT_EQ(find_instruction(Space::scalar, 99), nullptr);
    EXPECT_EQ(find_instruction("nothing"), nullptr);
    EXPECT_EQ(&spec::instructions[spec::op::mac], find_instruction("mac"));
    EXPECT_EQ(spec::instructions[spec::op::mac].fields[spec::field::mac::scale].position, 1949);
}

TEST(InstructionSet, RegistersAreFound) {
    ASSERT_NE(find_register("scalarCoreRunControl"), nullptr);
    EXPECT_EQ(find_register("scalarCoreRunControl")->offset, 0x44018u);
    EXPECT_EQ(find_register(0x44018u)->name, "scalarCoreRunControl");
    EXPECT_EQ(find_register("scu_ctrl_3")->fields.size(), 20u);
    EXPECT_EQ(find_register("scu_ctrl_3", "none"), nullptr);
}

TEST(Codec, FieldsReadAndWriteTheirOwnBitsOnly) {
    for (const auto& info : instruction_set()) {
        auto bytes = random_bytes(info.size_bytes(), info.opcode);
        for (const auto& field : info.fields) {
            const auto old = slow_bits(bytes, field.position, field.width);
            ASSERT_EQ(field_bits(bytes, field), old) << info.name << " " << field.name;
            auto changed = bytes;
            set_field_bits(changed, field, ~old);
            for (unsigned bit = 0; bit < info.words * 128u; ++bit) {
                const bool inside = bit >= field.position && bit < field.position + field.width;
                ASSERT_EQ(slow_bits(changed, bit, 1), slow_bits(bytes, bit, 1) ^ (inside ? 1 : 0))
                    << info.name << " " << field.name << " bit " << bit;
            }
            set_field_bits(changed, field, old);
            ASSERT_EQ(changed, bytes);
        }
    }
}

TEST(Codec, RefusesValuesWiderThanTheirField) {
    for (const auto& info : instruction_set()) {
        std::vector<std::byte> bytes(info.size_bytes());
        for (const auto& field : info.fields) {
            const bool is_signed = field.kind == FieldKind::signed_number;
            const auto high = (std::int64_t{1} << (field.width - (is_signed ? 1 : 0))) - 1;
            const auto low = is_signed ? -high - 1 : 0;
            for (const auto good : {low, high}) {
                ASSERT_TRUE(set_field(bytes, field, good)) << info.name << " " << field.name;
                ASSERT_EQ(field_value(bytes, field), good) << info.name << " " << field.name;
            }
            const auto before = bytes;
            EXPECT_FALSE(set_field(bytes, field, high + 1)) << info.name << " " << field.name;
            EXPECT_FALSE(set_field(bytes, field, low - 1)) << info.name << " " << field.name;
            ASSERT_EQ(bytes, before);
        }
    }
}

TEST(Codec, BuilderSetsOpcodeAndFields) {
    for (const auto& info : instruction_set()) {
        InstructionBuilder builder(info);
        EXPECT_EQ(instruction_of(builder.bytes()), &info);
        for (const auto& field : info.fields) EXPECT_EQ(field_bits(builder.bytes(), field), 0u);
    }
    InstructionBuilder mac(*find_instruction("mac"));
    ASSERT_TRUE(mac.set("in.stride1", -548));
    ASSERT_TRUE(mac.set_float("scale", 0.5f));
    EXPECT_FALSE(mac.set("in.stride9", 1));
    EXPECT_FALSE(mac.set_float("in.base", 1));
    EXPECT_FALSE(mac.set("tiles", 0x10000));
    const auto program = decode(mac.bytes());
    ASSERT_TRUE(program);
    ASSERT_EQ(program->size(), 1u);
    EXPECT_EQ(program->at(0).value("in.stride1"), -548);
    EXPECT_EQ(program->at(0).value("scale"), std::bit_cast<std::int32_t>(0.5f));
    EXPECT_EQ(program->at(0).value("none"), std::nullopt);
}

TEST(Codec, RefusesWhatIsNoProgram) {
    InstructionBuilder halt(*find_instruction("halt"));
    std::vector<std::byte> stream(halt.bytes().begin(), halt.bytes().end());
    EXPECT_TRUE(decode(stream));
    EXPECT_TRUE(decode({}));
    const auto message = [](Bytes bytes) {
        const auto program = decode(bytes);
        return program ? "" : program.error().message();
    };
    auto trailing = stream;
    trailing.push_back(std::byte{1});
    EXPECT_NE(message(trailing).find("word 0x1: 1 bytes after the last whole word"),
              std::string::npos);
    auto unknown = stream;
    unknown.resize(32);
    unknown[16] = std::byte{0xc0};
    unknown[17] = std::byte{0x0f};
    EXPECT_EQ(instruction_of(Bytes(unknown).subspan(16)), find_instruction("end"));
    unknown[16] = std::byte{0x40};
    EXPECT_NE(message(unknown).find("word 0x1: unknown scalar opcode 0x1d"), std::string::npos);
    InstructionBuilder mac(*find_instruction("mac"));
    EXPECT_NE(message(Bytes(mac.bytes()).first(32)).find("word 0x0: mac needs 17 words"),
              std::string::npos);
}

TEST(Codec, CursorCoversAnyBytes) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const auto bytes = random_bytes(seed * 7, seed);
        InstructionCursor cursor(bytes);
        std::size_t offset = 0;
        while (const auto part = cursor.next()) {
            EXPECT_EQ(part->bytes.data(), bytes.data() + offset);
            EXPECT_EQ(part->word, offset / word_bytes);
            offset += part->bytes.size();
        }
        EXPECT_EQ(offset, bytes.size());
    }
}

}  // namespace
}  // namespace reef::edgetpu
