// Ending runs early.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "reef/base/result.h"

namespace reef::graph {

/// How far the runs of an executor may go: it ends when it is cancelled, or over its deadline. The
/// executor asks between two operators; operators on devices ask while they wait.
class RunControl {
  public:
    using Clock = std::chrono::steady_clock;

    /// Any thread. The operator that works, and those after it, end with Cause::cancelled.
    void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

    /// Between runs. No deadline: a device has its own.
    void begin(std::optional<std::chrono::milliseconds> deadline) {
        cancelled_.store(false, std::memory_order_relaxed);
        deadline_ = deadline;
        if (deadline) end_ = Clock::now() + *deadline;
    }
    [[nodiscard]] bool has_deadline() const { return deadline_.has_value(); }
    /// Of the whole run; 0 without one.
    [[nodiscard]] std::chrono::milliseconds deadline() const {
        return deadline_.value_or(std::chrono::milliseconds(0));
    }
    /// What is left of it, 0 at least. Precondition: has_deadline().
    [[nodiscard]] std::chrono::milliseconds left() const;

    /// An error when the run was cancelled or is over its deadline: what operators ask between two
    /// steps of their work.
    [[nodiscard]] Status check() const;

  private:
    std::atomic<bool> cancelled_ = false;
    std::optional<std::chrono::milliseconds> deadline_;
    Clock::time_point end_{};
};

}  // namespace reef::graph
