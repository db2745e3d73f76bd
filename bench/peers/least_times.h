// The least time of every operator of a network, over runs that it observes.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "reef/graph/executor.h"

namespace reef::peers {

class LeastTimes final : public graph::RunObserver {
  public:
    explicit LeastTimes(std::size_t operators) : microseconds(operators, 1e18) {}
    void on_operator(std::size_t i, Clock::time_point begin, Clock::time_point end) override {
        const std::chrono::duration<double, std::micro> taken = end - begin;
        microseconds[i] = std::min(microseconds[i], taken.count());
    }
    std::vector<double> microseconds;
};

}  // namespace reef::peers
