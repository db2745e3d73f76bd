// The progress bar: its times and its text, and that long work really draws one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "command.h"
#include "outputs/console.h"
#include "outputs/stages.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
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

/// What Stages write while `work` lasts, with a line every millisecond.
template <typename Work>
std::string written_during(std::size_t count, std::chrono::milliseconds first, Work work) {
    int ends[2] = {};
    EXPECT_EQ(::pipe(ends), 0);
    {
        Stages stages(count, ends[1], first, 1ms);
        work(stages);
    }
    ::close(ends[1]);
    std::string text(65536, '\0');
    const ssize_t size = ::read(ends[0], text.data(), text.size());
    ::close(ends[0]);
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
}

TEST(Stages, AreShownWithTheirNumberAndTime) {
    const std::string text = written_during(2, 1ms, [](Stages& stages) {
        stages.begin("running");
        std::this_thread::sleep_for(20ms);
        stages.begin("comparing");
        std::this_thread::sleep_for(20ms);
    });
    EXPECT_THAT(text, StartsWith("\r[1/2] running, 0 s\x1b[K"));
    EXPECT_THAT(text, HasSubstr("\r[2/2] comparing, 0 s\x1b[K"));
    EXPECT_THAT(text, EndsWith("\r\x1b[K"));
}

TEST(Stages, StayAwayFromShortWorkAndFromWhatComesBehindThem) {
    EXPECT_THAT(written_during(1, 1h, [](Stages& stages) { stages.begin("running"); }), IsEmpty());
    EXPECT_THAT(written_during(1, 1ms,
                               [](Stages& stages) {
                                   stages.begin("running");
                                   stages.end();
                                   std::this_thread::sleep_for(20ms);
                               }),
                AnyOf(IsEmpty(), EndsWith("\r\x1b[K")));
}

}  // namespace
}  // namespace reef::tool
