// Whether a short run takes all of an executor's threads or one. What a second thread saves depends
// on how long the machine takes to move data to its core, which no table knows: cores that share no
// cache, or that others use, make runs of some hundred microseconds slower. So it is measured at
// the start, again when runs with all threads have become slower, and after many runs with one.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace reef::graph {

class ThreadChoice {
  public:
    using Duration = std::chrono::duration<double, std::milli>;

    /// Of each kind on trial at least, one behind the other: the first finds its data in other
    /// caches.
    static constexpr int runs_of_trial = 5;
    /// All threads are on trial at least as long: the system gives a thread that it starts or wakes
    /// a core of its own some milliseconds later.
    static constexpr Duration time_of_trial{20};
    /// With all threads, whose least time says whether they have become slower.
    static constexpr int runs_of_watch = 100;
    static constexpr int runs_with_one = 2000;
    /// Longer runs take all threads.
    static constexpr Duration longest_short_run{5};

    explicit ThreadChoice(int threads)
        : state_(threads > 1 ? State::all_on_trial : State::only_one) {}

    /// Whether the next run takes all threads.
    [[nodiscard]] bool all() const { return state_ == State::all_on_trial || state_ == State::all; }
    /// Whether ended() wants to know how long the next run takes.
    [[nodiscard]] bool measures() const {
        return state_ != State::one && state_ != State::only_one;
    }
    /// A run has ended, in that time where it was measured.
    void ended(Duration taken);

  private:
    enum class State : std::uint8_t { only_one, all_on_trial, one_on_trial, all, one };
    [[nodiscard]] bool is_over() const;
    void go_on();
    void begin(State state);

    static constexpr Duration never{std::numeric_limits<double>::max()};
    State state_;
    int runs_ = 0;             ///< in this state
    Duration least_ = never;   ///< of them
    Duration sum_{0};          ///< of them
    Duration by_all_ = never;  ///< the last trial's
};

}  // namespace reef::graph
