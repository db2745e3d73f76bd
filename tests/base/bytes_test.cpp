#include "reef/base/bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace reef {
namespace {

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

TEST(SharedBytes, CopyOutlivesItsSource) {
    SharedBytes copy;
    {
        const std::string source = "reef";
        copy = SharedBytes::copy_of(as_bytes(source));
        EXPECT_NE(static_cast<const void*>(copy.view().data()), source.data());
    }
    EXPECT_EQ(as_text(copy.view()), "reef");
    EXPECT_EQ(as_text(copy.part(1, 2).view()), "ee");
    EXPECT_EQ(copy.part(1, 2).owner(), copy.owner());
}

TEST(SharedBytes, EqualWhenTheBytesAre) {
    const SharedBytes a = SharedBytes::copy_of(as_bytes("abab"));
    EXPECT_EQ(a.part(0, 2), a.part(2, 2));
    EXPECT_FALSE(a.part(0, 2) == a.part(1, 2));
    EXPECT_FALSE(a == a.part(0, 2));
    EXPECT_EQ(SharedBytes(), SharedBytes::copy_of({}));
}

TEST(ByteReader, ReadsLittleEndianNumbersInTurn) {
    const std::vector<std::uint8_t> bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    ByteReader reader(std::as_bytes(std::span(bytes)));
    EXPECT_EQ(reader.u8(), 0x01);
    EXPECT_EQ(reader.u16(), 0x0302);
    EXPECT_EQ(reader.u32(), 0x07060504u);
    EXPECT_EQ(reader.u64(), 0x0f0e0d0c0b0a0908u);
    EXPECT_EQ(reader.remaining(), 0u);
    ASSERT_TRUE(reader.seek(3));
    ASSERT_TRUE(reader.skip(2));
    EXPECT_EQ(reader.offset(), 5u);
    EXPECT_EQ(reader.take(2)->size(), 2u);
    EXPECT_EQ(reader.u8(), 8);
}

TEST(ByteReader, ErrorsNameTheOffsetAndLeaveThePosition) {
    ByteReader reader(as_bytes("abcde"));
    ASSERT_TRUE(reader.skip(3));
    const auto number = reader.u32();
    ASSERT_FALSE(number);
    EXPECT_EQ(number.error().cause, Cause::bad_input);
    EXPECT_EQ(number.error().message(), "4 bytes are needed at byte offset 3, 2 remain");
    EXPECT_EQ(reader.offset(), 3u);
    EXPECT_FALSE(reader.skip(static_cast<std::size_t>(-1)));
    const auto seek = reader.seek(6);
    ASSERT_FALSE(seek);
    EXPECT_EQ(seek.error().message(), "byte offset 6 is past the end of 5 bytes");
    EXPECT_TRUE(reader.seek(5));
    EXPECT_FALSE(reader.u8());
}

/// Bit by bit, from the definition in the header.
std::uint64_t naive_field(Bytes bytes, std::size_t position, unsigned width) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
        const std::size_t bit = position + i;
        const auto byte = std::to_integer<std::uint64_t>(bytes[bit / 8]);
        value |= (byte >> (bit % 8) & 1) << i;
    }
    return value;
}

TEST(BitReader, AgreesWithTheDefinitionEverywhere) {
    std::mt19937 random(1);
    for (const std::size_t size : {1u, 7u, 8u, 9u, 17u}) {
        const std::vector<std::byte> bytes = random_bytes(random, size);
        const BitReader reader(bytes);
        EXPECT_EQ(reader.size_bits(), size * 8);
        for (unsigned width = 0; width <= 64; ++width) {
            for (std::size_t position = 0; position <= size * 8 + 1; ++position) {
                const auto field = reader.field(position, width);
                if (position + width > size * 8) {
                    ASSERT_FALSE(field) << position << ' ' << width;
                    continue;
                }
                ASSERT_TRUE(field) << position << ' ' << width;
                const std::uint64_t expected = naive_field(bytes, position, width);
                ASSERT_EQ(*field, expected) << position << ' ' << width;
                if (width == 0) continue;
                const bool negative = (expected >> (width - 1) & 1) != 0;
                const std::uint64_t extension =
                    negative && width < 64 ? ~std::uint64_t{0} << width : 0;
                ASSERT_EQ(reader.signed_field(position, width),
                          static_cast<std::int64_t>(expected | extension));
            }
        }
    }
}

TEST(BitReader, ErrorsNameBitAndByte) {
    const BitReader reader(as_bytes("ab"));
    const auto past = reader.field(13, 4);
    ASSERT_FALSE(past);
    EXPECT_EQ(past.error().cause, Cause::bad_input);
    EXPECT_EQ(past.error().message(),
              "a field of 4 bits at bit 13 (byte offset 1) reaches past the end of 2 bytes");
    EXPECT_FALSE(reader.field(static_cast<std::size_t>(-1), 64));
    EXPECT_EQ(reader.field(0, 65).error().message(), "a bit field of 65 bits, at most 64");
    EXPECT_EQ(reader.signed_field(0, 0).error().cause, Cause::bad_argument);
    EXPECT_EQ(reader.signed_field(0, 65).error().cause, Cause::bad_argument);
}

}  // namespace
}  // namespace reef
