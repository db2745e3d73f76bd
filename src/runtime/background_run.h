// The thread of a session on which runs go on that were started and are waited for later.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "reef/base/result.h"

namespace reef::runtime {

/// One piece of work at a time. The thread comes with the first and goes with the object, which
/// waits for the work's end.
class BackgroundRun {
  public:
    BackgroundRun() = default;
    BackgroundRun(const BackgroundRun&) = delete;
    BackgroundRun& operator=(const BackgroundRun&) = delete;
    ~BackgroundRun();

    /// Precondition: !is_open(). Errors: io_failed when the system gives no thread.
    [[nodiscard]] Status start(std::function<Status()> work);
    /// Something was started, and wait() has not given its result yet.
    [[nodiscard]] bool is_open() const;
    [[nodiscard]] bool finished() const;
    /// The result; nothing when it is not there within that time. Precondition: is_open().
    [[nodiscard]] std::optional<Status> wait(std::optional<std::chrono::milliseconds> most);

  private:
    enum class State : std::uint8_t { idle, asked, done, ends };
    void loop();

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::idle;
    std::function<Status()> work_;
    Status result_;
    std::thread thread_;
};

}  // namespace reef::runtime
