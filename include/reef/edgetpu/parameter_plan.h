// Which constants of a plain model a compiled one holds, and where in its parameter blobs.
//
// The compiler stores constants in the order of the operators, each at a multiple of 64 bytes. It
// divides them between the blob that is cached on the chip and the one that is streamed with every
// inference, and it exchanges a few layers; both are found by comparing bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/params.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

enum class PartKind : std::uint8_t {
    layer,          ///< weights and the vectors before them
    softmax_table,  ///< of a SOFTMAX whose channels are no multiple of 4
    selection,      ///< zeros and ones: which input channel each output channel is
    ones,           ///< weights of 1: of a sum over a window
    subtrahend,     ///< of a SUB or an ADD of a constant
    factor,         ///< of a MUL with a constant image, XOR 0x80 for int8
    multipliers,    ///< of a MUL with a constant per channel, in place of its numbers
    fill,           ///< what a tensor holds before it is written
};

/// Where a channel lies among those that the chip stores: each `row` channels are filled up to
/// whole words of four; 0: only the last word is.
[[nodiscard]] constexpr std::uint32_t stored_channel(std::uint32_t channel, std::uint32_t row) {
    return row == 0 ? channel : channel / row * ((row + 3) / 4 * 4) + channel % row;
}

/// How the weights of a convolution are stored. Taps that lie in the padding for every window are
/// left out; rows of output channels are padded to a multiple of four where a RESHAPE makes rows;
/// and a program may go through all taps with a few input channels before it takes the next ones.
/// Reef's compiler stores weights of groups among zero points, and of a TRANSPOSE_CONV the taps of
/// each phase of its result, turned round.
struct StoredForm {
    // Of the plain weights; no channels: as they are.
    std::uint32_t channels = 0;
    std::uint32_t in_channels = 0;  ///< of all groups
    std::uint32_t kernel_h = 0, kernel_w = 0;
    std::uint32_t groups = 1;    ///< of input channels, one of which an output channel is made of
    bool channels_last = false;  ///< a depthwise layer's: [kernel h][kernel w][out]
    // As stored.
    std::uint32_t first_h = 0, first_w = 0;    ///< tap that is stored; behind the kernel: none
    std::int32_t step_h = 1, step_w = 1;       ///< from one that is stored to the next
    std::uint32_t stored_h = 0, stored_w = 0;  ///< taps
    std::uint32_t row = 0;                     ///< output channels; 0: not padded
    std::uint32_t block_words = 0;  ///< input channels, by fours, that a tap is stored with; 0: all

    [[nodiscard]] bool as_is() const {
        return kernel_h == stored_h && kernel_w == stored_w && step_h == 1 && step_w == 1 &&
               groups == 1 && !channels_last && row == 0 && block_words == 0;
    }
    [[nodiscard]] std::uint64_t weight_count() const {
        return std::uint64_t{channels} * kernel_h * kernel_w * (in_channels / groups);
    }
    /// Input channels by fours.
    [[nodiscard]] std::uint32_t words() const { return (in_channels + 3) / 4; }
    [[nodiscard]] std::uint32_t stored_channel(std::uint32_t channel) const {
        return edgetpu::stored_channel(channel, row);
    }
    friend bool operator==(const StoredForm&, const StoredForm&) = default;
};

/// How Reef's compiler stacks the gates of an LSTM: those of the input in one layer, those of what
/// the step before gave in another, each gate in whole words of four channels.
struct StackedGates {
    /// Of the input, forget, cell and output gate: those through the logistic function first.
    static constexpr std::array<std::size_t, 4> order{0, 1, 3, 2};
    /// That a gate of so many units takes.
    [[nodiscard]] static constexpr std::uint32_t channels(std::uint32_t units) {
        return (units + 3) / 4 * 4;
    }
};

/// Of the plain model.
struct LayerTensors {
    model::TensorIndex weights = model::absent_tensor;
    model::TensorIndex bias = model::absent_tensor;
    friend bool operator==(const LayerTensors&, const LayerTensors&) = default;
};

/// One constant as the chip stores it.
struct ParameterPart {
    PartKind kind = PartKind::layer;
    std::size_t op = 0;  ///< index in the plain model's first subgraph
    std::string name;    ///< "operator 3 CONV_2D"
    std::size_t size_bytes = 0;
    std::uint32_t count = 0;  ///< channels of a table or constant, elements of a fill
    bool unit_line = false;   ///< of a softmax table; with a count of 0 that line alone
    /// Tensors of the plain model: the layer's, or the constant in `weights`.
    model::TensorIndex input = model::absent_tensor;
    model::TensorIndex weights = model::absent_tensor;
    model::TensorIndex bias = model::absent_tensor;
    model::TensorIndex output = model::absent_tensor;
    /// Of a layer that is several of the plain model's, one behind the other: all of them.
    /// `weights` and `bias` are the first one's.
    std::vector<LayerTensors> stacked = {};
    bool has_multiplier = true;  ///< false for an LSTM's gates in the vendor's programs
    StoredForm form = {};        ///< of a convolution
    LayerLayout layout = {};     ///< of a layer, as it is stored; of a selection
    /// Of a selection: the input channel of each output channel, or no_source.
    std::vector<std::uint32_t> sources = {};

