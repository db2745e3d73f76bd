// The layers of a compiled model on a simulated chip against the plain model on the CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "compare/layer_dump.h"
#include "inputs/tensor_input.h"

namespace reef::tool {

struct NamedModel {
    std::string name;  ///< as results and errors call it: a path, where it has one
    model::Model model;
};

/// "net.tflite", and of a segment of a pipeline "operators 17 to 30 of net.tflite".
[[nodiscard]] Result<std::string> name_of_part(const NamedModel& whole,
                                               const model::Model& compiled);

struct LayersToCompare {
    NamedModel compiled;
    NamedModel plain;
    InputBytes inputs;  ///< of both
    ComparisonRules rules = {};
    bool rules_given = false;  ///< false: a tolerance may be the chip's
};

/// Where a compared tensor comes from.
struct TensorOrigin {
    std::optional<std::size_t> layer;  ///< index in the dump; nothing for outputs
    std::string matched_by;            ///< "output" for outputs
    bool from_cpu = false;             ///< an output of the model that no compiled operator makes
};

struct LayerComparison {
    LayerDump dump;
    /// The layers' tensors in the order of the program, then what compiled operators hand to the
    /// CPU ("op3_out0"), then the model's outputs ("out0").
    ComparedSets sets;
    std::vector<TensorOrigin> origins;  ///< by compared tensor
    /// How the chip rounds where the CPU's kernels do it otherwise; each of its operators was then
    /// given what the chip's gave. Empty: the CPU computed in the chip's arithmetic.
    std::string rounding;
    std::optional<std::size_t> first_different;  ///< index of a compared tensor
};

/// The CPU computes in the chip's arithmetic where it can, else operator by operator in TFLite's.
/// Layers that match none of the plain model's operators
/// are compared with the one tensor whose values are theirs, where there is one.
[[nodiscard]] Result<LayerComparison> compare_layers(LayersToCompare what);

void print_layer_comparison_text(Console& console, const LayerComparison& result, bool all);
[[nodiscard]] Json layer_comparison_json(const LayerComparison& result);

}  // namespace reef::tool
