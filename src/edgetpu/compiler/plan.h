// What the passes of the Edge TPU's compiler work on: tensors spread over the tiles, the steps that
// compute them, and the layers whose parameters they need.
//
// Every image is cut into a grid of tiles: tile (r, c) owns rows ceil(r*H/4) to ceil((r+1)*H/4) and
// columns likewise, all channels. It stores a window: what it owns and the halo that its consumers
// need, pixel by pixel, channels rounded up to words of 4. Source: compiled programs, docs of which
// are in docs/edgetpu-compiler.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/graph.h"
#include "compiler/partition.h"
#include "edgetpu/program/instruction.h"
#include "reef/base/result.h"
#include "reef/edgetpu/parameter_plan.h"
#include "reef/edgetpu/params.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::lowering {

/// A bit for each tile.
inline constexpr std::uint16_t every_tile = (1U << spec::tile_count) - 1;

using compiler::Window;

constexpr unsigned grid = spec::grid_side;
constexpr unsigned all_tiles = spec::tile_count;
constexpr std::uint32_t lanes = spec::lane_count;

/// Pixels [begin, end) of an axis; may lie outside the image.
struct Span {
    std::int32_t begin = 0, end = 0;
    [[nodiscard]] bool empty() const { return end <= begin; }
    [[nodiscard]] std::int32_t size() const { return empty() ? 0 : end - begin; }
    [[nodiscard]] bool contains(const Span& o) const { return begin <= o.begin && o.end <= end; }
    friend bool operator==(const Span&, const Span&) = default;
};
/// By row or column of the grid.
using Spans = std::array<Span, grid>;
/// What each row or column of the grid reads; nothing where it computes nothing.
using Needs = std::array<std::optional<Span>, grid>;

struct Area {
    Span rows, columns;
    [[nodiscard]] bool empty() const { return rows.empty() || columns.empty(); }
    friend bool operator==(const Area&, const Area&) = default;
};

/// Bytes of narrow memory at one address on every tile.
struct Buffer {
    std::uint32_t base = 0;
    std::uint32_t bytes = 0;
};

using TensorId = std::size_t;

/// Where a tensor lies.
enum class Layout : std::uint8_t {
    pixels,    ///< each tile has the pixels that it owns, all channels of them
    whole,     ///< tiles have all of it
    channels,  ///< each tile has so many channels of all pixels
    host,      ///< in the host's scratch memory alone: `base` and `host_bytes` are of that
};

struct Tensor {
    std::string name;
    std::int32_t height = 1, width = 1, channels = 1;
    std::int32_t zero = 0;
    float scale = 1;
    bool is_signed = false;
    /// Of an element: a tensor of 16 bits has twice the channels.
    std::int32_t element_bytes = 1;
    Spans own_rows{}, own_columns{};
    Spans window_rows{}, window_columns{};
    std::uint32_t base = 0;       ///< bytes
    std::uint32_t slack = 0;      ///< bytes behind the window that a reader runs over
    std::int32_t border = 0;      ///< value of pixels outside the image
    bool repeats_border = false;  ///< ... which repeat the image's edge instead
    /// A band of that tensor, in its memory.
    std::optional<std::size_t> band_of{};
    /// Computed band by band: windows are what a band needs and nothing comes from neighbours.
    bool in_band = false;
    /// Where a tensor lies by channels, `channels` is how many of `all_channels` the first tiles
    /// have, from `first_tile` on. The last of `spread_tiles` has what is left.
    Layout layout = Layout::pixels;
    unsigned first_tile = 0, spread_tiles = 0;
    std::int32_t all_channels = 0;
    std::uint32_t host_bytes = 0;

