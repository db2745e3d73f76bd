#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "outputs/console.h"
#include "outputs/interpretation.h"
#include "outputs/json_output.h"
#include "outputs/model_text.h"
#include "outputs/statistics.h"
#include "outputs/text_table.h"

namespace reef::tool {
namespace {

TEST(Printable, ControlsAndMalformedTextAreReplaced) {
    EXPECT_EQ(printable("plain text"), "plain text");
    EXPECT_EQ(printable("caf\xC3\xA9"), "caf\xC3\xA9");
    EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a?b?c?[31m?");
    EXPECT_EQ(printable("\xC2\x9B"), "?");
    EXPECT_EQ(printable("\xFF\xC3"), "\uFFFD\uFFFD");
}

TEST(Units, ThreeDigits) {
    EXPECT_EQ(bytes_text(925), "925 B");
    EXPECT_EQ(bytes_text(1390000), "1.39 MB");
    EXPECT_EQ(bytes_text(999999), "1.00 MB");
    EXPECT_EQ(bytes_text(45600), "45.6 kB");
    EXPECT_EQ(count_text(9999), "9999");
    EXPECT_EQ(count_text(13600000), "13.6 M");
    EXPECT_EQ(duration_text(0.00142), "1.42 ms");
    EXPECT_EQ(duration_text(0.00031), "310 us");
    EXPECT_EQ(duration_text(2), "2.00 s");
    EXPECT_EQ(plural(1, "run"), "1 run");
    EXPECT_EQ(plural(0, "run"), "0 runs");
}

TEST(Latency, SummaryOfKnownTimes) {
    const LatencySummary summary = summarize({5, 1, 4, 2, 3});
    EXPECT_EQ(summary.runs, 5U);
    EXPECT_EQ(summary.min, 1);
    EXPECT_EQ(summary.max, 5);
    EXPECT_EQ(summary.mean, 3);
    EXPECT_EQ(summary.median, 3);
    EXPECT_DOUBLE_EQ(summary.p90, 4.6);
    EXPECT_DOUBLE_EQ(summary.p95, 4.8);
    EXPECT_DOUBLE_EQ(summary.p99, 4.96);
    EXPECT_DOUBLE_EQ(summary.deviation, std::sqrt(2.5));
    const LatencySummary single = summarize({7});
    EXPECT_EQ(single.p99, 7);
    EXPECT_EQ(single.deviation, 0);
}

TEST(JsonText, FlatArraysStayOnOneLine) {
    const Json document = {{"a", {1, 2, 3}}, {"b", Json::array()}, {"c", {{{"d", "\xFF\"q"}}}}};
    EXPECT_EQ(json_text(document),
              "{\n  \"a\": [1,2,3],\n  \"b\": [],\n  \"c\": [\n    {\n"
              "      \"d\": \"\uFFFD\\\"q\"\n    }\n  ]\n}");
    EXPECT_EQ(json_text({{"nan", std::nan("")}}), "{\n  \"nan\": null\n}");
}

TEST(Shortened, TheMiddleGoes) {
    EXPECT_EQ(shortened("name"), "name");
    EXPECT_EQ(shortened("abcdefghij", 9), "abc...hij");
}

TEST(TopScores, FallingAndStable) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> scores = {0.1, nan, 0.7, 0.1, 0.9};
    std::vector<std::size_t> order;
    for (const ClassScore& entry : top_scores(scores, 9)) order.push_back(entry.index);
    EXPECT_EQ(order, (std::vector<std::size_t>{4, 2, 0, 3, 1}));
    EXPECT_EQ(top_scores(scores, 2).size(), 2U);
    EXPECT_TRUE(top_scores({}, 5).empty());
}

}  // namespace
}  // namespace reef::tool
