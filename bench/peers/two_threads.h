// Two threads against one, and against what two threads gain on the machine at all.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "quantile.h"

namespace reef::peers {

/// Rounds of one program with one thread and with two. A bound of two threads supposes cores that
/// do twice as much as one; where they do less, which a virtual machine's do from time to time, as
/// large a part of what they do is asked for.
class TwoThreads {
  public:
    /// Wall times of a round, and GainOfTwoThreads measured between both; nothing where that is not
    /// known.
    void note(double one, double two, std::optional<double> machine) {
        one_.push_back(one);
        two_.push_back(two);
        // Below 1 another program had a core, and above 2 the one thread.
        if (machine) of_machine_.push_back(one / two / std::clamp(*machine, 1.0, 2.0));
    }

    // Precondition of the others: a round was noted.

    [[nodiscard]] double least_one() const { return std::ranges::min(one_); }
    [[nodiscard]] double least_two() const { return std::ranges::min(two_); }
    /// Of the least times.
    [[nodiscard]] double times() const { return least_one() / least_two(); }
    /// Of the rounds' own.
    [[nodiscard]] double times_quantile(double part) const {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < one_.size(); ++i) ratios.push_back(one_[i] / two_[i]);
        return bench::quantile(std::move(ratios), part);
    }
    /// Of what the machine gains, the median of the rounds.
    [[nodiscard]] std::optional<double> of_machine() const {
        if (of_machine_.empty()) return std::nullopt;
        return bench::median(of_machine_);
    }
    /// Whether two threads are so many times as fast, or as large a part of the machine's gain.
    [[nodiscard]] bool keep(double least_times) const {
        constexpr double cores = 2;
        return times() >= least_times || of_machine().value_or(0) >= least_times / cores;
    }

  private:
    std::vector<double> one_{}, two_{}, of_machine_{};
};

}  // namespace reef::peers
