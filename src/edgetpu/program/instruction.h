// Instructions of the Edge TPU as typed values: one struct for each kind, with the members of
// spec/edgetpu/isa.xml, whose pages (docs/edgetpu-isa.md) say what they mean and how sure that is.
//
// Counts are counts (the bits hold one less), addresses are in the nest's own unit, and every
// member holds what the instruction says, even where a wait or a signal is not enabled. codec.h
// makes bits of them and them of bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "edgetpu/isa/loop_nest.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::program {

using edgetpu::LoopNest;
using edgetpu::saturating_product;
using edgetpu::strides_of;

/// Bit t: tile t = 4 * row + column.
using TileSet = std::uint16_t;

/// Runs the instruction only if a predicate register agrees.
struct Gate {
    bool enabled = false;
    std::uint8_t predicate = 0;
    bool sense = false;  ///< what the predicate must be
    friend bool operator==(const Gate&, const Gate&) = default;
};

/// What all tile instructions but fences begin with.
struct TileWork {
    Gate gate{};
    TileSet tiles = 0;
    std::uint8_t base_register = 0;   ///< whose value replaces the base of the source; 0: none
    std::uint8_t tiles_register = 0;  ///< that holds the tiles ...
    bool tiles_indirect = false;      ///< ... if this is set
    std::uint32_t sequence = 0;       ///< modulo 2^15
    bool caching = false;             ///< the program caches parameters
    friend bool operator==(const TileWork&, const TileWork&) = default;
};

/// Of the waits of an instruction, no known program uses the third of RingSend, the last of
/// NarrowToWide, the last three of WideToNarrow and the last of Mesh, and no program at hand the
/// one before that.
///
/// Pass i of the dimensions from `level` on begins when the counter has reached start + step * i.
struct Wait {
    std::uint8_t counter = 0;  ///< a spec::TileCounter, or a spec::ScalarCounter of scalar work
    std::uint8_t level = 0;
    bool enabled = false;
    bool destination = false;  ///< holds back the destination's nest, else the source's
    std::int32_t start = 0;
    std::int32_t step = 0;
    friend bool operator==(const Wait&, const Wait&) = default;
};

/// Counts one event each time the dimensions below `level` complete a pass.
struct Signal {
    bool enabled = false;
    std::uint8_t level = 0;
    [[nodiscard]] bool fires(unsigned completed, unsigned dimensions) const {
        return enabled && completed >= std::min<unsigned>(level, dimensions);
    }
    /// Events of so many visits in one pass of dimension 0, the last of which completes `completed`
    /// dimensions.
    [[nodiscard]] unsigned events(unsigned visits, unsigned completed, unsigned dimensions) const {
        if (enabled && level == 0) return visits;
        return fires(completed, dimensions) ? 1 : 0;
    }
    friend bool operator==(const Signal&, const Signal&) = default;
};

// -- Scalar core

struct Bundle {
    struct Load {
        spec::LoadOp op{};
        std::uint8_t reg = 0;
        std::uint32_t address = 0;
        friend bool operator==(const Load&, const Load&) = default;
    };
    struct Store {
        spec::StoreOp op{};
        std::uint32_t address = 0;
        std::uint8_t reg = 0;
        friend bool operator==(const Store&, const Store&) = default;
    };
    struct Alu {
        spec::AluOp op{};
        std::uint8_t dst = 0;
        std::uint8_t src = 0;
        std::uint32_t operand = 0;
        friend bool operator==(const Alu&, const Alu&) = default;
    };
    struct Function {
        spec::FunctionOp op{};
        std::uint8_t dst = 0;
        std::uint8_t src = 0;
        friend bool operator==(const Function&, const Function&) = default;
    };
    Gate gate{};
    Load load{};
    Store store{};
    Alu alu{};
    Function function{};
    friend bool operator==(const Bundle&, const Bundle&) = default;
};

struct Halt {
    Gate gate{};
    bool continues = false;  ///< another stream follows; older compilers do not set it
    bool last = false;       ///< no other stream follows
    friend bool operator==(const Halt&, const Halt&) = default;
};

