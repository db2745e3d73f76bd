#include <gtest/gtest.h>

#include <random>

#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_isa.h"
#include "reef_spec/rk3588_registers.h"

namespace reef::rk3588 {
namespace {

TEST(CommandWords, FieldsRegisterAndTargetCoverEveryBit) {
    for (const auto& info : command_words().instructions) {
        std::array<int, 64> claims{};
        for (unsigned bit = 0; bit < 16; ++bit) ++claims[bit];
        for (const auto& field : info.fields)
            for (unsigned bit = field.position; bit < field.position + 0U + field.width; ++bit)
                ++claims.at(bit);
        for (unsigned bit = 0; bit < 64; ++bit)
            EXPECT_EQ(claims[bit], 1) << info.name << " bit " << bit;
    }
}

TEST(CommandWords, RegistersLieInTheirBlock) {
    for (const auto& info : command_words().instructions) {
        if (info.opcode < 0x1000) continue;
        const auto target = static_cast<unsigned>(info.find("target")->only);
        const unsigned block = info.opcode >> 12;
        const unsigned expected = block == 1 ? 0x0201U : 0x0101U << (block == 3 ? 3 : block);
        EXPECT_EQ(target & ~1U, (expected & ~1U) & 0xff00U) << info.name;
        const auto* name = spec::target_enumeration.find(target);
        ASSERT_NE(name, nullptr) << info.name;
        EXPECT_TRUE(info.name.starts_with(std::string(name->name) + "_")) << info.name;
    }
}

TEST(CommandWords, NoKernelRegisterIsACommandWord) {
    for (const auto& info : spec::registers) {
        if (info.group == "PC") continue;  // the chain's two are written by both
        EXPECT_EQ(command_words().find(hw::Space{}, info.offset & 0xffff), nullptr) << info.name;
    }
}

TEST(Text, ShowsWhatIsNotZero) {
    const std::uint64_t word = 0x0201'0000'20b1'1040;
    const auto bytes = std::as_bytes(std::span(&word, 1));
    EXPECT_EQ(disassemble(bytes),
              "0x0000: CNA_CBUF_CON0 DATA_BANK=1 WEIGHT_BANK=11 "
              "WEIGHT_REUSE=1\n");
    const std::uint64_t strange = 0x4001'8000'0003'100c;
    EXPECT_EQ(
        disassemble(std::as_bytes(std::span(&strange, 1)), {.symbolic = true, .addresses = false}),
        "CNA_CONV_CON1 CONV_MODE=depthwise raw[47+1]=0x1 target=PPU\n");
    const std::uint64_t data = 0x1234'0000'0000'ffff;
    EXPECT_EQ(disassemble(std::as_bytes(std::span(&data, 1)).first(8)),
              "0x0000: .word 0x123400000000ffff\n");
    EXPECT_EQ(disassemble(bytes.first(3)), "0x0000: .bytes 4010b1\n");
}

TEST(Text, AnyBytesAssembleToThemselves) {
    std::mt19937_64 random(7);
    std::vector<std::uint64_t> words(20000);
    for (auto& word : words) {
        word = random();
        // Every second one is a word of a register, its target often another one's.
        if (word & 1U << 20) {
            const auto& set = command_words().instructions;
            word = (word & ~0xffffULL) | set[random() % set.size()].opcode;
        }
    }
    for (const bool symbolic : {false, true}) {
        const auto bytes = std::as_bytes(std::span(words)).first(words.size() * 8 - 3);
        const auto again = assemble(disassemble(bytes, {symbolic, !symbolic}));
        ASSERT_TRUE(again) << again.error().message();
        ASSERT_EQ(again->size(), 1U);
        EXPECT_TRUE(std::ranges::equal(again->front().bytes, bytes));
    }
}

TEST(Text, WrongLinesAreRefusedWithTheirNumber) {
    const auto message = [](std::string_view text) {
        const auto streams = assemble(text);
        return streams ? std::string("accepted") : streams.error().message();
    };
    EXPECT_EQ(message("CNA_CONV_CON9"), "line 1: 'CNA_CONV_CON9': unknown register");
    EXPECT_EQ(message("; nothing\nCNA_CONV_CON1 MODE=1"),
              "line 2: CNA_CONV_CON1: 'MODE=1': no such field");
    EXPECT_EQ(message("CNA_CONV_CON1 CONV_MODE=16"),
              "line 1: CNA_CONV_CON1: CONV_MODE: 16 does not fit 4 bits (use 0 to 15)");
    EXPECT_EQ(message("CNA_CONV_CON1 DECONV=1 DECONV=1"),
              "line 1: CNA_CONV_CON1: DECONV: the field is given twice");
    EXPECT_EQ(message("CNA_CONV_CON1 CONV_MODE"),
              "line 1: CNA_CONV_CON1: 'CONV_MODE': a field is written NAME=VALUE");
    EXPECT_EQ(message("CNA_CONV_CON1 CONV_MODE=x"),
              "line 1: CNA_CONV_CON1: a name of conv_mode is expected at 'x'");
    EXPECT_EQ(message(".word 12"), "line 1: '12': a word is 0x and 1 to 16 hexadecimal digits");
    EXPECT_EQ(message(".bytes 0102030405060708"),
              "line 1: '0102030405060708': .bytes takes 1 to 7 bytes, two hexadecimal digits each");
    EXPECT_EQ(message(".bytes 01\nOP_EN"),
              "line 2: 'OP_EN': nothing can follow .bytes in its stream");
    EXPECT_EQ(message(".stream"), "line 1: '.stream': a name must follow");
    EXPECT_EQ(message("zz: OP_EN"), "line 1: a number is expected at 'zz'");
}

}  // namespace
}  // namespace reef::rk3588
