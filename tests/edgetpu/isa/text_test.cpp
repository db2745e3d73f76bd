#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "program_data.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/listing.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using ::testing::HasSubstr;

constexpr TextOptions plain{.symbolic = false, .addresses = true};
constexpr TextOptions symbolic{.symbolic = true, .addresses = false};

std::vector<std::byte> words_of(std::mt19937_64& random, std::size_t words) {
    std::vector<std::byte> out(words * word_bytes);
    for (std::size_t at = 0; at < out.size(); at += 8) {
        const auto value = random();
        std::memcpy(out.data() + at, &value, 8);
    }
    return out;
}

testing::AssertionResult round_trips(Bytes stream, const TextOptions& options) {
    const auto text = disassemble(stream, options);
    const auto back = assemble(text);
    if (!back) return testing::AssertionFailure() << back.error().message() << "\n" << text;
    if (!std::ranges::equal(*back, stream)) return testing::AssertionFailure() << text;
    return testing::AssertionSuccess();
}

std::string line_of(const InstructionBuilder& builder, const TextOptions& options) {
    std::string text;
    append_text({&builder.info(), 0, builder.bytes()}, options, text);
    return text;
}

TEST(Text, EveryProgramOfTheDataRoundTrips) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t streams = 0;
    for (const auto& file : test::program_files()) {
        for (const auto& program : file.programs) {
            for (const auto chunk : program.chunks) {
                const auto decoded = decode(chunk);
                ASSERT_TRUE(decoded) << file.name << ": " << decoded.error().message();
                EXPECT_TRUE(round_trips(chunk, plain)) << file.name;
                EXPECT_TRUE(round_trips(chunk, symbolic)) << file.name;
                ++streams;
            }
        }
    }
    EXPECT_GE(streams, 64u) << shared;
}

// The share of set bits that lie in a field with a known meaning.
TEST(Text, NearlyAllSetBitsHaveANamedField) {
    REEF_SHARED_OR_SKIP(shared);
    std::uint64_t all = 0;
    std::uint64_t unknown = 0;
    for (const auto& file : test::program_files()) {
        for (const auto& program : file.programs) {
            for (const auto chunk : program.chunks) {
                InstructionCursor cursor(chunk);
                while (const auto instruction = cursor.next()) {
                    for (const auto b : instruction->bytes)
                        all += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(b)));
                    for (const auto& field : instruction->info->fields) {
                        const bool unnamed =
                            field.kind == FieldKind::raw || field.name.starts_with("unknown_");
                        if (unnamed)
                            unknown +=
                                static_cast<unsigned>(std::popcount(instruction->bits(field)));
                    }
                }
            }
        }
    }
    const double share = 1 - static_cast<double>(unknown) / static_cast<double>(all);
    RecordProperty("named_share", std::to_string(share));
    EXPECT_GT(share, 0.995) << shared << ": " << unknown << " of " << all;
}

// REEF_RANDOM_WORDS words of random bits: every word, instruction or not, survives the way through
// text in both forms.
TEST(Text, RandomWordsRoundTrip) {
    constexpr std::size_t batch = 1 << 14;
    std::mt19937_64 random(20);
    std::size_t left = REEF_RANDOM_WORDS;
    while (left > 0) {
        const auto words = std::min(left, batch);
        const auto stream = words_of(random, words);
        ASSERT_TRUE(round_trips(stream, plain));
        left -= words;
        if (words < batch || left % (8 * batch) == 0) {
            ASSERT_TRUE(round_trips(stream, symbolic));
        }
    }
}

TEST(Text, EveryInstructionRoundTripsWithFewAndManyBits) {
    std::mt19937_64 random(3);
    for (const auto& info : instruction_set()) {
        for (int n = 0; n < 300; ++n) {
            InstructionBuilder builder(info);
            for (const auto& field : info.fields) {
                if (random() % 8 < static_cast<unsigned>(n % 9))
                    set_field_bits(builder.bytes(), field, n % 2 ? random() : random() % 3);
            }
            ASSERT_TRUE(round_trips(builder.bytes(), plain));
            ASSERT_TRUE(round_trips(builder.bytes(), symbolic));
        }
    }
}