struct Branch {
    Gate gate{};
    Gate condition{};
    std::int32_t offset = 0;  ///< words from the branch to its target
    friend bool operator==(const Branch&, const Branch&) = default;
};

/// Repeats the bundles that follow.
struct Loop {
    Gate gate{};
    std::uint32_t count = 0;
    std::uint32_t body = 0;  ///< bundles
    friend bool operator==(const Loop&, const Loop&) = default;
};

struct Start {
    Gate gate{};
    std::uint32_t bits = 0;  ///< of the stream, less 256
    friend bool operator==(const Start&, const Start&) = default;
};

struct End {
    Gate gate{};
    std::uint32_t bits = 0;
    friend bool operator==(const End&, const End&) = default;
};

struct Sync {
    Gate gate{};
    TileSet tiles = 0;
    std::uint32_t reset_counters = 0;  ///< bit: the spec::ScalarCounter of that number
    std::int32_t reset_value = 0;
    std::uint32_t notified_count = 0;
    TileSet notified_tiles = 0;
    std::array<std::uint32_t, 9> expected{};  ///< by spec::ScalarCounter
    std::uint32_t expected_counters = 0;
    std::uint32_t engines = 0;  ///< bit: the spec::ScalarEngine of that number must be idle
    friend bool operator==(const Sync&, const Sync&) = default;
};

struct Infeed {
    Gate gate{};
    spec::InfeedSource source{};
    LoopNest dst{.dimensions = 3};  ///< FIFO units
    Signal infeed{};
    std::array<Wait, 1> wait{};
    [[nodiscard]] bool activations() const { return source == spec::InfeedSource::activations_; }
    friend bool operator==(const Infeed&, const Infeed&) = default;
};

struct RingPush {
    Gate gate{};
    spec::Fifo fifo{};
    LoopNest src{.dimensions = 3};  ///< FIFO units
    Signal producer{};
    Signal pop{};
    std::array<Wait, 2> wait{};
    TileSet to_tiles = 0;
    std::uint32_t message_words = 1;  ///< of 4 bytes
    friend bool operator==(const RingPush&, const RingPush&) = default;
};

struct RingPop {
    Gate gate{};
    LoopNest dst{.dimensions = 3};  ///< FIFO units
    Signal outfeed{};
    std::array<Wait, 1> wait{};
    std::uint32_t message_words = 1;
    bool to_host = false;
    friend bool operator==(const RingPop&, const RingPop&) = default;
};

// -- Tiles

/// What the tensor instructions and resize share.
struct TensorLoops {
    TileWork work{};
    LoopNest loops{.dimensions = 8};  ///< counts and crop alone
    LoopNest in{.dimensions = 8};     ///< bytes
    LoopNest out{.dimensions = 8};    ///< bytes
    LoopNest par{.dimensions = 8};    ///< quarter rows
    LoopNest acc{.dimensions = 8};    ///< quarter rows
    Signal avdata{};
    Signal parameters{};
    Signal partial_sums{};
    std::array<Wait, 2> wait{};
    bool par_zero_set = false;
    bool acc_internal = false;
    bool in_16bit = false;
    bool par_16bit = false;
    bool in_bytewise = false;
    bool single = false;
    bool single_par = false;
    bool par_zero_rows = false;
    std::int32_t par_zero = 0;
    std::int32_t in_zero = 0;
    std::int32_t zero_row_last = 0;
    std::int32_t zero_row_step = 0;
    std::int32_t zero_row_first = 0;
    unsigned group_level = 0;
    std::uint32_t reduction_mask = 0;
    unsigned last_lanes = 1;
    unsigned lanes = 1;
    bool table = false;
    bool table_normalised = false;
    bool out_16bit = false;
    float scale = 0;

