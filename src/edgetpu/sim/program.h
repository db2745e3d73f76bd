// A program made ready to run: every instruction decoded once into what its engine needs.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "memory.h"
#include "nest.h"
#include "reef/base/result.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::sim {

/// A wait of an instruction: pass i of the dimensions from `level` on begins when the counter has
/// reached start + step * i.
struct Wait {
    std::uint8_t counter = 0;
    std::uint8_t level = 0;
    bool destination = false;  ///< holds back the destination's nest, else the source's
    std::int32_t start = 0;
    std::int32_t step = 0;
};

template <std::size_t most>
struct Waits {
    std::array<Wait, most> all{};
    std::uint8_t count = 0;
    [[nodiscard]] std::span<const Wait> view() const { return {all.data(), count}; }
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
};

enum class Ring : std::uint8_t { a, b };

struct RingSend {
    Nest src;  ///< rows
    Signal ring_write;
    Signal producer;
    Waits<3> waits;
    Ring ring = Ring::a;
    std::uint16_t to_tiles = 0;
    bool to_scalar = false;
};

struct RingReceive {
    Nest dst;  ///< rows
    Ring ring = Ring::a;
    bool has_head = false;
    unsigned head_level = 0;  ///< 0: once
    std::int32_t head_base = 0;
    std::int32_t head_last = 0;
    std::uint32_t head_rows = 0;
    Signal ring_read;
    Waits<1> waits;
};

struct NarrowToWide {
    Nest src;  ///< words
    Nest dst;  ///< rows
    RowFormat format = RowFormat::plain;
    unsigned row_level = 0;
    Signal written;
    Waits<6> waits;
};

struct WideToNarrow {
    Nest src;  ///< rows
    Nest dst;  ///< words of 4 bytes, of 8 bytes in scaling memory
    bool to_scaling = false;
    unsigned row_level = 0;
    std::uint32_t skip_words = 0;
    Signal written;
    Waits<6> waits;
};

/// Where mesh data go.
enum class Direction4 : std::uint8_t { south, west, north, east };

struct MeshTransfer {
    Direction4 to = Direction4::south;
    bool sends = false;
    bool receives = false;
    bool fills = false;
    std::uint32_t fill_value = 0;
    Nest src;  ///< words
    Nest dst;  ///< words
    Signal out;
    Signal in;
    Waits<4> waits;
};

/// The table of the non-linear function: segment s holds for breaks[s - 1] <= x < breaks[s].
struct Table {
    std::array<std::array<float, 5>, 8> coefficients{};  ///< of x to the power 0 to 4
    std::array<float, 7> breaks{};
};

enum class TensorKind : std::uint8_t { mac, max, sum, resize };

/// The bilinear blend's own fields; see spec/edgetpu/isa.xml.
struct Resize {
    struct Axis {
        unsigned level = 0;
        unsigned phase = 0;  ///< quarter pixels
        unsigned step = 0;   ///< quarter pixels
    };
    Axis x;
    Axis y;
    std::int32_t pixel_stride = 0;
    std::int32_t row_stride = 0;
};

struct TensorOp {
    TensorKind kind = TensorKind::mac;
    Nest loops;  ///< counts and crop only
    Nest in;     ///< bytes
    Nest out;    ///< bytes
    Nest par;    ///< quarter rows
    Nest acc;    ///< quarter rows
    Signal avdata;
    Signal parameters;
    Signal partial_sums;
    Waits<2> waits;
    bool acc_internal = true;
    bool in_16bit = false;
    bool par_16bit = false;
    bool single = false;
    bool par_zero_rows = false;
    std::int32_t par_zero = 0;
    std::int32_t in_zero = 0;
    std::int32_t zero_row_first = 0;
    std::int32_t zero_row_last = 0;
    std::int32_t zero_row_step = 0;
    unsigned group_level = 0;
    /// Steps of one result when the accumulator's rotation says so; 0: reduction_mask says it.
    std::uint64_t reduction_steps = 0;
    std::uint32_t reduction_mask = 0;
    unsigned lanes = 64;
    unsigned last_lanes = 64;
    bool table = false;
    bool table_normalised = false;
    bool out_16bit = false;
    float scale = 1;
    float clamp_max = 0;
    float clamp_min = 0;
    std::int32_t start_value = 0;
    std::int32_t out_zero = 0;
    bool bias = false;
    bool lane_scale = false;
    Resize resize{};

