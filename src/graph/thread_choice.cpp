#include "graph/thread_choice.h"

#include <algorithm>

namespace reef::graph {
namespace {

/// Other programs have a use for a core that saves next to nothing.
constexpr double worth_it = 0.97;
/// Of an unchanged machine the least of many runs does not differ as much.
constexpr double slower = 1.15;

double ratio(ThreadChoice::Duration a, ThreadChoice::Duration b) {
    return static_cast<double>(a.count()) /
           static_cast<double>(std::max<std::int64_t>(b.count(), 1));
}

}  // namespace

void ThreadChoice::ended(Clock::time_point begin, Clock::time_point end) {
    if (state_ == State::only_one) return;
    const bool on_trial = state_ == State::all_on_trial || state_ == State::one_on_trial;
    if (runs_ == 0) since_ = begin;
    if (runs_ > 0 || !on_trial) least_ = std::min(least_, end - begin);
    ++runs_;
    const State state = next(end);
    const bool watch_ends = state_ == State::all && runs_ == runs_of_watch;
    if (state != state_ || watch_ends) {
        state_ = state;
        runs_ = 0;
        least_ = Duration::max();
    }
}

ThreadChoice::State ThreadChoice::next(Clock::time_point end) {
    switch (state_) {
        case State::only_one:
            break;
        case State::waking:
            if (runs_ < runs_to_wake || end - since_ < time_to_wake) break;
            return State::all_on_trial;
        case State::all_on_trial:
            if (runs_ < runs_of_trial) break;
            by_all_ = least_;
            return by_all_ < longest_short_run ? State::one_on_trial : State::all;
        case State::one_on_trial:
            return runs_ < runs_of_trial ? state_ : winner();
        case State::all:
            return runs_ < runs_of_watch ? state_ : watched();
        case State::one:
            if (runs_ < runs_with_one || end - since_ < until_trial_) break;
            return State::waking;
    }
    return state_;
}

ThreadChoice::State ThreadChoice::winner() {
    if (ratio(by_all_, least_) < worth_it) {
        with_one_ = time_with_one;
        return State::all;
    }
    until_trial_ = with_one_;
    with_one_ = std::min(2 * with_one_, longest_time_with_one);
    return State::one;
}

ThreadChoice::State ThreadChoice::watched() {
    const bool was_long = by_all_ >= longest_short_run;
    if (ratio(least_, by_all_) > slower || (was_long && least_ < longest_short_run))
        return State::waking;
    by_all_ = std::min(by_all_, least_);
    return State::all;
}

}  // namespace reef::graph