    [[nodiscard]] std::uint32_t words() const {
        return static_cast<std::uint32_t>(channels + 3) / 4;
    }
    /// Of a pixel where it lies by channels.
    [[nodiscard]] std::uint32_t words_on(unsigned tile) const {
        const unsigned share = tile - first_tile;
        return share + 1 < spread_tiles
                   ? words()
                   : static_cast<std::uint32_t>(all_channels + 3) / 4 - words() * share;
    }
    [[nodiscard]] std::uint32_t pixel_bytes() const { return words() * 4; }
    [[nodiscard]] Area own(unsigned tile) const {
        return {own_rows[tile / grid], own_columns[tile % grid]};
    }
    [[nodiscard]] Area window(unsigned tile) const {
        return {window_rows[tile / grid], window_columns[tile % grid]};
    }
    /// Bytes from one row to the next.
    [[nodiscard]] std::uint32_t pitch(unsigned tile) const {
        return static_cast<std::uint32_t>(window(tile).columns.size()) * pixel_bytes();
    }
    /// Bytes. Pixels outside the window have addresses, too.
    [[nodiscard]] std::int32_t address(unsigned tile, std::int32_t y, std::int32_t x) const;
    /// Of the largest window, with the slack.
    [[nodiscard]] std::uint64_t bytes() const;
    /// That the host sends of an input: rows up to the last that any tile owns, in whole units.
    [[nodiscard]] std::uint32_t input_bytes() const;
    /// That a tile sends to the host and gets from there of what it owns, in whole units.
    [[nodiscard]] std::uint32_t sent_bytes(unsigned tile) const;
    [[nodiscard]] bool has_halo() const {
        return window_rows != own_rows || window_columns != own_columns;
    }
    /// Pixels of the tile that owns most.
    [[nodiscard]] std::uint32_t most_pixels() const;
    /// Of a tensor by pixels: each tile that has it has all of its pixels from now on.
    void lie_as(Layout other) {
        layout = other;
        own_rows.fill({0, height});
        own_columns.fill({0, width});
        window_rows = own_rows;
        window_columns = own_columns;
    }
};

/// From an integer sum to a byte: clamp(sum * scale) rounded to even, plus out_zero.
struct Scaling {
    std::int32_t in_zero = 0;
    std::int32_t out_zero = 0;
    float scale = 1;
    ClampLimits clamp{};
};

/// How a convolution's loops go. Inner: all input channels of a position before the next position.
/// Else in chunks of channels, with partial sums in wide memory.
struct LayerSchedule {
    std::uint32_t lanes = 0;       ///< output channels at once
    std::uint32_t groups = 0;      ///< of output channels
    std::uint32_t row_lanes = 0;   ///< lanes that a row of parameters holds
    std::uint32_t head_rows = 0;   ///< in front of each group
    std::uint32_t group_rows = 0;  ///< rows that one visit of a position reads
    std::uint32_t chunks = 1;
    bool inner = true;
    /// Groups of output channels whose rows are there at once; 0: two visits take turns.
    std::uint32_t groups_ahead = 0;
    // Rows of wide memory.
    std::int32_t partial_sums = 0;
    std::int32_t body = 0;
    std::int32_t head = 0;

    [[nodiscard]] std::uint32_t visits() const { return groups * chunks; }
    /// Visits whose rows are there at once, and groups whose rows in front are.
    [[nodiscard]] std::uint32_t slots() const {
        return groups_ahead == 0 ? 2 : groups_ahead * chunks;
    }
    [[nodiscard]] std::uint32_t head_slots() const { return groups_ahead == 0 ? 2 : groups_ahead; }
    /// Whether no row is written over another.
    [[nodiscard]] bool is_whole() const { return visits() <= slots(); }
    /// Of partial sums, rows and rows in front, where it computes so many positions.
    [[nodiscard]] std::uint32_t scratch_rows(std::uint32_t positions) const {
        return slots() * group_rows + head_slots() * head_rows + (inner ? 0 : positions);
    }
    /// From one group to the next, where all of them lie behind one another.
    [[nodiscard]] std::uint32_t rows_of_group() const { return head_rows + group_rows; }
    /// From row `end` downwards.
    void place_scratch(std::int32_t end, std::uint32_t positions);
};

