#include "inputs/input_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reef/base/file.h"
#include "support/temporary_folder.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> names = {"image", "a=b", "a"};

TEST(InputSpec, FourForms) {
    const RawLayout layout{{1, 224, 224, 3}, ElementType::uint8};
    EXPECT_EQ(*parse_input_spec("cat.bmp", names), (InputSpec{"", "cat.bmp", {}}));
    EXPECT_EQ(*parse_input_spec("image=cat.bmp", names), (InputSpec{"image", "cat.bmp", {}}));
    EXPECT_EQ(*parse_input_spec("1x224x224x3xu8=@f.bin", names), (InputSpec{"", "f.bin", layout}));
    EXPECT_EQ(*parse_input_spec("image=1x224x224x3xu8=@f.bin", names),
              (InputSpec{"image", "f.bin", layout}));
    EXPECT_EQ(*parse_input_spec("in1=-", names), (InputSpec{"in1", "-", {}}));
}

TEST(InputSpec, TheLongestNameWins) {
    EXPECT_EQ(parse_input_spec("a=b=c.npy", names)->name, "a=b");
    EXPECT_EQ(parse_input_spec("a=c.npy", names)->name, "a");
}

TEST(InputSpec, APathMayHoldEqualsSigns) {
    const test::TemporaryFolder folder;
    const std::string path = folder.file("run=3.npy");
    ASSERT_TRUE(write_file(path, as_bytes("x")));
    EXPECT_EQ(parse_input_spec(path, names)->path, path);
    EXPECT_EQ(parse_input_spec("image=" + path, names)->path, path);
}

TEST(InputSpec, RawLayouts) {
    EXPECT_EQ(*parse_raw_layout("f32"), (RawLayout{{}, ElementType::float32}));
    EXPECT_EQ(*parse_raw_layout("3x4xint16"), (RawLayout{{3, 4}, ElementType::int16}));
    EXPECT_EQ(*parse_raw_layout("2xcomplex64"), (RawLayout{{2}, ElementType::complex64}));
    for (const char* bad : {"", "x", "3x", "3xu9", "3x-1xu8", "-3xu8", "3.5xu8", "3xstring",
                            "99999999999999999999xu8", "1x1x1x1x1x1x1x1x1xu8"}) {
        EXPECT_FALSE(parse_raw_layout(bad)) << bad;
    }
}

TEST(InputSpec, MistakesAreNamed) {
    EXPECT_THAT(parse_input_spec("picture=cat.bmp", names).error().message(),
                HasSubstr("no graph input is named 'picture'"));
    EXPECT_THAT(parse_input_spec("1x2xu9=@f", names).error().message(),
                HasSubstr("'u9' of '1x2xu9' is not an element type"));
    EXPECT_FALSE(parse_input_spec("", names));
    EXPECT_FALSE(parse_input_spec("image=", names));
    EXPECT_FALSE(parse_input_spec("3xu8=@", names));
    EXPECT_FALSE(parse_input_spec("in3=x.npy", names));
}

}  // namespace
}  // namespace reef::tool
