// Tensors inside compiled programs, with the plain model's tensor that each is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reef/base/npy.h"
#include "reef/chip/layers.h"
#include "reef/runtime/session.h"

namespace reef::runtime {

/// One layer of a program, and the plain model's tensor that it is.
struct DumpedLayer {
    chip::Layer layer;
    std::optional<chip::LayerMatch> match;
    /// Of the file: "t0031", by the plain model's tensor index, or the layer's own.
    std::string name;
    std::string plain_name;  ///< of the plain model's tensor
    std::string plain_op;    ///< its operator: "operator 18 CONV_2D"
    Array tensor;            ///< as the plain model's, if there is one; empty with a problem
};

/// An operator of the plain model on the chip, with weights, that no layer is.
struct OperatorWithoutLayer {
    std::size_t op = 0;
    std::string name;  ///< "operator 18 CONV_2D"
};

struct LayerDump {
    std::unique_ptr<chip::LayerSet> set;
    std::vector<DumpedLayer> layers;                  ///< of the set
    std::vector<OperatorWithoutLayer> without_layer;  ///< in the order of the plain model
};

/// What `compiled` was made from: the plain model or, of a segment of a pipeline, its part between
/// the segment's inputs and outputs, with the model's tensors by their numbers. Errors: bad_input
/// where it is compiled itself, or its inputs and outputs are of other sizes.
[[nodiscard]] Result<model::Model> plain_model_of(const model::Model& compiled, model::Model plain);

/// The session runs `compiled`, keeps all tensors and has run. `plain` may be null. Errors:
/// unsupported without an operator that is compiled for a chip; those of its gatherer.
[[nodiscard]] Result<LayerDump> dump_layers(const model::Model& compiled, const Session& ran,
                                            const model::Model* plain);

/// Those that could be gathered.
[[nodiscard]] NamedArrays arrays_of(const LayerDump& dump);

}  // namespace reef::runtime