/// Parameters of one convolution.
struct ParameterLayer {
    std::shared_ptr<const compiler::Convolution> source;
    std::size_t node = 0;
    std::string name;
    std::vector<float> multipliers;  ///< by channel; empty with one scale
    LayerSchedule schedule{};
    bool relayed = false;  ///< stored packed and unpacked by the scalar core: depthwise layers
    bool spread = false;   ///< each tile keeps the rows of its own channels
    bool biased = true;    ///< rows of biases are in front of each group
    std::uint32_t share_groups = 1;  ///< ... groups of them, the last tile fewer
    unsigned first_tile = 0;         ///< ... from this tile on
    bool streamed = false;           ///< from the host, with every inference
    unsigned uses = 0;               ///< steps that compute with it: several where bands do
    std::uint32_t positions = 0;     ///< of the tile that computes most in a step
    std::int32_t scratch_end = 0;    ///< behind its rows of scratch
    std::uint32_t row_bytes = 0;     ///< as stored
    std::size_t bytes = 0;           ///< of all rows, which write_rows() gives
    std::uint32_t relay_units = 0;
    /// Estimated of a layer that could be spread, with what brings its input to where it is read.
    std::uint64_t cycles_together = 0, cycles_spread = 0;
    std::uint32_t first_unit = 0;  ///< of the streamed parameters

    struct Piece {
        unsigned tile = 0;
        std::uint32_t row = 0;
        std::uint32_t count = 0;
        std::size_t offset = 0;  ///< bytes of the rows in front
    };
    std::vector<Piece> pieces;
    /// A last row that bytes fill in part is one: relayed layers end in one.
    [[nodiscard]] std::uint32_t row_count() const {
        return row_bytes == 0 ? 0 : static_cast<std::uint32_t>((bytes + row_bytes - 1) / row_bytes);
    }
    /// Of a spread layer: rows of each tile but the last, and tiles.
    [[nodiscard]] std::uint32_t share_rows() const {
        return share_groups * schedule.rows_of_group();
    }
    [[nodiscard]] std::uint32_t share_tiles() const {
        return (row_count() + share_rows() - 1) / share_rows();
    }
};

// -- Steps

struct InputStep {
    compiler::ValueId value = 0;  ///< of the host
};
/// The pixels of an output that a step computes: every `stride`-th from one on.
struct Phase {
    std::int32_t stride_h = 1, stride_w = 1;
    std::int32_t y = 0, x = 0;
    /// Which of them lie in rows or columns of the output.
    [[nodiscard]] static Span of(const Span& pixels, std::int32_t stride, std::int32_t first);
    [[nodiscard]] Area of(const Area& area) const {
        return {of(area.rows, stride_h, y), of(area.columns, stride_w, x)};
    }
    friend bool operator==(const Phase&, const Phase&) = default;
};
struct ConvolutionStep {
    Window window;
    bool depthwise = false;
    std::size_t layer = 0;
    Scaling scaling;
    std::int32_t weight_zero = 0;
    Phase phase{};
};
struct SumStep {
    SumFactors factors;
    std::int32_t initial = 0;
    Scaling scaling;
};
/// first * a + second * b, of factors from -2 to 2.
struct CombinationStep {
    std::int32_t first = 1, second = 1;
    Scaling scaling;
};
struct ProductStep {
    std::int32_t second_zero = 0;
    Scaling scaling;
};
/// As a table of polynomials.
enum class Function : std::uint8_t { none, logistic, leaky_relu, hard_swish };
/// Also a part of a concatenation.
struct CopyStep {
    std::int32_t first_channel = 0;       ///< of the output
    std::int32_t first_from_channel = 0;  ///< of the input
    /// Bytes of the input's last word that count: the others become zero points; 0: all.
    std::int32_t last_bytes = 0;
    std::int32_t filled_words = 0;  ///< of the output, behind the input's: zero points
    /// Which pixel becomes one of the output: a kernel of one, and from where at which stride.
    Window window{};
    Function function = Function::none;
    float constant = 0;  ///< the slope of leaky_relu, the output's scale of hard_swish
    Scaling scaling;
    Phase phase{};
};
/// Which element of the input, counted without padding, an element of the output is.
struct ElementOrder {
    std::int64_t start = 0;
    std::int64_t row = 0, column = 0, channel = 0;  ///< from one of the output to the next
};
/// Every tile gets the whole input and takes from it what it owns of a region of the output.
struct RearrangeStep {
    ElementOrder order;
    Area region;
    Scaling scaling;
};
struct MaxStep {
    Window window;
    Scaling scaling;
};
struct AverageStep {
    Window window;
    Scaling scaling;
};
/// Of a whole image, which is gathered on tile 0.
struct GlobalAverageStep {
    Scaling scaling;
};
/// Of one pixel's channels.
struct SoftmaxStep {
    float scale = 1;  ///< of the input, times beta
};
/// To twice the height and width.
struct EnlargeStep {
    bool nearest = false;
};
/// Brings a tensor to other tiles: all of it to each of them.
struct GatherStep {
    std::uint16_t to = 0;  ///< one bit for each tile
};

