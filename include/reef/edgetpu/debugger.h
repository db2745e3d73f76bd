// The debugger: looks into a chip while it works, and holds it where it is told to.
//
// One interface, two chips. The simulated one shows everything: simulated_debugger(). A stick shows
// what its registers tell: usb::stick_debugger(); what they do not is refused by name. Numbers of
// executables, streams and words are those of `reef disasm`.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

/// A word of 16 bytes of an instruction stream.
struct ProgramWord {
    std::size_t executable = 0;
    std::size_t stream = 0;
    std::size_t word = 0;
    friend bool operator==(const ProgramWord&, const ProgramWord&) = default;
};

/// 4 * row + column.
struct TileNumber {
    unsigned value = 0;
    friend bool operator==(const TileNumber&, const TileNumber&) = default;
};

enum class ChipMemory : std::uint8_t {
    narrow,           ///< of a tile, by bytes
    wide,             ///< of a tile, by rows of 256 bytes
    scaling,          ///< of a tile, by words of 8 bytes
    scalar,           ///< by words of 4 bytes
    parameter_fifo,   ///< by units of 64 bytes
    activation_fifo,  ///< by units of 8 bytes
};
struct ChipMemoryInfo {
    ChipMemory memory{};
    std::string_view name;
    std::string_view unit;  ///< "byte", "row", ...
    std::size_t unit_bytes = 1;
    std::size_t units = 0;
    bool of_tile = false;
};
[[nodiscard]] std::span<const ChipMemoryInfo> chip_memories();
[[nodiscard]] const ChipMemoryInfo& info_of(ChipMemory memory);

/// Units `first` to `last`. Without a tile: of every tile, or no tile's memory.
struct MemoryRange {
    ChipMemory memory = ChipMemory::narrow;
    std::optional<TileNumber> tile;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// Before the instruction does anything: when the first engine takes it up, the first dispatcher
/// comes to the fence, or the scalar core comes to what it executes itself. With `when_done`: after
/// the last of its tiles has finished it. With a tile: on that tile.
struct WordBreak {
    ProgramWord at;
    bool when_done = false;
    std::optional<TileNumber> tile = std::nullopt;
    friend bool operator==(const WordBreak&, const WordBreak&) = default;
};
/// After the visit that writes there. Narrow memory is watched by words of 4 bytes.
struct WriteBreak {
    MemoryRange where;
    friend bool operator==(const WriteBreak&, const WriteBreak&) = default;
};
using BreakCondition = std::variant<WordBreak, WriteBreak>;
struct Breakpoint {
    unsigned number = 0;
    BreakCondition when;
    std::uint64_t hits = 0;
};

/// Who acts: "core", "dispatch" (hands a tile's instructions to its engines, executes fences), or
/// an engine by the name of the instruction set.
struct ChipUnit {
    std::optional<TileNumber> tile;
    std::string_view engine;
};

struct DebugEvent {
    enum class Kind : std::uint8_t { comes_to, starts, finishes, writes };
    Kind kind{};
    ChipUnit unit;
    ProgramWord at;
    std::string_view instruction;       ///< mnemonic
    std::optional<MemoryRange> memory;  ///< of writes
    std::optional<unsigned> breakpoint;
};

/// What makes a run stop, besides breakpoints, the end and interrupt().
enum class RunUntil : std::uint8_t {
    round,        ///< the scalar core executed an instruction, each engine made a visit, at most
    instruction,  ///< the scalar core comes to, or an engine takes up, the next instruction
    layer,        ///< the next layer's first tensor instruction is taken up
    breakpoint,
};

struct RunStop {
    enum class Reason : std::uint8_t { stepped, breakpoint, ended, interrupted, running };
    Reason reason = Reason::stepped;
    std::vector<DebugEvent> events;  ///< that stopped it
    std::uint64_t rounds = 0;        ///< since the start
};

struct CoreState {
    std::optional<ProgramWord> at;  ///< of the next instruction; none at the end
    std::uint64_t program_counter = 0;
    std::string_view instruction;
    std::string waits;  ///< why it stands still; empty: nothing holds it
    std::array<std::uint32_t, 32> registers{};
    std::array<bool, 8> predicates{};
};

struct NestState {
    struct Loop {
        std::uint32_t index = 0;
        std::uint32_t count = 0;
    };
    std::string_view name;     ///< "src", "out", ... as `reef disasm --symbolic`
    std::string_view unit;     ///< of the address: "byte", "word", "row", "quarter row", "unit"
    std::int64_t address = 0;  ///< of the current visit
    bool done = false;
    std::uint64_t visits_done = 0;
    std::uint64_t visits = 0;
    std::vector<Loop> loops;  ///< innermost first, without those that never move
};

/// A unit that has work.
struct EngineState {
    ChipUnit unit;
    std::optional<ProgramWord> at;  ///< none: its next instruction is not taken up yet
    std::string_view instruction;
    std::string waits;       ///< why it made no visit in the last round; empty: it did
    std::size_t queued = 0;  ///< instructions behind this one
    std::vector<NestState> nests;
};

struct CounterState {
    std::optional<TileNumber> tile;  ///< none: of the scalar core
    std::string_view name;
    std::uint64_t value = 0;
};

struct QueueState {
    std::optional<TileNumber> tile;
    std::string name;
    std::uint64_t used = 0;
    std::optional<std::uint64_t> room;  ///< nothing: not bounded
    std::string_view unit;
};

/// Tensor instructions that no fence which waits for the tensor engine separates: what the vendor's
/// programs compute of one layer before the next begins. Copies through the tensor engine (input
/// rows, padding) are layers of their own.
struct ProgramLayer {
    std::vector<ProgramWord> instructions;
};

struct StreamView {
    ProgramWord first;  ///< word 0
    std::string type;   ///< of the executable
    Bytes bytes;
};

class Debugger {
  public:
    Debugger() = default;
    Debugger(const Debugger&) = delete;
    Debugger& operator=(const Debugger&) = delete;
    virtual ~Debugger() = default;