    /// Whether instructions compute an operator with its rows, as they do with a layer's: so Reef's
    /// compiler has constants.
    [[nodiscard]] bool is_layer() const {
        return kind == PartKind::layer || (kind != PartKind::selection && layout.size_bytes != 0);
    }

    // Of a layer, in the plain model.
    [[nodiscard]] std::uint32_t out_channels() const {
        return form.as_is() ? layout.shape.out_channels : form.channels;
    }
    [[nodiscard]] std::uint64_t weight_count() const {
        return form.as_is() ? layout.shape.weight_count() : form.weight_count();
    }
    /// Of a layer: those of the plain model that it is, in the order of its channels.
    [[nodiscard]] std::vector<LayerTensors> layers() const {
        return stacked.empty() ? std::vector{LayerTensors{weights, bias}} : stacked;
    }
};

/// For each operator of the plain model's first subgraph: not computed by the compiled model's
/// other operators, by the names of their outputs. Errors: bad_input without a compiled
/// operator.
[[nodiscard]] Result<std::vector<bool>> operators_on_chip(const model::Model& plain,
                                                          const model::Model& compiled);

/// The parts of those operators, in their order. Operators without known constants have none.
/// Errors: unsupported for a layer of a form that the chip does not have.
[[nodiscard]] Result<std::vector<ParameterPart>> plan_parameters(const model::Model& plain,
                                                                 const std::vector<bool>& on_chip);

/// Another form of the part, which some programs of the vendor's compiler have: weights in blocks
/// of input channels, a bias of zeros before depthwise weights, a softmax table without its line
/// of 1.0 or with one. Nothing when there is none. Errors: unsupported for a layer that the
/// vendor's programs do not have.
[[nodiscard]] Result<std::optional<ParameterPart>> other_form(const ParameterPart& part);

/// The parts that Reef's own compiler makes of those operators, each in all forms that it may have:
/// which of them is there, the bytes tell. It keeps all taps, puts a bias before every layer and
/// before weights with a scale per channel all three vectors, and has depthwise layers for
/// constants of elements and channels. Errors: as above.
[[nodiscard]] Result<std::vector<std::vector<ParameterPart>>> plan_own_parameters(
    const model::Model& plain, const std::vector<bool>& on_chip);

/// The vectors that the compiler gives a layer of these tensors.
[[nodiscard]] LayerVectors layer_vectors(const model::Model& plain, const ParameterPart& part);

/// Writes part.size_bytes bytes. The part's layout decides which vectors there are, so that another
/// model of the same architecture can be encoded for the same program. Errors: unsupported when
/// the model needs a vector that the layout lacks.
[[nodiscard]] Status encode_part(const model::Model& plain, const ParameterPart& part,
                                 MutableBytes blob);

/// Whether bytes that need not be this model's can be the part's: padding, zero points and the
/// whole of tables are as they must be. `weight_zero`: of a layer, uint8 domain; nothing: the plain
/// model's, whose softmax scale a table must then have too.
[[nodiscard]] bool has_structure_of(const model::Model& plain, const ParameterPart& part,
                                    Bytes blob,
                                    std::optional<std::int32_t> weight_zero = std::nullopt);

/// A stretch of one blob.
struct BlobRange {
    std::size_t blob = 0;  ///< index in the list given to place_parts()
    std::size_t offset = 0;
    std::size_t size_bytes = 0;
    friend bool operator==(const BlobRange&, const BlobRange&) = default;
};

struct PlacedPart {
    std::size_t part = 0;  ///< index in the plan
    BlobRange range;
    std::size_t differing = 0;  ///< bytes that are not the plain model's
};

struct Placement {
    std::vector<PlacedPart> placed;      ///< by blob and offset
    std::vector<BlobRange> alignment;    ///< zero bytes between parts
    std::vector<BlobRange> unexplained;  ///< everything else
    std::vector<std::size_t> missing;    ///< parts that are in no blob

    /// Every byte explained and equal, no part missing.
    [[nodiscard]] bool complete() const;
};

enum class PartSearch : std::uint8_t {
    by_bytes,                ///< parts with other bytes than the plain model's are missing
    by_bytes_and_structure,  ///< they go, in order, to what is left, where its structure is right
};

/// Finds each part where its bytes are, in the order of the plan, then anywhere; then those with
/// other bytes.
[[nodiscard]] Result<Placement> place_parts(const model::Model& plain,
                                            const std::vector<ParameterPart>& parts,
                                            const std::vector<Bytes>& blobs,
                                            PartSearch search = PartSearch::by_bytes_and_structure);

/// What a program tells of a part whose bytes are another model's.
struct PartHint {
    std::int32_t weight_zero = 0;    ///< of a layer, uint8 domain
    std::optional<BlobRange> place;  ///< nothing: the first place that is free and fits
};

/// The same for parts whose bytes are another model's, by the hints for each. Errors: unsupported,
/// with the part, when its structure is not there, when it fits more than one blob, or when bytes
/// are left.
[[nodiscard]] Result<Placement> place_by_hints(const model::Model& plain,
                                               const std::vector<ParameterPart>& parts,
                                               const std::vector<PartHint>& hints,
                                               const std::vector<Bytes>& blobs);

}  // namespace reef::edgetpu