TEST(Text, DataThatIsNoInstructionIsKept) {
    std::mt19937_64 random(4);
    for (std::size_t size = 0; size < 100; ++size) {
        auto bytes = words_of(random, 8);
        bytes.resize(size);
        EXPECT_TRUE(round_trips(bytes, plain)) << size;
        EXPECT_TRUE(round_trips(bytes, symbolic)) << size;
    }
    std::vector<std::byte> unknown(16);
    unknown[1] = std::byte{0x0a};
    EXPECT_EQ(disassemble(unknown, plain), "0x0000: .word 0x00000000000000000000000000000a00\n");
}

TEST(Text, PlainFormNamesFields) {
    InstructionBuilder mac(*find_instruction("mac"));
    ASSERT_TRUE(mac.set("tiles", 0xff));
    ASSERT_TRUE(mac.set("in.stride1", -548));
    ASSERT_TRUE(mac.set_float("scale", 0.1f));
    ASSERT_TRUE(mac.set("raw[1660+56]", 5));
    EXPECT_EQ(line_of(mac, plain),
              "0x0000: mac tiles=0xff in.stride1=-548 raw[1660+56]=0x5 scale=0.1");
}

TEST(Text, SymbolicFormFoldsNestsWaitsAndSets) {
    InstructionBuilder mac(*find_instruction("mac"));
    ASSERT_TRUE(mac.set("tiles", 0b1000'0000'0010'1111));
    for (const auto& [field, value] : {std::pair<std::string_view, std::int64_t>{"loop.limit0", 6},
                                       {"loop.limit1", 6},
                                       {"in.base", 0x100},
                                       {"in.stride0", 4},
                                       {"in.limit0", 6},
                                       {"in.stride1", 64},  // 88 less the 24 of the inner dimension
                                       {"in.limit1", 6},
                                       {"wait0.counter", 15},
                                       {"wait0.level", 2},
                                       {"wait0.start", -1},
                                       {"wait0.step", 3},
                                       {"wait0.enable", 1},
                                       {"signal.avdata.enable", 1},
                                       {"signal.avdata.level", 3},
                                       {"unknown_1844", 1}})
        ASSERT_TRUE(mac.set(field, value)) << field;
    // The dimensions that are not used carry no way back here: their strides are those of the bits.
    const auto text = line_of(mac, symbolic);
    EXPECT_THAT(text, HasSubstr("mac tiles=t0-t3+t5+t15 loop=7x7 in=0x100[4x7][88x7]["));
    EXPECT_THAT(text, HasSubstr(" signal.avdata=@3 wait0=RING_READ_B@2>=-1+3 unknown_1844?=1"));

    InstructionBuilder fence(*find_instruction("fence"));
    ASSERT_TRUE(fence.set("tiles", 0xffff));
    ASSERT_TRUE(fence.set("reset.counters", 0b11));
    ASSERT_TRUE(fence.set("engines", 0x3ff));
    EXPECT_EQ(line_of(fence, symbolic),
              "fence tiles=all reset.counters=AVDATA+PARAMETERS engines=all");
    ASSERT_TRUE(fence.set("engines", 0x3fe));
    EXPECT_THAT(line_of(fence, symbolic), HasSubstr(" engines=all-OP"));

    InstructionBuilder bundle(*find_instruction("bundle"));
    ASSERT_TRUE(bundle.set("alu.op", 0x21));
    ASSERT_TRUE(bundle.set("alu.src", 11));
    ASSERT_TRUE(bundle.set("store.op", 5));
    ASSERT_TRUE(bundle.set("store.address", 2));
    ASSERT_TRUE(bundle.set("load.reg", 2));  // without an operation: not folded
    EXPECT_EQ(line_of(bundle, symbolic),
              "bundle load.reg=s2 store=descriptor(0x2,s0) alu=addi(s0,s11,0x0)");
}

TEST(Text, SymbolicFormTellsDescriptorsAndTargets) {
    const auto stream = assemble(
        "bundle alu.op=movi alu.dst=s4 alu.operand=0x1000\n"
        "bundle store.op=descriptor store.address=0 store.reg=s4 "
        "alu.op=movi alu.dst=s5\n"
        "bundle store.op=descriptor store.address=1 store.reg=s5\n"
        "bundle store.op=descriptor store.address=2 store.reg=s4 alu.op=movi alu.dst=s5 "
        "alu.operand=1\n"
        "bundle store.op=descriptor store.address=3 store.reg=s5\n"
        "bundle store.op=fire\n"
        "branch offset=-6\n"
        "loop count=3 body=2\n");
    ASSERT_TRUE(stream) << stream.error().message();
    const auto text = disassemble(*stream, symbolic);
    EXPECT_THAT(text,
                HasSubstr("store=fire(0x0,s0)  ; DMA input activations, 4096 bytes, at 0x1000\n"));
    EXPECT_THAT(text, HasSubstr("branch offset=-6  ; to 0x0000\n"));
    EXPECT_THAT(text, HasSubstr("loop count=3 body=2  ; repeats 0x0008 to 0x0009\n"));
}

TEST(Text, AssemblerTakesCommentsAddressesAndEitherForm) {
    const auto a = assemble("\n  ; a comment\n0x0004: fence tiles=t0-t3 engines=all ; more\r\n");
    const auto b = assemble("fence engines=0x3ff tiles=15");
    ASSERT_TRUE(a) << a.error().message();
    ASSERT_TRUE(b) << b.error().message();
    EXPECT_EQ(*a, *b);
    const auto streams = assemble_streams(".stream a\nhalt\n.stream b\nhalt\nhalt\n");
    ASSERT_TRUE(streams);
    ASSERT_EQ(streams->size(), 2u);
    EXPECT_EQ(streams->at(1).name, "b");
    EXPECT_EQ(streams->at(1).bytes.size(), 32u);
    EXPECT_FALSE(assemble(".stream a\nhalt\n.stream b\n"));
    EXPECT_TRUE(assemble("")->empty());
}

TEST(Text, AssemblerRefusesByLineAndToken) {
    const auto message = [](std::string_view text) {
        const auto bytes = assemble(text);
        return bytes ? "accepted" : bytes.error().message();
    };
    EXPECT_THAT(message("halt\nhald\n"), HasSubstr("line 2: 'hald': unknown instruction"));
    EXPECT_THAT(message("mac speed=1"), HasSubstr("mac: no field 'speed'"));
    EXPECT_THAT(message("mac tiles"), HasSubstr("NAME=VALUE"));
    EXPECT_THAT(message("mac tiles=0x10000"), HasSubstr("does not fit 16 bits"));
    EXPECT_THAT(message("mac tiles=t16"), HasSubstr("t0 to t15"));
    EXPECT_THAT(message("mac tiles=1 tiles=1"), HasSubstr("given twice"));
    EXPECT_THAT(message("mac in=0[4x7] in.limit0=3"), HasSubstr("given twice"));
    EXPECT_THAT(message("mac in=0[4x0]"), HasSubstr("at least 1"));
    EXPECT_THAT(message("mac in=0[4x7"), HasSubstr("']' is missing"));
    EXPECT_THAT(message("mac in=0[1x1][1x1][1x1][1x1][1x1][1x1][1x1][1x1][1x1]"),
                HasSubstr("only 8 dimensions"));
    EXPECT_THAT(message("mac in=0[999999999x7]"), HasSubstr("does not fit"));
    EXPECT_THAT(message("mac scale=nan"), HasSubstr("0x... gives the bits"));
    EXPECT_THAT(message("mac scale=1e99"), HasSubstr("not a number"));
    EXPECT_THAT(message("mac wait0=NOTHING@2>=1+1"), HasSubstr("a name of tile_counter"));
    EXPECT_THAT(message("fence engines=OP+XY"), HasSubstr("a name of tile_engine"));
    EXPECT_THAT(message("fence engines=all-XY"), HasSubstr("a name of tile_engine"));
    EXPECT_THAT(message("bundle alu=movi(s1,s2"), HasSubstr("',' is missing"));
    EXPECT_THAT(message("bundle alu=movi(s1,s2,)"), HasSubstr("a number is missing"));
    EXPECT_THAT(message("bundle alu=movi(s32,s0,1)"), HasSubstr("does not fit 5 bits"));
    EXPECT_THAT(message(".word 12"), HasSubstr("hexadecimal"));
    EXPECT_THAT(message(".word 0x123456789012345678901234567890123"), HasSubstr("1 to 32"));
    EXPECT_THAT(message(".bytes 12\nhalt"), HasSubstr("nothing can follow"));
    EXPECT_THAT(message("label: halt"), HasSubstr("line 1"));
    EXPECT_THAT(message("load_table segment0=1"), HasSubstr("one by one"));
}

}  // namespace
}  // namespace reef::edgetpu
