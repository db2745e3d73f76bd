// Two sets of tensors side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "outputs/console.h"
#include "outputs/json_output.h"
#include "reef/base/compare.h"
#include "reef/base/npy.h"

namespace reef::tool {

/// One name on both sides, or on one only.
struct ComparedTensor {
    std::string name;
    std::string shape;    ///< "1x10 uint8", of the first side that has it
    std::string problem;  ///< why the two cannot be compared; empty when they were
    std::optional<Comparison> numbers;
    std::vector<std::int64_t> first_place;  ///< coordinates of the first differing element
    double first_a = 0, first_b = 0;        ///< the two elements there

    bool within = false;  ///< the numbers keep the rules

    [[nodiscard]] bool same() const { return numbers && within; }
};

struct ComparisonRules {
    Tolerance tolerance;
    /// Given alone, a tensor is equal when its cosine is no smaller, however far its elements are
    /// apart; with a tolerance, it must keep both.
    std::optional<double> least_cosine;
    bool only_common = false;  ///< names on one side only are left out, not differences
};

struct ComparedSets {
    std::string a, b;  ///< what the sides are called
    ComparisonRules rules;
    std::vector<ComparedTensor> tensors;  ///< in the order of a, then what only b has

    [[nodiscard]] std::size_t same_count() const;
    [[nodiscard]] bool same() const { return same_count() == tensors.size(); }
};

/// A side that holds one array is compared with a side that holds one array whatever their names.
/// Errors: bad_input when no name is on both sides and only_common leaves nothing.
[[nodiscard]] Result<ComparedSets> compare_sets(const NamedArrays& a, const NamedArrays& b,
                                                const ComparisonRules& rules);

/// Two arrays as a row of a comparison.
[[nodiscard]] ComparedTensor compare_pair(const std::string& name, const Array& a, const Array& b,
                                          const ComparisonRules& rules);

/// `all`: equal tensors too, however many.
void print_comparison_text(Console& console, const ComparedSets& sets, bool all);
[[nodiscard]] Json comparison_json(const ComparedSets& sets);
/// A line of titles, then one for each tensor.
void print_comparison_csv(Console& console, const ComparedSets& sets);

}  // namespace reef::tool
