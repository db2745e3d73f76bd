#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>

#include "base/zip.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "support/shared_data.h"

namespace reef {
namespace {

using testing::HasSubstr;

Array sample(ElementType type, std::vector<std::int64_t> shape, unsigned seed) {
    std::mt19937 random(seed);
    Array array{type, std::move(shape), {}};
    array.data.resize(static_cast<std::size_t>(array.element_count()) * size_of(type).value());
    for (std::byte& byte : array.data) byte = static_cast<std::byte>(random() % 4);
    return array;
}

NamedArrays samples() {
    return {{"in0", sample(ElementType::uint8, {1, 8, 8, 3}, 1)},
            {"folder/t7", sample(ElementType::float32, {5}, 2)},
            {"", sample(ElementType::int64, {}, 3)},
            {"größe", sample(ElementType::complex128, {2, 0}, 4)}};
}

std::vector<std::byte> archive_of(const NamedArrays& arrays, Compression compression) {
    auto file = write_npz(arrays, compression);
    EXPECT_TRUE(file) << file.error().message();
    return *file;
}

void put16(std::vector<std::byte>& file, std::size_t offset, unsigned value) {
    file.at(offset) = static_cast<std::byte>(value);
    file.at(offset + 1) = static_cast<std::byte>(value >> 8);
}
void put32(std::vector<std::byte>& file, std::size_t offset, std::uint32_t value) {
    put16(file, offset, value & 0xffff);
    put16(file, offset + 2, value >> 16);
}

/// An archive of one member, 'a.npy', and where its records are (APPNOTE.TXT 4.3).
struct One {
    explicit One(Compression compression = Compression::stored)
        : file(archive_of({{"a", sample(ElementType::uint8, {64}, 5)}}, compression)),
          end(file.size() - 22),
          central(end - 46 - 5) {}

    [[nodiscard]] Error error() const {
        auto arrays = read_npz(file);
        return arrays ? Error{Cause::bad_argument, "no error", "", ""} : arrays.error();
    }