    /// In the order in which they run; with base addresses as they are sent.
    [[nodiscard]] virtual std::vector<StreamView> streams() const = 0;
    [[nodiscard]] virtual std::vector<ProgramLayer> layers() const = 0;

    /// Runs until `until` has come `count` times. Errors: those of the program (a fault, a
    /// deadlock), bad_argument after the end; after an error everything can still be looked at.
    [[nodiscard]] virtual Result<RunStop> run(RunUntil until, std::uint64_t count) = 0;
    /// The program ended with an error and cannot go on; restart() begins it again. Of a stick that
    /// is not known.
    [[nodiscard]] virtual bool failed() const { return false; }
    /// Stops a run() soon; may be called by signal handlers and other threads.
    virtual void interrupt() = 0;
    [[nodiscard]] virtual Status halt() = 0;
    /// Back to before the first instruction, with cleared memories; breakpoints stay.
    [[nodiscard]] virtual Status restart() = 0;

    /// Errors: bad_argument for words where no instruction begins and places outside of a memory.
    [[nodiscard]] virtual Result<unsigned> add_breakpoint(const BreakCondition& when) = 0;
    [[nodiscard]] virtual Status delete_breakpoint(unsigned number) = 0;
    [[nodiscard]] virtual std::span<const Breakpoint> breakpoints() const = 0;

    [[nodiscard]] virtual Result<CoreState> core() = 0;
    /// By unit: the scalar core's engines, then tiles.
    [[nodiscard]] virtual Result<std::vector<EngineState>> engines() = 0;
    [[nodiscard]] virtual Result<std::vector<CounterState>> counters() = 0;
    [[nodiscard]] virtual Result<std::vector<QueueState>> queues() = 0;
    /// Errors: bad_argument for a place outside of the memory, or without the tile it needs.
    [[nodiscard]] virtual Result<std::vector<std::byte>> read_memory(const MemoryRange& range) = 0;
    /// s0 to s31, p0 to p7; on a stick also the registers of docs/edgetpu-registers.md, where an
    /// element of a register file is NAME[INDEX]. Errors: not_found.
    [[nodiscard]] virtual Result<std::uint64_t> read_register(std::string_view name) = 0;
    [[nodiscard]] virtual Status write_register(std::string_view name, std::uint64_t value) = 0;

    /// What the program gave, as host tensors by the package's output layers. Errors: bad_argument
    /// before its end.
    [[nodiscard]] virtual Result<std::vector<std::vector<std::byte>>> outputs() = 0;
};

/// One inference of a package on a simulated chip of its own: the caching program, if there is one,
/// then the computing one. `inputs` as of SimulatedPackage::run(). The package's bytes stay shared.
/// Errors: those of SimulatedPackage::prepare(), and of the inputs.
[[nodiscard]] Result<std::unique_ptr<Debugger>> simulated_debugger(const Package& package,
                                                                   std::span<const Bytes> inputs);

}  // namespace reef::edgetpu
