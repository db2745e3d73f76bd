// The tensors inside a compiled program, found from what the simulated chip reads and writes.
//
// Nothing of the model that was compiled is known here. The simulator runs the program with marks
// in place of data, which shows where each operand of each tensor instruction was stored, and once
// with the data. docs/simulator.md says how tensors, their shapes and the order of tiles follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/requantisation.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

/// A tensor that tensor instructions of one arithmetic compute out of the same sources.
struct GatheredLayer {
    /// "layer_007", in the order of the program.
    std::string name;
    /// All that store parts of it, in program order: "word 0x0a7 mac".
    std::vector<std::string> instructions;
    Instruction first;  ///< of them; refers to first_bytes
    SharedBytes first_bytes;
    std::uint16_t tiles = 0;  ///< bit t: tile t stores a part
    /// Names of the layers and inputs that it reads.
    std::vector<std::string> sources;
    bool keeps_bytes = false;  ///< it moves them to another place and changes none
    /// Height x width x channels; uint8 or uint16, as the chip computes. Tiles store whole words,
    /// so that the channels may be some more than the model's. Without bytes when `problem` says
    /// why it cannot be gathered.
    Array tensor;
    std::string problem;
};

/// One inference on a chip of its own, at the cost of about seven; `inputs` as of
/// SimulatedPackage::run(). Errors: those of it; unsupported for inputs of more than 16 bits and
/// programs whose results would need more than 1 GiB.
[[nodiscard]] Result<std::vector<GatheredLayer>> program_layers(const Package& package,
                                                                std::span<const Bytes> inputs);

/// The same of several pictures, each at the cost of about one inference after the first.
[[nodiscard]] Result<std::vector<std::vector<GatheredLayer>>> program_layers(
    const Package& package, std::span<const std::vector<Bytes>> pictures);

/// Why a layer stands for a tensor of the plain model.
enum class MatchedBy : std::uint8_t {
    values,   ///< no other layer or operator has its shape, scale, limits and zero points
    sources,  ///< of those alike, the one that reads the same tensors
    order,    ///< of those alike, the first in the program's and the model's order
    /// It and the operator are left over, and it reads what the operator reads, or stands between
    /// the same neighbours: one of the values above is wrong, or its tensor is.
    place,
};
[[nodiscard]] std::string_view to_string(MatchedBy how);

struct LayerMatch {
    std::size_t layer = 0;                             ///< index in the list given
    std::size_t op = 0;                                ///< in the plain model's first subgraph
    model::TensorIndex tensor = model::absent_tensor;  ///< its output
    MatchedBy by = MatchedBy::values;
    /// The layer is gathered and has the tensor's shape. Always true but for those by place.
    bool comparable = true;
    std::uint32_t row = 0;                       ///< StoredForm::row of the operator
    std::vector<ValueDifference> differences{};  ///< of the first instruction; by place only
};

/// For layers of `compiled`, in their order: which tensor of the plain model they are. Layers
/// without an operator of their own (steps of SOFTMAX, say) have no match. Errors: those of
/// operators_on_chip() and plan_parameters().
[[nodiscard]] Result<std::vector<LayerMatch>> match_layers(const std::vector<GatheredLayer>& layers,
                                                           const model::Model& compiled,
                                                           const model::Model& plain);

/// The operators on the chip that compute with weights and whose tensors match no layer that is
/// comparable.
[[nodiscard]] Result<std::vector<std::size_t>> operators_without_layer(
    const std::vector<LayerMatch>& matches, const model::Model& compiled,
    const model::Model& plain);

/// Whether the layer has the shape of the plain model's 8-bit tensor, up to the channels that fill
/// up words: behind each `row` channels, or behind all (0).
[[nodiscard]] bool is_alike(const GatheredLayer& layer, const model::Tensor& tensor,
                            std::uint32_t row = 0);

/// The layer's tensor in the shape and type of the plain model's, without the channels that fill
/// up words. Precondition: is_alike() with the same row.
[[nodiscard]] Array tensor_like(const GatheredLayer& layer, const model::Tensor& tensor,
                                std::uint32_t row = 0);

}  // namespace reef::edgetpu
