// Where a network first goes wrong: tensors that should be against tensors that are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

/// Both must be reached: cos(a, b), and 1 - |a - b| / |a|.
struct Tolerance {
    double cosine = 0.99;
    double euclid = 0.90;
};

struct Similarity {
    double cosine = 1;
    double euclid = 1;
    std::int64_t nan_only_one = 0;  ///< places where one side alone is no number, or infinite
    [[nodiscard]] bool within(const Tolerance& tolerance) const {
        return nan_only_one == 0 && cosine >= tolerance.cosine && euclid >= tolerance.euclid;
    }
};

/// Every element counts. Integers of a quantised value become real numbers by its scales and zero
/// points. Two NaN at one place, and equal infinities, are equal. Errors: bad_input for other
/// numbers of elements, and for scales that do not fit the shape.
[[nodiscard]] Result<Similarity> similarity(const Array& reference, const Array& actual,
                                            const Value& value);

enum class Verdict : std::uint8_t { right, wrong, unknown, constant };

/// A tensor, in the order in which the operators compute them.
struct Judged {
    ValueIndex value = 0;
    std::size_t unit = 0;          ///< of units_of(); none of a network's inputs
    const Operator* op = nullptr;  ///< that computes it; inside a unit, where that is one
    Verdict verdict = Verdict::unknown;
    Similarity numbers;
    std::string problem;  ///< why two cannot be compared: they are wrong then
};

/// What reef cut can cut at: operators of functions, groups as one.
struct Unit {
    const Operator* op = nullptr;
    std::vector<std::string> names;   ///< of its results in memory
    std::vector<std::size_t> before;  ///< units that compute its operands
};
[[nodiscard]] std::vector<Unit> units_of(const FinalProgram& program);

struct Bisection {
    std::vector<Judged> inputs;              ///< of the network
    std::vector<Judged> tensors;             ///< that are computed
    std::optional<std::size_t> first_wrong;  ///< in tensors
    std::size_t compared = 0;
};
/// Nothing is sampled. Errors: bad_input when no name is on all three sides.
[[nodiscard]] Result<Bisection> bisect(const FinalProgram& program, const NamedArrays& reference,
                                       const NamedArrays& actual, const Tolerance& tolerance);

/// The operands of a tensor's operator, through loads, with their verdicts.
[[nodiscard]] std::vector<std::pair<std::string, Verdict>> inputs_of(const FinalProgram& program,
                                                                     const Bisection& bisection,
                                                                     std::size_t tensor);

/// What was not compared between a tensor and those behind which all is known: any of these may be
/// the first that is wrong. Positions in `tensors`, in order.
[[nodiscard]] std::vector<std::size_t> not_compared_before(const FinalProgram& program,
                                                           const Bisection& bisection,
                                                           std::size_t tensor);

/// The first unit that is wrong while those before it are right, by asking: each answer costs a cut
/// and a run. Empty when the last is right. Errors: those of `is_wrong`.
using IsWrong = std::function<Result<bool>(const Unit& unit)>;
[[nodiscard]] Result<std::optional<std::size_t>> first_wrong_unit(const std::vector<Unit>& units,
                                                                  const IsWrong& is_wrong);

/// Operators inside a wrong unit of which one is at fault, in order: those that compute its first
/// wrong result and none that is right. One question for each result of a group, none for others,
/// of which the unit's operator itself is the only one. Errors: those of `is_wrong`.
[[nodiscard]] Result<std::vector<const Operator*>> suspects_in(const FinalProgram& program,
                                                               const Unit& unit,
                                                               const IsWrong& is_wrong);

}  // namespace reef::sophgo