    /// Elements of each lane's sum that one step adds.
    [[nodiscard]] unsigned elements() const {
        if (single || kind == TensorKind::max) return 1;
        return 4U / ((in_16bit ? 2U : 1U) * (par_16bit ? 2U : 1U));
    }
};

struct Fence {
    std::uint32_t reset_counters = 0;
    std::int32_t reset_value = 0;
    std::uint32_t engines = 0;  ///< bit: the engine of that number
    bool notify = false;
};

struct Infeed {
    bool activations = false;  ///< else parameters
    Nest dst;                  ///< FIFO units
    Signal infeed;
    Waits<1> waits;
};

enum class Fifo : std::uint8_t { parameters = 0, activations = 1, relay = 2 };

struct RingPush {
    Fifo fifo = Fifo::parameters;
    Nest src;  ///< FIFO units
    Signal producer;
    Signal pop;
    Waits<2> waits;
    std::uint16_t to_tiles = 0;
    unsigned message_bytes = 0;
};

struct RingPop {
    Nest dst;  ///< FIFO units
    Signal outfeed;
    Waits<1> waits;
    unsigned message_bytes = 0;
    bool to_host = false;
};

struct Sync {
    std::uint32_t reset_counters = 0;
    std::int32_t reset_value = 0;
    std::uint16_t notified_tiles = 0;
    std::uint32_t notified_count = 0;
    std::array<std::uint32_t, 9> expected{};
    std::uint32_t expected_counters = 0;
    std::uint32_t engines = 0;  ///< of the scalar core, which must be idle
};

/// Instructions that the scalar core executes by itself (bundle, branch, loop, halt, start, end).
struct ScalarWork {};

using Operation =
    std::variant<ScalarWork, Sync, Infeed, RingPush, RingPop, TensorOp, Table, RingSend,
                 RingReceive, NarrowToWide, WideToNarrow, MeshTransfer, Fence>;

/// Errors: unsupported, "not modelled: ...", for what would leave the machine's tables or never
/// end.
[[nodiscard]] Status check_limits(const Operation& operation);
/// Errors: unsupported, "not modelled: ...", for bits of no known field, and for values and
/// combinations of fields that no known program has.
[[nodiscard]] Status check_modes(const Instruction& instruction, const Operation& operation);

struct ProgramInstruction {
    Instruction source;
    Operation operation;
    std::uint16_t tiles = 0;   ///< of tile instructions
    std::uint32_t number = 0;  ///< running number over all streams
};

/// One instruction stream. Refers to the stream's bytes, which must outlive it.
struct Stream {
    std::vector<ProgramInstruction> instructions;
    /// By word: index of the instruction that starts there, or no_instruction.
    std::vector<std::uint32_t> at_word;
    static constexpr std::uint32_t no_instruction = ~std::uint32_t{0};
};

/// Errors: bad_input for words that are no instruction; unsupported, "not modelled: ...", for
/// instructions and modes without a known meaning, with the place in the stream.
[[nodiscard]] Result<Stream> translate(Bytes stream, std::uint32_t first_number = 0);

/// Which engine of a tile executes it, by the description's tile_engine. Precondition: a tile
/// instruction other than a fence.
[[nodiscard]] unsigned engine_of(const Operation& operation);

/// "word 0x00a7 mac"
[[nodiscard]] std::string place_of(const ProgramInstruction& instruction);

}  // namespace reef::edgetpu::sim
