#include "reef/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace reef {
namespace {

struct Log : testing::Test {
    ~Log() override { set_log_sink({}); }
};

TEST_F(Log, SilentUntilASinkIsInstalled) {
    log(LogLevel::error, "nobody listens");
    std::vector<std::string> messages;
    set_log_sink([&](LogLevel level, std::string_view message) {
        EXPECT_EQ(level, LogLevel::warning);
        messages.emplace_back(message);
    });
    log(LogLevel::warning, "one");
    set_log_sink({});
    log(LogLevel::warning, "two");
    EXPECT_EQ(messages, std::vector<std::string>{"one"});
}

TEST_F(Log, ASinkMayLogAndReplaceItself) {
    int calls = 0;
    set_log_sink([&calls](LogLevel, std::string_view message) {
        ++calls;
        if (message == "outer") log(LogLevel::info, "inner");
        if (message == "inner") set_log_sink({});
    });
    log(LogLevel::info, "outer");
    log(LogLevel::info, "outer");
    EXPECT_EQ(calls, 2);
}

TEST_F(Log, MessagesOfThreadsArriveOneAtATime) {
    int count = 0;  // unguarded on purpose: the sink is called under the log's own lock
    set_log_sink([&count](LogLevel, std::string_view) { ++count; });
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([] {
            for (int k = 0; k < 1000; ++k) log(LogLevel::debug, "x");
        });
    }
    threads.clear();
    EXPECT_EQ(count, 4000);
}

}  // namespace
}  // namespace reef