    std::vector<std::byte> file;
    std::size_t end;
    std::size_t central;
};

TEST(Npz, RoundTripsStoredAndDeflated) {
    for (const Compression compression : {Compression::stored, Compression::deflated}) {
        const std::vector<std::byte> file = archive_of(samples(), compression);
        EXPECT_EQ(file, archive_of(samples(), compression));
        const auto again = read_npz(file);
        ASSERT_TRUE(again) << again.error().message();
        EXPECT_EQ(*again, samples());
    }
    EXPECT_LT(archive_of(samples(), Compression::deflated).size(),
              archive_of(samples(), Compression::stored).size());
    const auto nothing = read_npz(archive_of({}, Compression::stored));
    ASSERT_TRUE(nothing) << nothing.error().message();
    EXPECT_TRUE(nothing->empty());
}

TEST(Npz, RewritesEveryGoldenFile) {
    REEF_SHARED_OR_SKIP(shared);
    const auto files = test::shared_files("data/cpu_golden", ".npz");
    ASSERT_FALSE(files.empty()) << shared;
    for (const auto& path : files) {
        const auto file = read_file(path);
        ASSERT_TRUE(file);
        const auto arrays = read_npz(file->view());
        ASSERT_TRUE(arrays) << path << ' ' << arrays.error().message();
        EXPECT_FALSE(arrays->empty());
        for (const Compression compression : {Compression::stored, Compression::deflated}) {
            const auto again = read_npz(archive_of(*arrays, compression));
            ASSERT_TRUE(again) << path << ' ' << again.error().message();
            EXPECT_TRUE(*again == *arrays) << path;
        }
    }
}

TEST(Npz, EveryTruncationIsAnError) {
    for (const Compression compression : {Compression::stored, Compression::deflated}) {
        const std::vector<std::byte> file = archive_of(samples(), compression);
        for (std::size_t size = 0; size < file.size(); ++size) {
            ASSERT_FALSE(read_npz(Bytes(file).first(size))) << size;
        }
    }
}

TEST(Npz, EveryFlippedByteIsReadOrRefusedButNeverMisread) {
    const NamedArrays arrays = samples();
    for (const Compression compression : {Compression::stored, Compression::deflated}) {
        std::vector<std::byte> file = archive_of(arrays, compression);
        for (std::byte& byte : file) {
            const std::byte before = byte;
            byte ^= std::byte{0x41};
            // Dates and versions may change without harm, and names with their two copies would;
            // the elements are under a CRC.
            if (const auto read = read_npz(file)) {
                ASSERT_EQ(read->size(), arrays.size());
                for (std::size_t i = 0; i < arrays.size(); ++i) {
                    EXPECT_EQ((*read)[i].second, arrays[i].second);
                }
            }
            byte = before;
        }
    }
}

TEST(Npz, ReadsMembersWithDataDescriptors) {
    One one(Compression::deflated);
    // As a writer that cannot seek: bit 3, no sizes and CRC in the local header.
    put16(one.file, 6, 1u << 3);
    put32(one.file, 14, 0);
    put32(one.file, 18, 0);
    put32(one.file, 22, 0);
    put16(one.file, one.central + 8, 1u << 3);
    const auto arrays = read_npz(one.file);
    ASSERT_TRUE(arrays) << arrays.error().message();
    EXPECT_EQ(arrays->front().second, sample(ElementType::uint8, {64}, 5));
    // Without bit 3 the local header must repeat the sizes.
    put16(one.file, one.central + 8, 0);
    EXPECT_THAT(one.error().message(), HasSubstr("give different sizes"));
}

TEST(Npz, ReadsLocalZip64FieldsOfSmallMembers) {
    const One one;
    std::vector<std::byte> file(one.file.begin(), one.file.begin() + 30 + 5);
    put32(file, 18, 0xffffffff);
    put32(file, 22, 0xffffffff);
    put16(file, 28, 20);
    std::vector<std::byte> extra(20);
    put16(extra, 0, 1);
    put16(extra, 2, 16);
    put32(extra, 4, 192);
    put32(extra, 12, 192);
    file.insert(file.end(), extra.begin(), extra.end());
    file.insert(file.end(), one.file.begin() + 30 + 5, one.file.end());
    put32(file, file.size() - 22 + 16, static_cast<std::uint32_t>(one.central + 20));
    const auto arrays = read_npz(file);
    ASSERT_TRUE(arrays) << arrays.error().message();
    EXPECT_EQ(arrays->front().second, sample(ElementType::uint8, {64}, 5));
    put32(file, 35 + 4, 191);
    EXPECT_FALSE(read_npz(file));
}

void put64(std::vector<std::byte>& file, std::size_t offset, std::uint64_t value) {
    put32(file, offset, static_cast<std::uint32_t>(value));
    put32(file, offset + 4, static_cast<std::uint32_t>(value >> 32));
}

/// As an archive of more than 4 GiB is written: sizes and offsets in zip64 records alone
/// (APPNOTE.TXT 4.3.14, 4.3.15, 4.5.3).
struct OneInZip64 : One {
    OneInZip64() {
        constexpr std::size_t field_bytes = 4 + 3 * 8, end_bytes = 56, locator_bytes = 20;
        put32(file, central + 20, 0xffffffff);
        put32(file, central + 24, 0xffffffff);
        put32(file, central + 42, 0xffffffff);
        put16(file, central + 30, field_bytes);
        field = central + 46 + 5;
        std::vector<std::byte> records(field_bytes + end_bytes + locator_bytes);
        put16(records, 0, 1);
        put16(records, 2, 3 * 8);
        put64(records, 4, 192);
        put64(records, 12, 192);
        put64(records, 20, 0);
        put32(records, field_bytes, 0x06064b50);
        put64(records, field_bytes + 4, end_bytes - 12);
        put64(records, field_bytes + 24, 1);
        put64(records, field_bytes + 32, 1);
        put64(records, field_bytes + 40, 46 + 5 + field_bytes);
        put64(records, field_bytes + 48, central);
        end64 = field + field_bytes;
        put32(records, field_bytes + end_bytes, 0x07064b50);
        put64(records, field_bytes + end_bytes + 8, end64);
        put32(records, field_bytes + end_bytes + 16, 1);
        file.insert(file.begin() + static_cast<std::ptrdiff_t>(field), records.begin(),
                    records.end());
        locator = end64 + end_bytes;
        end = locator + locator_bytes;
        put16(file, end + 8, 0xffff);
        put16(file, end + 10, 0xffff);
        put32(file, end + 12, 0xffffffff);
        put32(file, end + 16, 0xffffffff);
    }
    std::size_t field = 0, end64 = 0, locator = 0;
};

TEST(Npz, ReadsZip64) {
    OneInZip64 one;
    const auto arrays = read_npz(one.file);
    ASSERT_TRUE(arrays) << arrays.error().message();
    EXPECT_EQ(arrays->front().second, sample(ElementType::uint8, {64}, 5));
    for (std::size_t size = 0; size < one.file.size(); ++size)
        ASSERT_FALSE(read_npz(Bytes(one.file).first(size))) << size;
    // No other number in the records is taken.
    for (std::size_t at = one.field; at < one.end; ++at) {
        std::vector<std::byte> other = one.file;
        other[at] ^= std::byte{0x41};
        if (const auto read = read_npz(other)) {
            EXPECT_EQ(read->front().second, arrays->front().second) << at;
        }
    }
    put64(one.file, one.field + 4, std::uint64_t{1} << 40);
    EXPECT_THAT(one.error().message(), HasSubstr("a stored ZIP member of 1099511627776 bytes"));
    one = OneInZip64();
    put64(one.file, one.field + 20, ~std::uint64_t{0});
    EXPECT_FALSE(read_npz(one.file));
    one = OneInZip64();
    put64(one.file, one.locator + 8, one.end64 + 1);
    EXPECT_THAT(one.error().message(), HasSubstr("no zip64 end record at byte offset"));
    one = OneInZip64();
    put64(one.file, one.end64 + 48, ~std::uint64_t{0} - 3);
    EXPECT_THAT(one.error().message(), HasSubstr("does not end at its end record"));
    one = OneInZip64();
    put32(one.file, one.locator + 16, 2);
    EXPECT_THAT(one.error().message(), HasSubstr("a multi-disk ZIP archive"));
}

/// More than what zlib is given at once.
TEST(Npz, UnpacksLongMembers) {
    const NamedArrays arrays = {{"long", sample(ElementType::uint8, {5, 1 << 19}, 6)}};
    const auto read = read_npz(archive_of(arrays, Compression::deflated));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_TRUE(*read == arrays);
}

TEST(Npz, RefusesByName) {
    struct Case {
        const char* text;
        void (*change)(One&);
    };
    const Case cases[] = {
        {"a multi-disk ZIP archive", [](One& o) { put16(o.file, o.end + 4, 1); }},
        {"a multi-disk ZIP archive", [](One& o) { put16(o.file, o.central + 34, 1); }},
        {"an encrypted ZIP member", [](One& o) { put16(o.file, o.central + 8, 1); }},
        {"ZIP compression method 12 (bzip2)", [](One& o) { put16(o.file, o.central + 10, 12); }},
        {"ZIP compression method 77 (without a name here)",
         [](One& o) { put16(o.file, o.central + 10, 77); }},
    };
    for (const Case& one_case : cases) {
        One one;
        one_case.change(one);
        EXPECT_EQ(one.error().cause, Cause::unsupported) << one_case.text;
        EXPECT_THAT(one.error().message(), HasSubstr(one_case.text));
    }
}

TEST(Npz, RefusesDamage) {
    struct Case {
        const char* text;
        void (*change)(One&);
    };
    const Case cases[] = {
        {"member 'a.npy': CRC-32 ", [](One& o) { o.file[35 + 190] ^= std::byte{1}; }},
        {"no local ZIP header at byte offset 1", [](One& o) { put32(o.file, o.central + 42, 1); }},
        {"is for another member", [](One& o) { o.file[30] = std::byte{'b'}; }},
        {"a stored ZIP member of 193 bytes in 192",
         [](One& o) { put32(o.file, o.central + 24, 193); }},
        {"no central directory signature", [](One& o) { o.file[o.central] = std::byte{0}; }},
        {"after the last of 0 directory entries",
         [](One& o) { put16(o.file, o.end + 8, 0), put16(o.file, o.end + 10, 0); }},
        {"does not end at its end record", [](One& o) { put32(o.file, o.end + 16, 3); }},
        {"not a ZIP archive", [](One& o) { o.file[o.end] = std::byte{0}; }},
    };
    for (const Case& one_case : cases) {
        One one;
        one_case.change(one);
        EXPECT_EQ(one.error().cause, Cause::bad_input) << one_case.text;
        EXPECT_THAT(one.error().message(), HasSubstr(one_case.text));
    }
}

TEST(Npz, RefusesImpossibleExpansionBeforeAllocating) {
    One one(Compression::deflated);
    put32(one.file, one.central + 24, 0xfffffff0);
    put32(one.file, 22, 0xfffffff0);
    EXPECT_THAT(one.error().message(), HasSubstr("cannot unpack to 4294967280"));
    One less(Compression::deflated);
    put32(less.file, less.central + 24, 191);
    put32(less.file, 22, 191);
    EXPECT_THAT(less.error().message(), HasSubstr("does not unpack to the declared 191 bytes"));
}

TEST(Npz, RefusesSmallFilesThatWouldTakeAllMemory) {
    constexpr std::uint32_t bytes = 256 << 20;
    // Deflate could unpack that many from so many: nothing but the sizes tells.
    auto bomb =
        archive_of({{"a", sample(ElementType::uint8, {1'000'000}, 5)}}, Compression::deflated);
    const std::size_t central = bomb.size() - 22 - 46 - 5;
    const auto error_of = [&](std::uint32_t declared) {
        put32(bomb, 22, declared);
        put32(bomb, central + 24, declared);
        const auto arrays = read_npz(bomb);
        return arrays ? std::string("no error") : arrays.error().message();
    };
    EXPECT_THAT(error_of(bytes), HasSubstr("does not unpack to the declared 268435456 bytes"));
    EXPECT_THAT(error_of(bytes + 1), HasSubstr("that unpacks to 268435457"));
}

TEST(Npz, ReadsLargeFilesThatAreLarge) {
    // Its header lifts it above the bound of small ones.
    constexpr std::int64_t bytes = 256 << 20;
    const Array large{ElementType::uint8, {bytes}, std::vector<std::byte>(bytes)};
    EXPECT_TRUE(read_npz(archive_of({{"large", large}}, Compression::stored)));
}

TEST(Npz, RefusesOverlappingMembers) {
    const NamedArrays arrays{{"a", sample(ElementType::uint8, {64}, 5)}};
    One one;
    // A second directory entry for the same bytes.
    std::vector<std::byte> file(one.file.begin(), one.file.end() - 22);
    file.insert(file.end(), one.file.begin() + static_cast<std::ptrdiff_t>(one.central),
                one.file.end());
    put16(file, file.size() - 22 + 8, 2);
    put16(file, file.size() - 22 + 10, 2);
    put32(file, file.size() - 22 + 12, 2 * 51);
    EXPECT_THAT(read_npz(file).error().message(), HasSubstr("overlapping ZIP members"));
}

TEST(Npz, RefusesDuplicateAndForeignNames) {
    const Array array = sample(ElementType::uint8, {1}, 5);
    const auto twice = write_npz({{"a", array}, {"a", array}}, Compression::stored);
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().message(), "array 'a': two arrays with the same name");
    EXPECT_FALSE(write_npz({{"\xff", array}}, Compression::stored));
    EXPECT_FALSE(write_npz({{std::string("a\0b", 3), array}}, Compression::stored));
    EXPECT_FALSE(write_npz({{"a", {ElementType::uint8, {2}, {}}}}, Compression::stored));

