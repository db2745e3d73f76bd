#include "reef/chip/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "reef/model/cost.h"

namespace reef::chip {
namespace {

using model::OperatorRange;

constexpr double no_segment = std::numeric_limits<double>::infinity();

/// Borders: the first operator of each segment but the first.
using Borders = std::vector<std::size_t>;

class Search {
  public:
    Search(const model::Model& model, std::size_t count, const SegmentCost& cost)
        : model_(model), cost_(cost), operators_(model.subgraphs.front().operators.size()) {
        find_start(count);
    }

    Result<std::vector<OperatorRange>> run(const SegmentProgress& progress) {
        auto costs = REEF_TRY(costs_of(borders_));
        // Far steps first, and every step: a border inside a block costs more than one on either
        // side of it.
        const std::size_t farthest = std::max<std::size_t>(1, operators_ / 4);
        for (std::size_t step = farthest; step > 0;) {
            if (progress) progress(1 - static_cast<double>(step) / static_cast<double>(farthest));
            if (auto better = REEF_TRY(better_by(step, costs)))
                costs = std::move(*better);
            else
                step -= 1;
        }
        if (costs.front() == no_segment)
            return fail(Cause::unsupported,
                        fmt::format("no {} segments are found that each have work for a chip",
                                    borders_.size() + 1),
                        {}, "ask for fewer");
        return ranges_of(borders_);
    }

  private:
    /// Equal shares of multiply-adds and of the bytes of weights.
    void find_start(std::size_t count) {
        const auto& graph = model_.subgraphs.front();
        std::vector<double> behind{0};
        for (const auto& op : graph.operators) {
            const model::Cost cost = model::cost_of(model_, graph, op);
            behind.push_back(behind.back() + static_cast<double>(cost.macs) / 64 +
                             static_cast<double>(cost.weight_bytes) + 1);
        }
        for (std::size_t s = 1; s < count; ++s) {
            const double share =
                behind.back() * static_cast<double>(s) / static_cast<double>(count);
            const auto at =
                static_cast<std::size_t>(std::ranges::lower_bound(behind, share) - behind.begin());
            const std::size_t least = borders_.empty() ? 1 : borders_.back() + 1;
            borders_.push_back(std::clamp(at, least, operators_ - (count - s)));
        }
    }

    [[nodiscard]] std::vector<OperatorRange> ranges_of(const Borders& borders) const {
        std::vector<OperatorRange> ranges;
        for (std::size_t s = 0; s <= borders.size(); ++s) {
            const std::size_t first = s == 0 ? 0 : borders[s - 1];
            const std::size_t end = s == borders.size() ? operators_ : borders[s];
            ranges.push_back({first, end - first});
        }
        return ranges;
    }

    Result<double> cost_of(OperatorRange range) {
        const auto known = known_.find({range.first, range.count});
        if (known != known_.end()) return known->second;
        const auto part = REEF_TRY(model::part_of(model_, range));
        if (part.operators.empty()) return known_[{range.first, range.count}] = no_segment;
        auto cost = cost_(part);
        if (!cost && cost.error().cause != Cause::unsupported) return cost;
        return known_[{range.first, range.count}] = cost.value_or(no_segment);
    }

    /// From the slowest on: of two divisions the one that compares less is better.
    Result<std::vector<double>> costs_of(const Borders& borders) {
        std::vector<double> costs;
        for (const OperatorRange range : ranges_of(borders))
            costs.push_back(REEF_TRY(cost_of(range)));
        std::ranges::sort(costs, std::ranges::greater{});
        return costs;
    }

    /// Moves the border whose move makes the division better most, and gives its costs.
    Result<std::optional<std::vector<double>>> better_by(std::size_t step,
                                                         const std::vector<double>& now) {
        std::optional<std::vector<double>> best;
        Borders best_borders;
        for (std::size_t b = 0; b < borders_.size(); ++b) {
            const std::size_t least = (b == 0 ? 0 : borders_[b - 1]) + 1;
            const std::size_t most = (b + 1 == borders_.size() ? operators_ : borders_[b + 1]) - 1;
            for (const bool up : {false, true}) {
                Borders moved = borders_;
                if (up ? moved[b] + step > most : moved[b] < least + step) continue;
                moved[b] = up ? moved[b] + step : moved[b] - step;
                auto costs = REEF_TRY(costs_of(moved));
                if (costs < (best ? *best : now)) {
                    best = std::move(costs);
                    best_borders = std::move(moved);
                }
            }
        }
        if (best) borders_ = std::move(best_borders);
        return best;
    }

    const model::Model& model_;
    const SegmentCost& cost_;
    std::size_t operators_;
    Borders borders_;
    std::map<std::pair<std::size_t, std::size_t>, double> known_;
};

}  // namespace

Result<std::vector<OperatorRange>> segments_of(const model::Model& model, std::size_t count,
                                               const SegmentCost& cost,
                                               const SegmentProgress& progress) {
    const std::size_t operators =
        model.subgraphs.empty() ? 0 : model.subgraphs.front().operators.size();
    if (count == 0 || count > operators)
        return fail(count == 0 ? Cause::bad_argument : Cause::unsupported,
                    fmt::format("a network of {} operators is not divided into {} segments",
                                operators, count),
                    {}, count == 0 ? "ask for one at least" : "ask for fewer");
    return Search(model, count, cost).run(progress);
}

CompileOptions options_of_part(CompileOptions options, std::span<const CompiledOperator> whole,
                               const model::Part& part) {
    options.placed_as.clear();
    for (const std::size_t o : part.operators) {
        options.placed_as.push_back(whole[o]);
        options.placed_as.back().index = options.placed_as.size() - 1;
    }
    return options;
}

}  // namespace reef::chip
