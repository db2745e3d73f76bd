// The tensors inside compiled programs, and which tensor of the plain model each is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/model/graph.h"

namespace reef::chip {

/// A tensor that instructions of one arithmetic compute out of the same sources.
struct Layer {
    std::string name;
    /// All that store parts of it, in program order: "word 0x0a7 mac".
    std::vector<std::string> instructions;
    std::uint16_t tiles = 0;  ///< bit t: the chip's part t stores some of it
    /// Names of the layers and inputs that it reads.
    std::vector<std::string> sources;
    std::string problem;  ///< why it cannot be gathered
};

/// What a program was told, and what the plain model says instead.
struct ValueDifference {
    std::string_view field;  ///< of the instruction
    double program = 0;
    double plain = 0;
};

struct LayerMatch {
    std::size_t layer = 0;                             ///< index in LayerSet::layers()
    std::size_t op = 0;                                ///< in the plain model's first subgraph
    model::TensorIndex tensor = model::absent_tensor;  ///< its output
    std::string_view by;                               ///< why, in a word: "values"
    /// Only because it and the operator are left over in the same place.
    bool by_place = false;
    /// The layer is gathered and has the tensor's shape. Always true but for those by place.
    bool comparable = true;
    std::vector<ValueDifference> differences{};  ///< by place only
};

/// All layers of one run.
class LayerSet {
  public:
    LayerSet() = default;
    LayerSet(const LayerSet&) = delete;
    LayerSet& operator=(const LayerSet&) = delete;
    virtual ~LayerSet() = default;

    [[nodiscard]] virtual std::span<const Layer> layers() const = 0;
    /// As the chip computes it; without bytes for a layer with a problem.
    [[nodiscard]] virtual const reef::Array& tensor_of(std::size_t layer) const = 0;

    struct Matches {
        std::vector<LayerMatch> layers;
        /// Operators with weights that no comparable layer is, in the plain model's first subgraph.
        std::vector<std::size_t> operators_without_layer;
    };
    /// In the order of layers(), which tensor of the plain model they are. Layers without an
    /// operator of their own have no match. Errors: bad_input for a model of other operators.
    [[nodiscard]] virtual Result<Matches> match(const model::Model& plain) = 0;
    /// The layer in the shape and type of a tensor of the plain model, without what the chip fills
    /// up; nothing when it has not that shape. Layers that match() found another place for are laid
    /// out as that says.
    [[nodiscard]] virtual std::optional<reef::Array> as_tensor(
        std::size_t layer, const model::Tensor& tensor) const = 0;
};

/// A compiled model that has run once.
struct RanModel {
    const model::Model& model;
    const model::Subgraph& graph;
    /// The bytes that a tensor of the graph held at the end.
    std::function<Bytes(model::TensorIndex)> tensor;
};

/// What the CPU computes that layers are compared with.
struct LayerReference {
    /// The CPU's kernels have the chip's arithmetic; otherwise each operator is TFLite's, and is
    /// given what the chip's operators before it gave.
    bool own_arithmetic = true;
    double tolerance = 0;  ///< how far a right value may be from it, in steps of the tensor
    std::string rounding;  ///< of the chip where it is not the CPU's
};

/// Of a family of chips, enrolled as a part of it.
class LayerGatherer : public Part {
  public:
    /// URI of the device on which its programs give what layers are compared with.
    [[nodiscard]] virtual std::string_view device() const = 0;
    /// By operator of the plain model's first subgraph, whether the compiled model has it on the
    /// chip. Errors: bad_input without a compiled operator.
    [[nodiscard]] virtual Result<std::vector<bool>> on_chip(const model::Model& compiled,
                                                            const model::Model& plain) const = 0;
    /// Errors: those of the programs.
    [[nodiscard]] virtual Result<LayerReference> reference(const model::Model& /*compiled*/) const {
        return LayerReference{};
    }
    /// Runs all operators that are compiled for the chip once more, with the inputs that the run
    /// left. Errors: unsupported without such an operator; those of the programs.
    [[nodiscard]] virtual Result<std::unique_ptr<LayerSet>> gather(const RanModel& ran) const = 0;
};

}  // namespace reef::chip