// The gates of an LSTM lie behind one another as its stacked weights do (StackedGates).
static_assert(StackedGates::order ==
              std::array<std::size_t, 4>{compiler::input_gate, compiler::forget_gate,
                                         compiler::output_gate, compiler::cell_gate});
/// All steps of an LSTM on tile 0, from what the gates' input layer gave of each. It reads and
/// writes its two states where they lie.
struct LstmStep {
    // Zero points of 16-bit values, which the chip holds unsigned: of the cell, and of products of
    // gates and the cell's tanh.
    static constexpr std::int32_t cell_zero = 32768, added_zero = 16384;
    static constexpr std::int32_t candidate_zero = 128;  ///< of 8 bits
    std::int32_t steps = 0;
    std::int32_t gate_bytes = 0;  ///< of each gate, with what fills its last word
    std::size_t layer = 0;        ///< of what the step before gave
    Scaling product;              ///< of that layer
    std::int32_t initial = 0;     ///< of the sums of both layers
    Scaling gate, candidate;      ///< of those sums: arguments of the functions
    Scaling added, kept;          ///< products in 16 bits, of the input gate and the forget gate
    SumFactors cell_factors;      ///< of kept and added in the next cell
    std::int32_t cell_initial = 0;
    Scaling cell, squashed;  ///< of their sum: the next cell, and the argument of its tanh
    Scaling output;          ///< of the output gate's product
    [[nodiscard]] std::uint32_t words() const { return static_cast<std::uint32_t>(gate_bytes) / 4; }
};
/// What an LSTM takes besides its tensors, in bytes for each of a gate's: where each begins.
struct LstmRoom {
    static constexpr std::int32_t sums = 0;       ///< of the recurrent layer, of four gates
    static constexpr std::int32_t gates = 4;      ///< in the same order
    static constexpr std::int32_t wide = 8;       ///< forget and output gate in 16 bits
    static constexpr std::int32_t products = 12;  ///< each in 4 lanes of 16 bits
    static constexpr std::int32_t kept = 20, added = 22, squashed = 24;
    static constexpr std::int32_t inputs = 26;  ///< of a step, where all of them are a loop
    static constexpr std::int32_t of_gate = 30;
};

/// What tiles own of a tensor, to the host's scratch memory: one tile's part behind the other.
struct SpillStep {};
/// ... and back, to the tiles that own it.
struct FetchStep {};

using StepKind = std::variant<InputStep, ConvolutionStep, SumStep, CombinationStep, ProductStep,
                              CopyStep, RearrangeStep, MaxStep, AverageStep, GlobalAverageStep,
                              SoftmaxStep, EnlargeStep, GatherStep, LstmStep, SpillStep, FetchStep>;

struct Step {
    std::size_t node = 0;  ///< of the graph; of an input, that of its first reader
    std::vector<TensorId> in;
    TensorId out = 0;
    StepKind kind;
    /// From where on it writes the output's channels, of which others write the rest: of
    /// convolutions, sums, combinations and products. Copies have places of their own.
    std::int32_t first_channel = 0;
    std::optional<Buffer> scratch{};
};

/// What makes programs faster than the vendor's, each a choice of its own.
struct Improvements {
    bool fuse =
        true;  ///< values go to their places in a concatenation, and through limits, at once
    bool spread = true;  ///< layers of small images by channels
    bool ahead = true;   ///< the next layer's parameters are sent while a step computes
    bool halo = true;    ///< no stop between a step and the halo of what it made
    bool input = true;   ///< an input's rows are taken up while others arrive
};

