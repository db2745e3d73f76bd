// How a program uses Reef's ground floor: results, bytes, files, arrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "reef/base/bytes.h"
#include "reef/base/element_type.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/base/result.h"

namespace {

using testing::HasSubstr;

reef::Result<std::uint32_t> checked_version(reef::Bytes header) {
    reef::ByteReader reader(header);
    const std::uint32_t version = REEF_TRY(reader.u32());
    if (version > 7) return reef::fail(reef::Cause::unsupported, "a newer version", "header");
    return version;
}

TEST(Promised, ResultsCarryErrorsOut) {
    const auto good = checked_version(reef::as_bytes({"\7\0\0\0", 4}));
    ASSERT_TRUE(good);
    EXPECT_EQ(*good, 7U);
    const auto newer = checked_version(reef::as_bytes({"\x08\0\0\0", 4}));
    ASSERT_FALSE(newer);
    EXPECT_EQ(newer.error().cause, reef::Cause::unsupported);
    EXPECT_EQ(newer.error().message(), "header: a newer version");
    EXPECT_FALSE(checked_version(reef::as_bytes("ab")));
}

TEST(Promised, BytesAreSharedWithTheirOwner) {
    auto text = std::make_shared<std::string>("weights");
    const reef::SharedBytes all(reef::as_bytes(*text), text);
    text.reset();
    EXPECT_EQ(reef::as_text(all.part(2, 5).view()), "ights");
    EXPECT_EQ(all, reef::SharedBytes::copy_of(all.view()));
    EXPECT_EQ(reef::BitReader(all.view()).field(0, 8), std::uint64_t{'w'});
}

TEST(Promised, ElementTypesHaveNamesAndSizes) {
    EXPECT_EQ(reef::size_of(reef::ElementType::int16), 2U);
    EXPECT_EQ(reef::element_type_from(reef::name_of(reef::ElementType::int8)),
              reef::ElementType::int8);
}

TEST(Promised, ArraysGoToFilesAndBack) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("reef_api_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    const std::string path = folder / "array.npy";
    const reef::Array array{reef::ElementType::uint8, {2, 1}, {std::byte{3}, std::byte{4}}};
    const auto written = reef::write_npy(array);
    ASSERT_TRUE(written);
    ASSERT_TRUE(reef::write_file(path, *written));
    const auto file = reef::read_file(path);
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(reef::read_npy(file->view()), array);
    std::filesystem::remove_all(folder);
    const auto gone = reef::read_file(path);
    ASSERT_FALSE(gone);
    EXPECT_THAT(gone.error().message(), HasSubstr(path));
}

}  // namespace
