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
    /// Wall times of a round, and gain_of_two_threads() between both; nothing where that is not
    /// known.
    void note(double one, double two, std::optional<double> gain) {
        one_.push_back(one);
        two_.push_back(two);
        // Far below 1 another program had a core, and above 2 the one thread's.
        if (!gain || *gain < 0.9 || *gain > 2.2) return;
        machine_.push_back(std::clamp(*gain, 1.0, 2.0));
        of_machine_.push_back(one / two / machine_.back());
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
    /// The median of the machine's gains; nothing where less than half of the rounds have one.
    [[nodiscard]] std::optional<double> machine() const { return median_of_most(machine_); }
    /// The median of the rounds' own ratios to the machine's gain; nothing where it has none.
    [[nodiscard]] std::optional<double> of_machine() const { return median_of_most(of_machine_); }
    /// Whether two threads are so many times as fast, or as large a part of the machine's gain.
    [[nodiscard]] bool keep(double least_times) const {
        constexpr double cores = 2;
        return keep_by_themselves(least_times) || of_machine().value_or(0) >= least_times / cores;
    }

  private:
    // Where others slowed down one thread in every round its least time is too long, and says too
    // much of two; the rounds' own ratios say less then.
    [[nodiscard]] bool keep_by_themselves(double least_times) const {
        constexpr double upper_quartile = 0.75;
        return times() >= least_times && times_quantile(upper_quartile) >= least_times;
    }
    [[nodiscard]] std::optional<double> median_of_most(const std::vector<double>& rounds) const {
        if (rounds.empty() || 2 * rounds.size() < one_.size()) return std::nullopt;
        return bench::median(rounds);
    }

    std::vector<double> one_{}, two_{};
    // Of the rounds whose gain is known.
    std::vector<double> machine_{}, of_machine_{};
};

}  // namespace reef::peers