/// A tensor of the host and the one on the tiles that it is read from or written to.
struct Port {
    compiler::ValueId value = 0;
    TensorId tensor = 0;
    /// Of an output: a state tensor of the host, which was read from there and is written back.
    bool is_state = false;
};

/// What other programs keep of the chip's parameter memory, beside which a program stays.
struct Residency {
    /// Of each tile: rows below are others'.
    std::array<std::uint32_t, all_tiles> first_rows{};
    std::uint32_t end = 0;  ///< behind all programs' parameters
    /// Rows at the end of each tile that no program keeps anything in; 0: as many as it needs.
    std::uint32_t scratch_rows = 0;
};

struct Plan {
    const compiler::Graph* graph = nullptr;
    std::vector<Tensor> tensors;
    std::vector<Step> steps;
    std::vector<ParameterLayer> layers;
    std::vector<Port> inputs, outputs;
    /// Of each tile, for activations: UsedNarrowMemoryBytesPerTile of no known program is above it,
    /// though addresses go further.
    std::uint32_t most_narrow_bytes = spec::activation_bytes;
    Residency beside{};
    // Filled by placement.
    Improvements improvements{};
    bool ahead = false;  ///< layers' parameters are sent ahead
    /// One row is cached for nothing but to make the chip's parameter memory this program's: it has
    /// no others there, and its scratch rows overwrite another program's.
    bool anchored = false;
    std::uint32_t narrow_bytes = 0;                    ///< used on every tile
    std::uint32_t host_bytes = 0;                      ///< of the host's scratch memory
    std::uint32_t first_scratch_row = 0;               ///< wide rows below it hold parameters
    std::array<std::uint32_t, all_tiles> rows_used{};  ///< others' below them
    /// Behind the parameters of all tiles: where steps lay out what they read as parameters.
    [[nodiscard]] std::int32_t first_free_row() const;
    std::size_t streamed_bytes = 0;  ///< of parameters that come with every inference

    [[nodiscard]] const Tensor& tensor(TensorId id) const { return tensors[id]; }
};

// -- Passes, in their order. An error's place is the operator that does not fit.

struct TileOptions {
    /// Averages and sums over windows are depthwise layers with weights of 1, of which the vendor's
    /// programs have the instructions' forms.
    bool averages_as_layers = false;
};
/// From a partition's program to tensors on tiles, steps and layers.
[[nodiscard]] Plan tile(const compiler::Graph& graph, const compiler::Program& program,
                        const TileOptions& options = {});
/// Copies into a part of a concatenation, and limits alone, are done by the step that makes what
/// they read, where nothing else reads it.
[[nodiscard]] Plan fused(Plan plan);
/// Errors: unsupported for a step that does not fit in whatever bands the others run.
[[nodiscard]] Status check_whole_images(const Plan& plan);
/// When activations do not fit: the first operators, or else some in the midst, run several times,
/// each time for a band of rows of every tile's part of the last one's result, so that what is
/// between them is small. Nothing that is computed in bands is sent between tiles; what bands share
/// is computed again. The plan as it is when it fits; none when no such bands make it fit.
[[nodiscard]] std::optional<Plan> in_bands(const Plan& plan);
/// Tensors go to the host's scratch memory while no step touches them, where tiles have most in
/// use, until what is left fits as it is or in bands. The plan as it is when it fits; none when
/// that does not make it fit.
[[nodiscard]] std::optional<Plan> spilled(Plan plan);
/// All of them go there that at least one step passes over.
[[nodiscard]] Plan with_all_spilled(Plan plan);
/// Layers of small images compute 64 channels of all pixels on a tile, or a multiple of that, with
/// parameters that never move, where that takes less time by a model of both. `maps`: else only
/// layers of one pixel whose result the host alone reads.
[[nodiscard]] Plan spread_channels(Plan plan, bool maps);
/// Layers of one pixel and few channels read their parameters where they lie: on the tile that has
/// the pixel, or on another to which it is sent. None where there are no such layers.
[[nodiscard]] std::optional<Plan> with_still_rows(const Plan& plan);
/// What each tile must store.
void find_windows(Plan& plan);
/// The order of each layer's loops, and how many rows its parameters are.
void lay_out_parameters(Plan& plan);
/// Those rows, in the order of reading. `to`: ParameterLayer::bytes of them, zeros.
void write_rows(const ParameterLayer& layer, MutableBytes to);
/// Parameters of the next layer are sent while a step computes: more of a layer's rows at once, in
/// places that layers behind one another do not share.
void plan_ahead(Plan& plan);
/// Addresses in narrow memory, and in the host's scratch memory. Errors: unsupported when the
/// tensors do not fit.
[[nodiscard]] Status place_tensors(Plan& plan);
/// Bytes of each tile that are in use at once, at the step where they are most. Behind
/// find_windows().
struct Pressure {
    std::uint64_t bytes = 0;
    std::size_t step = 0;
};
[[nodiscard]] Pressure pressure_of(Plan plan, std::size_t begin, std::size_t end);
/// The same in front of find_windows(), of all steps or of [begin, end); and whether
/// place_tensors() would find places.
[[nodiscard]] Pressure pressure_in(Plan plan);
[[nodiscard]] Pressure pressure_in(Plan plan, std::size_t begin, std::size_t end);
[[nodiscard]] bool fits(Plan plan);
/// Rows of wide memory, cached or streamed. Errors: unsupported when they do not fit.
[[nodiscard]] Status place_parameters(Plan& plan, bool stream_all);

