// A program made ready to run: every instruction decoded once into what its engine needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "edgetpu/program/instruction.h"
#include "memory.h"
#include "nest.h"
#include "reef/base/result.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::sim {

using program::Direction;
using program::Fence;
using program::Ring;
using program::Signal;
using program::Sync;
using program::Table;
using program::Wait;
using spec::Fifo;

/// The waits that are in force.
template <std::size_t most>
struct Waits {
    std::array<Wait, most> all{};
    std::uint8_t count = 0;
    std::uint8_t least_level = 0;  ///< no wait is at a lower one
    [[nodiscard]] std::span<const Wait> view() const { return {all.data(), count}; }
};

/// An instruction with what its engine looks at while it runs.
template <typename Typed>
struct Prepared : Typed {
    Waits<std::tuple_size_v<decltype(Typed::wait)>> waits{};
};

using RingReceive = Prepared<program::RingReceive>;
using NarrowToWide = Prepared<program::NarrowToWide>;
using WideToNarrow = Prepared<program::WideToNarrow>;
using Infeed = Prepared<program::Infeed>;

struct RingSend : Prepared<program::RingSend> {
    bool from_kept_rows = false;  ///< that nothing writes while the program runs: see WrittenRows
};

struct MeshTransfer : Prepared<program::Mesh> {
    bool sends = false;
    bool receives = false;
};

struct RingPush : Prepared<program::RingPush> {
    unsigned message_bytes = 0;
};

struct RingPop : Prepared<program::RingPop> {
    unsigned message_bytes = 0;
};

enum class TensorKind : std::uint8_t { mac, max, sum, resize };

/// The bilinear blend's own members.
struct Resize {
    using Axis = program::Resize::Axis;
    Axis x;
    Axis y;
    std::int32_t pixel_stride = 0;
    std::int32_t row_stride = 0;
    bool marked = false;  ///< unknown_2093
};

/// A tensor instruction or a resize, which is computed like one.
struct TensorOp : Prepared<program::TensorLoops> {
    TensorKind kind = TensorKind::mac;
    /// Steps of one result when the accumulator's rotation says so; 0: reduction_mask says it.
    std::uint64_t reduction_steps = 0;
    float clamp_max = 0;
    float clamp_min = 0;
    std::int32_t start_value = 0;
    std::int32_t out_zero = 0;
    bool bias = false;
    bool lane_scale = false;
    /// The table holds the function of magnitudes: its result takes the argument's sign.
    bool table_odd = false;
    Resize resize{};

    /// Elements of each lane's sum that one step adds.
    [[nodiscard]] unsigned elements() const {
        if (single || kind == TensorKind::max) return 1;
        return 4U / ((in_16bit ? 2U : 1U) * (par_16bit ? 2U : 1U));
    }
};

/// Instructions that the scalar core executes by itself (bundle, branch, loop, halt, start, end).
struct ScalarWork {};

using Operation =
    std::variant<ScalarWork, Sync, Infeed, RingPush, RingPop, TensorOp, Table, RingSend,
                 RingReceive, NarrowToWide, WideToNarrow, MeshTransfer, Fence>;

/// Errors: unsupported, "not modelled: ...", for what would leave the machine's tables or never
/// end.
[[nodiscard]] Status check_limits(const Operation& operation);
/// Errors: unsupported, "not modelled: ...", for fields that contradict one another or say what no
/// known program says, whether or not an engine takes notice of them.
[[nodiscard]] Status check_forms(const Instruction& instruction,
                                 const program::Operation& operation);
/// Errors: unsupported, "not modelled: ...", for bits of no known field, and for values and
/// combinations of fields that no known program has.
[[nodiscard]] Status check_modes(const Instruction& instruction, const Operation& operation);

/// How an instruction comes to its engines.
struct Dispatch {
    std::uint16_t tiles = 0;  ///< of tile instructions
    std::uint8_t engine = 0;  ///< as engine_of()
    /// A tile instruction whose own bits alone say that it runs, where and from which address.
    bool fixed = false;
    std::uint8_t lines = 0;  ///< of caches, up to the operation's end
};

inline constexpr std::size_t cache_line_bytes = 64;

/// What is looked at for each instruction comes first: operations are large. Lines of caches are
/// those of one instruction.
struct alignas(cache_line_bytes) ProgramInstruction : Dispatch {
    std::uint32_t number = 0;  ///< running number over all streams
    Instruction source;
    Operation operation;

    /// Into the caches: so many lines, which are its own. To read that here would be to wait for
    /// the first of them. The operation's kind stands behind the largest operation.
    void fetch(std::uint8_t its_lines) const {
        const auto* bytes = reinterpret_cast<const std::byte*>(this);
        for (std::size_t i = 0; i < its_lines; ++i)
            __builtin_prefetch(bytes + i * cache_line_bytes);
        __builtin_prefetch(bytes + sizeof(ProgramInstruction) - 1);
    }
};

/// One instruction stream. Refers to the stream's bytes, which must outlive it.
struct Stream {
    std::vector<ProgramInstruction> instructions;
    /// Copies of each one's own, side by side: instructions are larger than the caches.
    std::vector<Dispatch> dispatches;
    /// By word: index of the instruction that starts there, or no_instruction.
    std::vector<std::uint32_t> at_word;
    static constexpr std::uint32_t no_instruction = ~std::uint32_t{0};
};

/// Errors: bad_input for words that are no instruction; unsupported, "not modelled: ...", for
/// instructions and modes without a known meaning, with the place in the stream.
[[nodiscard]] Result<Stream> translate(Bytes stream, std::uint32_t first_number = 0);

/// Of an instruction that no engine of a tile executes: a fence, or one of the scalar core.
inline constexpr std::uint8_t no_engine = 0xff;
/// Which engine of a tile executes it, by the description's tile_engine.
[[nodiscard]] std::uint8_t engine_of(const Operation& operation);

/// "word 0x00a7 mac"
[[nodiscard]] std::string place_of(const ProgramInstruction& instruction);

}  // namespace reef::edgetpu::sim
