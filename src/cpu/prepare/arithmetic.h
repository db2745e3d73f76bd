// Another arithmetic than TFLite's: a table of kernels that stand in for the registry's.
//
// A kernel of such a table uses the checks and loops of this floor and brings its own functions
// from sums to values (kernels.h, reference/*.h, convolution.h). Which kernel runs is decided when
// the operator is prepared; nothing is looked up in a run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/prepare/kernel.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::cpu {

/// An operator that the arithmetic knows how to compute.
struct ArithmeticForm {
    model::Op op = model::Op::custom;
    Prepare prepare = nullptr;
    bool copies = false;        ///< bytes move and nothing is computed
    std::string_view supports;  ///< one sentence: what is known of it, and its limits
};

struct Arithmetic {
    std::string_view name;     ///< stands behind the names of kernels that compute in it
    std::string_view machine;  ///< whose it is: "the ..."
    std::span<const ArithmeticForm> forms;
    /// Per operator of a valid graph: why it keeps TFLite's arithmetic, one clause; empty for those
    /// that are computed in this one. `on_chip`: which operators are the machine's in a compiled
    /// model; empty: those that its compiler would take.
    std::vector<std::string> (*reasons_for_tflite)(const model::Model& model,
                                                   const model::Subgraph& graph,
                                                   const std::vector<bool>& on_chip) = nullptr;

    /// Nothing when the machine's way to compute the operator is not known.
    [[nodiscard]] const ArithmeticForm* find(model::Op op) const;
    /// The refusal of what nobody has seen the machine compute.
    [[nodiscard]] std::unexpected<Error> unknown(std::string_view what) const;
};

}  // namespace reef::cpu