/// One line for each tensor, step and layer.
[[nodiscard]] std::string to_text(const Plan& plan);

/// The tensors that a step reads, and which rows and columns of each.
struct Need {
    TensorId tensor = 0;
    Needs rows{}, columns{};
};
[[nodiscard]] std::vector<Need> needs_of(const Plan& plan, const Step& step);

/// Narrow memory that a softmax takes besides its tensors.
struct SoftmaxRoom {
    std::uint32_t rows = 0;    ///< of 64 words: the values
    std::uint32_t eights = 0;  ///< of values: the exponentials
    [[nodiscard]] std::uint32_t words() const { return 64 * rows; }
    [[nodiscard]] std::uint32_t row_bytes() const { return 4 * words(); }
    [[nodiscard]] std::uint32_t exponential_bytes() const { return 16 * eights; }
    /// Values, units, distances, exponentials, and results of a row or less.
    [[nodiscard]] std::uint32_t bytes() const { return 3 * row_bytes() + exponential_bytes() + 64; }
};
[[nodiscard]] SoftmaxRoom softmax_room(const Tensor& in);

/// Rows of every tile's part of a product that are computed at once with so many bytes: four words
/// for each word of them, all products, of which the diagonal is wanted. `words`: of an operand's
/// pixel.
[[nodiscard]] std::uint64_t product_row_bytes(const Tensor& out, std::uint32_t words);
[[nodiscard]] std::int32_t product_rows(const Tensor& out, std::uint32_t words,
                                        std::uint64_t bytes);

/// Words of each pixel that a global average gathers on tile 0 at once: all of them, or equal
/// shares that take less than what a tile has.
[[nodiscard]] std::uint32_t words_averaged_at_once(const Tensor& in);

/// A tile computes with all of its input, which bands do not make smaller.
[[nodiscard]] bool needs_whole_image(const Step& step);

/// One instruction walks both operands with one set of strides: their windows are equal.
[[nodiscard]] bool walks_both(const Step& step);

/// To the host's scratch memory, or from there.
[[nodiscard]] bool moves_to_host(const Step& step);

/// The layer of parameters that a step computes with.
[[nodiscard]] std::optional<std::size_t> layer_index_of(const Step& step);

/// Narrow memory that an LSTM takes besides its tensors.
[[nodiscard]] std::uint64_t lstm_bytes(const LstmStep& lstm);

/// The name of an output's layer.
[[nodiscard]] std::string output_name(const Plan& plan, const Port& port);

/// "operator 3 CONV_2D".
[[nodiscard]] std::string place_of(const Plan& plan, const Step& step);

}  // namespace reef::edgetpu::lowering