    ZipWriter duplicate;
    const auto npy = write_npy(array);
    ASSERT_TRUE(duplicate.add("a.npy", *npy, ZipMethod::stored));
    ASSERT_TRUE(duplicate.add("a.npy", *npy, ZipMethod::stored));
    EXPECT_EQ(read_npz(*std::move(duplicate).finish()).error().message(),
              "member 'a.npy': two members with the same name");

    ZipWriter foreign;
    ASSERT_TRUE(foreign.add("readme.txt", as_bytes("hello"), ZipMethod::stored));
    const auto error = read_npz(*std::move(foreign).finish()).error();
    EXPECT_EQ(error.cause, Cause::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("member 'readme.txt': a member of an .npz file"));
}

TEST(Zip, RefusesMoreMembersThanItsFieldsHold) {
    ZipWriter writer;
    for (int i = 0; i < 0xfffe; ++i) {
        ASSERT_TRUE(writer.add(fmt::format("{}", i), {}, ZipMethod::stored));
    }
    const Status more = writer.add("more", {}, ZipMethod::stored);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().cause, Cause::unsupported);
    const auto archive = std::move(writer).finish();
    ASSERT_TRUE(archive);
    EXPECT_EQ(read_zip(*archive)->size(), 0xfffeu);
}

TEST(Zip, KnowsUtf8) {
    for (const char* text : {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80",
                             "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
        EXPECT_TRUE(is_utf8(text)) << text;
    }
    for (const char* text : {"\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80",
                             "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
        EXPECT_FALSE(is_utf8(text)) << text;
    }
}

}  // namespace
}  // namespace reef
