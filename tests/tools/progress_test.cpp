// The progress bar: its times and its text, and that long work really draws one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "command.h"
#include "outputs/console.h"
#include "outputs/stages.h"
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

/// The other end of what Stages write on.
class StagesTest : public ::testing::Test {
  protected:
    StagesTest() { EXPECT_EQ(::pipe(ends_), 0); }
    ~StagesTest() override {
        for (const int end : ends_) ::close(end);
    }
    [[nodiscard]] int descriptor() const { return ends_[1]; }
    /// What has been written, at least a byte if that comes within `patience`.
    [[nodiscard]] std::string written(std::chrono::milliseconds patience) const {
        pollfd ready{.fd = ends_[0], .events = POLLIN, .revents = 0};
        if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) return {};
        std::string text(65536, '\0');
        const ssize_t size = ::read(ends_[0], text.data(), text.size());
        text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
        return text;
    }

  private:
    int ends_[2] = {};
};

TEST_F(StagesTest, AreShownWithTheirNumberAndTime) {
    {
        Stages stages(2, descriptor(), 1ms, 1h);
        stages.begin("running");
        EXPECT_THAT(written(1min), StartsWith("\r[1/2] running, "));
        stages.begin("comparing");
        EXPECT_THAT(written(1min), StartsWith("\r[2/2] comparing, "));
        stages.end();
        EXPECT_EQ(written(1min), "\r\x1b[K");
    }
    EXPECT_THAT(written(0ms), IsEmpty());
}

TEST_F(StagesTest, AreWrittenAnewAndTakenAwayAtTheEnd) {
    {
        Stages stages(1, descriptor(), 1ms, 1ms);
        stages.begin("running");
        EXPECT_THAT(written(1min), StartsWith("\rrunning, 0 s\x1b[K"));
        EXPECT_THAT(written(1min), StartsWith("\rrunning, "));
    }
    EXPECT_THAT(written(1min), EndsWith("\r\x1b[K"));
}

TEST_F(StagesTest, StayAwayFromShortWork) {
    {
        Stages stages(1, descriptor(), 1h, 1ms);
        stages.begin("running");
    }
    EXPECT_THAT(written(0ms), IsEmpty());
}

}  // namespace
}  // namespace reef::tool
