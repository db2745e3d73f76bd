// The commands of reef debug, as text and as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reef/base/element_type.h"
#include "reef/base/result.h"
#include "reef/chip/debugger.h"

namespace reef::tool::debug {

/// "WORD", "EXECUTABLE:WORD", "EXECUTABLE:STREAM:WORD". Without an executable: the one that
/// computes, stream 0.
struct WordText {
    std::optional<std::size_t> executable;
    std::size_t stream = 0;
    std::size_t word = 0;
    friend bool operator==(const WordText&, const WordText&) = default;
};

/// "tile 3", "core", or nothing for all.
struct UnitFilter {
    bool core_only = false;
    std::optional<chip::TileNumber> tile;
    [[nodiscard]] bool shows(const std::optional<chip::TileNumber>& unit) const {
        if (core_only) return !unit;
        return !tile || unit == tile;
    }
    friend bool operator==(const UnitFilter&, const UnitFilter&) = default;
};

struct Help {
    std::string command;  ///< empty: all
    friend bool operator==(const Help&, const Help&) = default;
};
struct Quit {
    friend bool operator==(const Quit&, const Quit&) = default;
};
struct RunTo {
    chip::RunUntil until = chip::RunUntil::instruction;
    std::uint64_t count = 1;
    friend bool operator==(const RunTo&, const RunTo&) = default;
};
struct Halt {
    friend bool operator==(const Halt&, const Halt&) = default;
};
struct Restart {
    friend bool operator==(const Restart&, const Restart&) = default;
};
struct BreakAtWord {
    WordText word;
    bool when_done = false;
    std::optional<chip::TileNumber> tile;
    friend bool operator==(const BreakAtWord&, const BreakAtWord&) = default;
};
struct BreakAtWrite {
    chip::MemoryRange where;
    friend bool operator==(const BreakAtWrite&, const BreakAtWrite&) = default;
};
struct Delete {
    unsigned number = 0;
    friend bool operator==(const Delete&, const Delete&) = default;
};
/// Commands that show something and take no arguments.
enum class Show : std::uint8_t {
    breakpoints,
    where,
    info,
    layers,
    outputs,
};
/// A file of the core's registers, by its number in the chip's tables.
struct ShowRegisters {
    std::size_t file = 0;
    friend bool operator==(const ShowRegisters&, const ShowRegisters&) = default;
};
/// Those that may be limited to the scalar core or a tile.
enum class ShowUnits : std::uint8_t { engines, counters, queues };
struct ShowOf {
    ShowUnits what = ShowUnits::engines;
    UnitFilter filter;
    friend bool operator==(const ShowOf&, const ShowOf&) = default;
};
struct Register {
    std::string name;
    std::optional<std::uint64_t> value;  ///< to write
    friend bool operator==(const Register&, const Register&) = default;
};
struct ShowMemory {
    chip::MemoryRange where;
    friend bool operator==(const ShowMemory&, const ShowMemory&) = default;
};
/// A region of a memory as a tensor. Signed elements are the host's.
struct ShowTensor {
    chip::MemoryNumber memory{};
    std::optional<chip::TileNumber> tile;
    std::uint32_t first = 0;                ///< in the memory's units
    std::vector<std::uint32_t> shape;       ///< outermost first
    ElementType type = ElementType::uint8;  ///< see parse()
    std::vector<std::int64_t> strides;      ///< bytes, as many as dimensions; empty: without gaps
    bool flips_signed = false;              ///< as DebugTables::flips_signed
    friend bool operator==(const ShowTensor&, const ShowTensor&) = default;
};
struct List {
    std::optional<WordText> from;
    std::size_t count = 10;  ///< instructions
    friend bool operator==(const List&, const List&) = default;
};

using Command = std::variant<Help, Quit, RunTo, Halt, Restart, BreakAtWord, BreakAtWrite, Delete,
                             Show, ShowRegisters, ShowOf, Register, ShowMemory, ShowTensor, List>;

/// One line; nothing for an empty one. "#" begins a comment. Commands may be abbreviated to what is
/// unambiguous; "s", "c", "b" and "q" are step, continue, break and quit. Memories and files of
/// registers are those of the chip.
/// Errors: bad_argument with the command's form.
[[nodiscard]] Result<std::optional<Command>> parse(std::string_view line,
                                                   const chip::DebugTables& chip);

/// Whether the line is a step or a continue.
[[nodiscard]] bool runs_on(std::string_view line, const chip::DebugTables& chip);

/// The forms of all commands, or of one. Errors: bad_argument for none of that name.
[[nodiscard]] Result<std::string> help_text(std::string_view command,
                                            const chip::DebugTables& chip);

/// Bytes from a tensor's first element to its last one's end. Errors: bad_argument for strides that
/// lead in front of the first element, and regions larger than any memory.
[[nodiscard]] Result<std::size_t> bytes_of(const ShowTensor& tensor);
/// The strides, or those of a tensor without gaps.
[[nodiscard]] std::vector<std::int64_t> strides_of(const ShowTensor& tensor);

}  // namespace reef::tool::debug
