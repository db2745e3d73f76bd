#include "reef/runtime/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reef::runtime {
namespace {

using testing::HasSubstr;

TEST(DeviceUri, GivesItsTextBack) {
    for (const char* text :
         {"cpu", "toy:add", "chip:sim:2", "chip:bus:1-4.2", "chip:replay:a:b.log",
          "chip:replay:/tmp/50%.log", "cpu?threads=4", "chip:sim?strict=true&seed=7",
          "chip:sim:x?empty=", "chip:replay:a%3Fb?file=c%26d", "a-1:b-2"}) {
        const auto uri = DeviceUri::parse(text);
        ASSERT_TRUE(uri) << text << ": " << uri.error().message();
        EXPECT_EQ(uri->text(), text);
        EXPECT_EQ(DeviceUri::parse(uri->text()), *uri);
    }
}

TEST(DeviceUri, HasParts) {
    const auto uri =
        DeviceUri::parse("chip:replay:a:b%3F%25c?clock=standard&file=x%3Dy%26z").value();
    EXPECT_EQ(uri.family, "chip");
    EXPECT_EQ(uri.backend, "replay");
    EXPECT_EQ(uri.name, "a:b?%c");
    const OptionTexts wanted = {{"clock", "standard"}, {"file", "x=y&z"}};
    EXPECT_EQ(uri.options, wanted);
    EXPECT_EQ(uri.device(), "chip:replay:a:b%3F%c");
}

// Every byte may be part of a name or a value, and percent signs that look like escapes are none.
TEST(DeviceUri, KeepsEveryByteOfNamesAndValues) {
    std::string all = "x";
    for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    for (const std::string& text : {all, std::string("%41"), std::string("%%3F?"),
                                    std::string("100%"), std::string("a=b&c?d")}) {
        const DeviceUri uri{"chip", "sim", text, {{"k" + text, text}, {"other", "v"}}};
        const auto again = DeviceUri::parse(uri.text());
        ASSERT_TRUE(again) << again.error().message();
        EXPECT_EQ(*again, uri);
    }
}

TEST(DeviceUri, RefusesWhatIsNone) {
    for (const char* text : {"", ":", "CPU", "cpu:", " cpu", "a:", "a::", "a:b:", "a:B", "a b", "?",
                             "?a=b", "a:b:?c=d", "\xc3\xa9:sim"}) {
        const auto uri = DeviceUri::parse(text);
        ASSERT_FALSE(uri) << text;
        EXPECT_EQ(uri.error().cause, Cause::bad_argument) << text;
        EXPECT_THAT(uri.error().message(), HasSubstr("is not a device")) << text;
    }
}

TEST(DeviceUri, SaysWhatIsWrongWithOptions) {
    EXPECT_THAT(DeviceUri::parse("a:b?").error().message(), HasSubstr("without a name"));
    EXPECT_THAT(DeviceUri::parse("a:b?=1").error().message(), HasSubstr("without a name"));
    EXPECT_THAT(DeviceUri::parse("a:b?c=1&").error().message(), HasSubstr("without a name"));
    EXPECT_THAT(DeviceUri::parse("a:b?strict").error().message(),
                HasSubstr("option strict has no value"));
    EXPECT_THAT(DeviceUri::parse("a:b?c=1&c=2").error().message(),
                HasSubstr("option c is given twice"));
}

}  // namespace
}  // namespace reef::runtime
