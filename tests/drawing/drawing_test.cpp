#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reef/drawing/canvas.h"
#include "reef/drawing/plot.h"

namespace reef::drawing {
namespace {

TEST(StrokeFont, HasDistinctGlyphsForPrintableAscii) {
    std::vector<std::vector<std::pair<double, double>>> seen;
    for (char c = '!'; c <= '~'; ++c) {
        const auto strokes = text_strokes(std::string(1, c), 12);
        ASSERT_FALSE(strokes.empty()) << c;
        std::vector<std::pair<double, double>> points;
        for (const Stroke& stroke : strokes) {
            ASSERT_FALSE(stroke.empty()) << c;
            for (const Point& p : stroke) {
                points.emplace_back(p.x, p.y);
                EXPECT_GE(p.x, 0) << c;
                EXPECT_LE(p.x, text_width(std::string(1, c), 12) + 1e-9) << c;
                EXPECT_GE(p.y, -12) << c;
                EXPECT_LE(p.y, 6) << c << ": descenders reach half a capital";
            }
        }
        EXPECT_EQ(std::ranges::count(seen, points), c == 'O' ? 1 : 0) << c << " (O is drawn as 0)";
        seen.push_back(std::move(points));
    }
}

TEST(StrokeFont, DrawsABoxForOtherCharacters) {
    EXPECT_EQ(text_strokes("\x01", 12).size(), 1U);
    EXPECT_EQ(text_strokes("\xFF", 12).size(), 1U);
    EXPECT_TRUE(text_strokes(" ", 12).empty());
    EXPECT_EQ(text_width("", 12), 0);
    EXPECT_NEAR(text_width("wide text", 24), 2 * text_width("wide text", 12), 1e-9);
}

TEST(Canvas, ClipsWhatLiesOutside) {
    Canvas canvas(20, 10, {1, 2, 3});
    canvas.fill({-5, -5, 8, 8}, {9, 9, 9});
    canvas.line({-100, 5}, {100, 5}, 2, {200, 0, 0});
    canvas.text({-30, 300}, "far away", 12, {255, 255, 255});
    canvas.tile(15, 5, 10, 10, 3, [](int, int) { return Color{7, 7, 7}; });
    EXPECT_EQ(canvas.rgb().size(), 600U);
    EXPECT_EQ(canvas.at(0, 0), (Color{9, 9, 9}));
    EXPECT_EQ(canvas.at(3, 3), (Color{1, 2, 3}));
    EXPECT_EQ(canvas.at(10, 5), (Color{200, 0, 0}));
    EXPECT_EQ(canvas.at(19, 9), (Color{7, 7, 7}));
}

TEST(Canvas, TextIsWhereItsAnchorSays) {
    for (const Anchor anchor : {Anchor::left, Anchor::middle, Anchor::right}) {
        Canvas canvas(200, 40, {0, 0, 0});
        canvas.text({100, 30}, "anchored", 12, {255, 255, 255}, anchor);
        double sum = 0;
        double weight = 0;
        for (int y = 0; y < 40; ++y) {
            for (int x = 0; x < 200; ++x) {
                sum += x * canvas.at(x, y).r;
                weight += canvas.at(x, y).r;
            }
        }
        ASSERT_GT(weight, 0);
        const double half = text_width("anchored", 12) / 2;
        const double middle = anchor == Anchor::left    ? 100 + half
                              : anchor == Anchor::right ? 100 - half
                                                        : 100;
        EXPECT_NEAR(sum / weight, middle, 4);
    }
}

TEST(Plot, TicksAreRoundNumbers) {
    EXPECT_DOUBLE_EQ(tick_step(3.1, 8), 0.5);
    EXPECT_DOUBLE_EQ(tick_step(4.9, 6), 1);
    EXPECT_DOUBLE_EQ(tick_step(100, 5), 20);
    EXPECT_DOUBLE_EQ(tick_step(0.07, 8), 0.01);
}

}  // namespace
}  // namespace reef::drawing
