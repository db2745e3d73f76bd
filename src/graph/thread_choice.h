// Whether a short run takes all of an executor's threads or one. What a second thread saves depends
// on how long the machine takes to move data to its core, which no table knows: cores that share no
// cache, or that others use, make runs of some hundred microseconds slower. So it is measured at
// the start, again when runs with all threads have become slower, and now and then while runs take
// one.
#pragma once

#include <chrono>
#include <cstdint>

namespace reef::graph {

class ThreadChoice {
  public:
    using Clock = std::chrono::steady_clock;
    using Duration = Clock::duration;

    /// Before a trial: the system gives a thread that it starts or wakes a core of its own some
    /// milliseconds later.
    static constexpr Duration time_to_wake = std::chrono::milliseconds(20);
    static constexpr int runs_to_wake = 3;
    /// Of each kind on trial. The first, which finds its data in other caches, does not count.
    static constexpr int runs_of_trial = 6;
    /// With all threads, whose least time says whether they have become slower.
    static constexpr int runs_of_watch = 100;
    /// Until the next trial, and at least as many runs; twice as long after each one in a row that
    /// one thread wins.
    static constexpr int runs_with_one = 200;
    static constexpr Duration time_with_one = std::chrono::seconds(10);
    static constexpr Duration longest_time_with_one = std::chrono::seconds(160);
    /// Longer runs take all threads.
    static constexpr Duration longest_short_run = std::chrono::milliseconds(5);

    explicit ThreadChoice(int threads) : state_(threads > 1 ? State::waking : State::only_one) {}

    /// Whether the next run takes all threads.
    [[nodiscard]] bool all() const {
        return state_ != State::one_on_trial && state_ != State::one && state_ != State::only_one;
    }
    /// Whether ended() wants to know of runs.
    [[nodiscard]] bool measures() const { return state_ != State::only_one; }
    /// A run like any other, with whatever all() said before.
    void ended(Clock::time_point begin, Clock::time_point end);

  private:
    enum class State : std::uint8_t { only_one, waking, all_on_trial, one_on_trial, all, one };
    [[nodiscard]] State next(Clock::time_point end);
    [[nodiscard]] State winner();
    [[nodiscard]] State watched();

    State state_;
    int runs_ = 0;                        ///< in this state
    Clock::time_point since_{};           ///< when the first of them began
    Duration least_ = Duration::max();    ///< of them
    Duration by_all_ = Duration::max();   ///< of the last trial, or less since
    Duration with_one_ = time_with_one;   ///< if one thread wins the next trial
    Duration until_trial_ = Duration(0);  ///< in State::one
};

}  // namespace reef::graph
