#include "graph/thread_choice.h"

#include <algorithm>

namespace reef::graph {
namespace {

/// Other programs have a use for a core that saves next to nothing.
constexpr double worth_it = 0.97;
/// Of an unchanged machine the least of many runs does not differ as much.
constexpr double slower = 1.15;

}  // namespace

void ThreadChoice::ended(Duration taken) {
    if (state_ == State::only_one) return;
    ++runs_;
    if (measures()) least_ = std::min(least_, taken);
    sum_ += taken;
    if (is_over()) go_on();
}

bool ThreadChoice::is_over() const {
    switch (state_) {
        case State::only_one:
            return false;
        case State::all_on_trial:
            return runs_ >= runs_of_trial && sum_ >= time_of_trial;
        case State::one_on_trial:
            return runs_ >= runs_of_trial;
        case State::all:
            return runs_ >= runs_of_watch;
        case State::one:
            return runs_ >= runs_with_one;
    }
    return false;
}

void ThreadChoice::go_on() {
    switch (state_) {
        case State::only_one:
            return;
        case State::all_on_trial:
            by_all_ = least_;
            return begin(by_all_ < longest_short_run ? State::one_on_trial : State::all);
        case State::one_on_trial:
            return begin(by_all_ < worth_it * least_ ? State::all : State::one);
        case State::all:
            return begin(least_ > slower * by_all_ ? State::all_on_trial : State::all);
        case State::one:
            return begin(State::all_on_trial);
    }
}

void ThreadChoice::begin(State state) {
    state_ = state;
    runs_ = 0;
    least_ = never;
    sum_ = Duration(0);
}

}  // namespace reef::graph
