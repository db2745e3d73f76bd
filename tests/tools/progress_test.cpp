// The progress bar: its times and its text, and that long work really draws one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"
#include "outputs/console.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr ProgressBar::Clock::time_point start{100h};

TEST(ProgressBar, StaysAwayFromShortWork) {
    ProgressBar bar("running", start);
    EXPECT_THAT(bar.update(0.1, start), IsEmpty());
    EXPECT_THAT(bar.update(0.9, start + 1999ms), IsEmpty());
    EXPECT_THAT(bar.erase(), IsEmpty());
}

TEST(ProgressBar, ReplacesItsLineAtMostTenTimesASecond) {
    ProgressBar bar("running", start);
    EXPECT_EQ(bar.update(0.5, start + 2s), "\rrunning [###############...............]  50 %");
    EXPECT_THAT(bar.update(0.6, start + 2099ms), IsEmpty());
    EXPECT_EQ(bar.update(1, start + 2100ms), "\rrunning [##############################] 100 %");
    EXPECT_EQ(bar.erase(), "\r\x1b[K");
}

TEST(ProgressBar, ClampsWhatIsDone) {
    ProgressBar bar("x", start);
    EXPECT_THAT(bar.update(-1, start + 3s), EndsWith("[..............................]   0 %"));
    EXPECT_THAT(bar.update(1.7, start + 4s), EndsWith("[##############################] 100 %"));
}

class ProgressTest : public CommandTest {
  protected:
    /// Runs of a millisecond, so that measuring takes as long as --seconds says.
    [[nodiscard]] std::string slow_model() const {
        constexpr std::int32_t side = 1024;
        model::Builder builder("slow");
        const auto a = builder.input("a", ElementType::float32, {side, side});
        const auto b = builder.input("b", ElementType::float32, {side, side});
        const auto sum = builder.tensor("sum", ElementType::float32, {side, side});
        builder.add(model::Op::add, {a, b}, {sum}, model::AddOptions{});
        builder.output(sum);
        return write("slow.tflite", model::write_tflite(builder.finish().value()).value());
    }
    [[nodiscard]] static test::ProcessResult bench(const std::string& model,
                                                   const std::string& seconds, bool terminal) {
        return reef_command({"bench", model, "--seconds", seconds, "--warmup", "0"},
                            {.error_terminal = terminal});
    }
};

TEST_F(ProgressTest, WorkOfMoreThanTwoSecondsDrawsABarAndTakesItAway) {
    const auto result = bench(slow_model(), "2.5", true);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, StartsWith("\rmeasuring [#"));
    EXPECT_THAT(result.err, HasSubstr(" %\r\x1b[K"));
    EXPECT_THAT(result.out, HasSubstr("time by type"));
}

TEST_F(ProgressTest, AFileGetsNoBar) {
    const auto result = bench(slow_model(), "2.5", false);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(ProgressTest, ShortWorkGetsNoBar) {
    const auto result = bench(slow_model(), "0.01", true);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, IsEmpty());
}

}  // namespace
}  // namespace reef::tool
