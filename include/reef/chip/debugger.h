// The debugger: looks into a chip while it works, and holds it where it is told to.
//
// One interface for simulated chips, which show everything, and for hardware, which shows what its
// registers tell; what it does not show is refused by name. A chip's registers and memories are
// tables; numbers of executables, streams and words are those of its disassembler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/model/graph.h"

namespace reef::chip {

/// A word of an instruction stream.
struct ProgramWord {
    std::size_t executable = 0;
    std::size_t stream = 0;
    std::size_t word = 0;
    friend bool operator==(const ProgramWord&, const ProgramWord&) = default;
};

/// One of the equal parts that a chip has many of; DebugTables::tile is its word for them.
struct TileNumber {
    unsigned value = 0;
    friend bool operator==(const TileNumber&, const TileNumber&) = default;
};

struct MemoryInfo {
    std::string_view name;
    std::string_view unit;  ///< "byte", "row", ...
    std::size_t unit_bytes = 1;
    std::size_t units = 0;
    bool of_tile = false;
};
/// Index into DebugTables::memories.
enum class MemoryNumber : std::uint8_t {};

/// Registers of the core, one like the other.
struct RegisterFile {
    std::string_view name;    ///< of all: "predicates"
    std::string_view prefix;  ///< of one, before its number: "p"
    std::string_view command_meaning;
    unsigned count = 0;
    unsigned bits = 0;  ///< 1, or up to 64
};

/// What there is to look at in a chip.
struct DebugTables {
    std::string_view tile;       ///< what the chip calls its parts
    std::string_view tile_hint;  ///< which of them show something
    std::span<const MemoryInfo> memories;
    std::span<const RegisterFile> registers;
    std::string_view register_names;  ///< which there are, one clause
    std::string_view memory_names;    ///< which there are and by what units, one clause
    /// Signed elements are kept with their top bit flipped.
    bool flips_signed = false;
    std::size_t word_bytes = 0;  ///< of instruction streams

    [[nodiscard]] const MemoryInfo& info_of(MemoryNumber memory) const {
        return memories[static_cast<std::size_t>(memory)];
    }
};

/// Units `first` to `last`. Without a tile: of every tile, or no tile's memory.
struct MemoryRange {
    MemoryNumber memory{};
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
/// After the visit that writes there.
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
    /// By file and number, as DebugTables::registers says.
    std::vector<std::vector<std::uint64_t>> registers;
};

struct NestState {
    struct Loop {
        std::uint32_t index = 0;
        std::uint32_t count = 0;
    };
    std::string_view name;     ///< "src", "out", ... as in symbolic text
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

    [[nodiscard]] virtual const DebugTables& tables() const = 0;
    /// Whether read_memory() can be asked.
    [[nodiscard]] virtual bool shows_memories() const = 0;
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
    /// One of DebugTables::registers; of hardware also those of its registers' table, where an
    /// element of a register file is NAME[INDEX]. Errors: not_found.
    [[nodiscard]] virtual Result<std::uint64_t> read_register(std::string_view name) = 0;
    [[nodiscard]] virtual Status write_register(std::string_view name, std::uint64_t value) = 0;

    /// What the program gave, as the host's tensors. Errors: bad_argument
    /// before its end.
    [[nodiscard]] virtual Result<std::vector<std::vector<std::byte>>> outputs() = 0;
};

/// An input or output of the program that is debugged.
struct DebuggedTensor {
    std::string name;
    std::string shape;  ///< "1x256 uint8"
};

struct DebugTarget {
    std::unique_ptr<Debugger> debugger;
    std::vector<DebuggedTensor> inputs, outputs;
    std::vector<reef::Array> output_arrays;  ///< shapes and types, no bytes
    std::string program{};                   ///< which, where the model has several
};

struct DebugRequest {
    std::string device;  ///< URI
    /// Of hardware that runs something already there may be none.
    const model::Model* model = nullptr;
    std::string place;  ///< of errors about the model: its file
    /// One of each of the graph's inputs; called when the model is known to be right.
    std::function<Result<std::vector<std::vector<std::byte>>>(const model::Subgraph&)> inputs;
    std::string firmware;  ///< for hardware that has none
    /// Number of the operator, of those that hold programs, in the model's first subgraph. Nothing:
    /// the first of them.
    std::optional<std::size_t> op{};
};

/// Who opens debuggers for a family of chips, enrolled as a part of it.
class DebuggerOpener : public Part {
  public:
    [[nodiscard]] virtual const DebugTables& tables() const = 0;
    /// Precondition: the device's backend can debug, and a simulated one is given a model.
    /// Errors: bad_input for a model that is not compiled; bad_argument for an operator that holds
    /// no program, with those that do; unsupported by name; those of the device.
    [[nodiscard]] virtual Result<DebugTarget> open(const DebugRequest& request) const = 0;
};

}  // namespace reef::chip