    /// Steps of one result. The accumulator's rotation moves on after each result: the dimensions
    /// below its level are the reduction, whatever the mask says; 0: reduction_mask says it.
    [[nodiscard]] std::uint64_t steps_of_result() const {
        return acc.rotates() ? acc.visits_below(acc.rotate_level) : 0;
    }
    friend bool operator==(const TensorLoops&, const TensorLoops&) = default;
};

/// The tensor instruction of that opcode; no known program has the unseen ones.
enum class TensorKind : std::uint8_t { mac, max, sum, unseen_0, unseen_4 };

struct Tensor : TensorLoops {
    TensorKind kind = TensorKind::mac;
    float clamp_max = 0;
    float clamp_min = 0;
    std::int32_t initial = 0;
    std::int32_t out_zero = 0;
    bool bias = false;
    bool lane_scale = false;
    unsigned table_odd = 0;  ///< 3: the table holds an odd function's right half
    friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct Resize : TensorLoops {
    struct Axis {
        unsigned level = 0;
        bool nearest = false;  ///< a copy of the nearest pixel, else a blend
        unsigned phase = 0;    ///< quarter pixels
        unsigned step = 0;     ///< quarter pixels
        friend bool operator==(const Axis&, const Axis&) = default;
    };
    Axis x{};
    Axis y{};
    std::int32_t pixel_stride = 0;  ///< bytes
    std::int32_t row_stride = 0;    ///< bytes
    bool unknown_2093 = false;      ///< set with Axis::nearest
    friend bool operator==(const Resize&, const Resize&) = default;
};

enum class Ring : std::uint8_t { a, b };

struct RingSend {
    TileWork work{};
    LoopNest src{.dimensions = 4};  ///< rows
    Signal ring_write{};
    Signal producer{};
    std::array<Wait, 3> wait{};
    Ring ring = Ring::a;
    TileSet to_tiles = 0;
    bool to_scalar = false;
    friend bool operator==(const RingSend&, const RingSend&) = default;
};

struct RingReceive {
    /// Rows that come in front of each group of `level`, into a circular range of their own.
    struct Head {
        bool enabled = false;
        unsigned level = 0;  ///< 0 is as 1
        std::int32_t base = 0;
        std::uint32_t count = 1;
        std::int32_t last = 0;
        std::uint32_t rows = 0;  ///< received at a time
        friend bool operator==(const Head&, const Head&) = default;
    };
    TileWork work{};
    Ring ring = Ring::a;
    LoopNest dst{.dimensions = 4};  ///< rows
    Head head{};
    Signal ring_read{};
    std::array<Wait, 1> wait{};
    friend bool operator==(const RingReceive&, const RingReceive&) = default;
};

struct NarrowToWide {
    TileWork work{};
    LoopNest src{.dimensions = 6};  ///< words of 4 bytes
    LoopNest dst{.dimensions = 4};  ///< rows
    bool base_indirect = false;     ///< the source's base is what work.base_register holds
    Signal written{};
    std::array<Wait, 6> wait{};
    spec::RowFormat format{};
    unsigned row_level = 0;
    friend bool operator==(const NarrowToWide&, const NarrowToWide&) = default;
};

/// Of the source of a narrow_to_wide. Where bytes are transposed, dimension 0 is the side of the
/// matrix, and the next one is cropped.
[[nodiscard]] constexpr unsigned cropped_dimension(spec::RowFormat format) {
    return format == spec::RowFormat::transpose_bytes_ ? 1 : 0;
}

struct WideToNarrow {
    /// Words thrown away at the start of the stream.
    struct Skip {
        bool enabled = false;
        unsigned level = 0;
        std::int32_t base = 0;
        std::uint32_t count = 1;
        std::int32_t last = 0;
        [[nodiscard]] std::uint32_t words() const { return enabled ? count : 0; }
        friend bool operator==(const Skip&, const Skip&) = default;
    };
    TileWork work{};
    LoopNest src{.dimensions = 4};  ///< rows
    LoopNest dst{.dimensions = 6};  ///< words of 4 bytes, of 8 bytes in scaling memory
    Skip skip{};
    Signal written{};
    std::array<Wait, 6> wait{};
    bool to_scaling = false;
    unsigned row_level = 0;
    friend bool operator==(const WideToNarrow&, const WideToNarrow&) = default;
};

/// Where mesh data go, in the order of the opcodes.
enum class Direction : std::uint8_t { south, west, north, east };

struct Mesh {
    TileWork work{};
    Direction to = Direction::south;
    LoopNest src{.dimensions = 4};  ///< words of 4 bytes
    LoopNest dst{.dimensions = 4};  ///< words of 4 bytes
    Signal out{};
    Signal in{};
    std::array<Wait, 6> wait{};
    bool fills = false;
    std::uint32_t fill_value = 0;
    friend bool operator==(const Mesh&, const Mesh&) = default;
};

/// Segment s holds for breaks[s - 1] <= x < breaks[s].
struct Table {
    std::array<std::array<float, 5>, 8> coefficients{};  ///< of x to the power 0 to 4
    std::array<float, 7> breaks{};
    friend bool operator==(const Table&, const Table&) = default;
};

struct LoadTable {
    TileWork work{};
    Table table{};
    friend bool operator==(const LoadTable&, const LoadTable&) = default;
};

struct Fence {
    Gate gate{};
    TileSet tiles = 0;
    std::uint32_t sequence = 0;
    bool caching = false;
    std::uint32_t reset_counters = 0;  ///< bit: the spec::TileCounter of that number
    std::int32_t reset_value = 0;
    std::uint32_t engines = 0;            ///< bit: the spec::TileEngine of that number
    std::uint32_t expected_counters = 0;  ///< bit 0: RING_PRODUCER_A, 1: RING_PRODUCER_B ...
    std::uint32_t expected = 0;           ///< ... must have got there
    std::uint32_t notify = 0;             ///< bit 0 notifies the scalar core; 0xd ends a program
    [[nodiscard]] bool notifies() const { return (notify & 1U) != 0; }
    friend bool operator==(const Fence&, const Fence&) = default;
};

using Operation =
    std::variant<Bundle, Halt, Branch, Loop, Sync, Infeed, RingPush, RingPop, Start, End, Tensor,
                 Resize, RingSend, RingReceive, NarrowToWide, WideToNarrow, Mesh, LoadTable, Fence>;

/// Bits of an instruction that no member holds (raw, of unknown purpose, or never set) and that are
/// not as in every known program.
struct OtherBits {
    std::uint16_t field = 0;  ///< index in the instruction's fields
    std::uint64_t bits = 0;
    friend bool operator==(const OtherBits&, const OtherBits&) = default;
};

/// The engine of a tile that executes it: a spec::TileEngine's number. For any operation of a tile
/// that is one of these structs or made from one; not for fences, which no engine executes.
template <typename Op>
[[nodiscard]] constexpr unsigned engine_of_kind(const Op& o) {
    namespace engine = spec::value::tile_engine;
    if constexpr (std::is_base_of_v<RingSend, Op>) {
        return engine::RING_PRODUCER_;
    } else if constexpr (std::is_base_of_v<NarrowToWide, Op>) {
        return engine::NARROW_TO_WIDE_;
    } else if constexpr (std::is_base_of_v<WideToNarrow, Op>) {
        return engine::WIDE_TO_NARROW_;
    } else if constexpr (std::is_base_of_v<RingReceive, Op>) {
        return o.ring == Ring::a ? engine::RING_CONSUMER_0_ : engine::RING_CONSUMER_1_;
    } else if constexpr (std::is_base_of_v<Mesh, Op>) {
        return engine::MESH_0_ + static_cast<unsigned>(o.to);
    } else {
        return engine::OP_;
    }
}

struct TypedInstruction {
    Operation operation{};
    std::vector<OtherBits> others{};  ///< empty in what a compiler makes
    friend bool operator==(const TypedInstruction&, const TypedInstruction&) = default;
};

}  // namespace reef::edgetpu::program
