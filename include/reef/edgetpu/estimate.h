// How long a compiled program would take on the chip: an estimate from stated assumptions.
//
// Between two fences of a tile its engines run side by side: the longest of them is the time that
// passes. Transfers over USB and a fixed cost per inference are added. Reef never measured a chip:
// the assumptions come from published captures and times, and docs/simulator.md says how far they
// carry.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

/// What one cycle of the estimate is: the assumed clock of the chip.
[[nodiscard]] double estimated_clock_hz();

/// One instruction on one engine, for a picture of the programs over time.
struct EngineSpan {
    static constexpr std::uint8_t scalar_core = 16;
    std::uint8_t tile = 0;         ///< 0 to 15, or scalar_core
    std::string_view engine;       ///< "OP", "WIDE_TO_NARROW", ...; "INFEED", "PUSH", "OUTFEED"
    std::string_view instruction;  ///< its name
    std::size_t word = 0;          ///< its place in the stream
    std::uint64_t begin = 0;       ///< cycles
    std::uint64_t cycles = 0;
    bool caching = false;  ///< of the program that loads the parameters
};

/// What the instructions of one name take. Syncs and fences take nothing: they wait.
struct InstructionCycles {
    std::string_view instruction;
    std::uint64_t count = 0;           ///< of those issued; one may work on several tiles
    std::uint64_t busiest_cycles = 0;  ///< of the tile that spends most on them, or the scalar core
    std::uint64_t all_cycles = 0;      ///< of all tiles together
    friend bool operator==(const InstructionCycles&, const InstructionCycles&) = default;
};

struct ExecutableEstimate {
    std::uint64_t cycles = 0;           ///< of the program on the chip
    std::uint64_t mac_steps = 0;        ///< of all tiles: 64 lanes times up to 4 products each
    std::uint64_t to_chip_bytes = 0;    ///< instructions, parameters, inputs, scratch
    std::uint64_t from_chip_bytes = 0;  ///< outputs, scratch
    /// Where the program goes cannot be told without running all of it, or it does not end:
    /// instructions are counted once as they stand.
    bool counted_once = false;
    std::vector<InstructionCycles> instructions{};  ///< the most busiest_cycles first

    /// Of two programs, one after the other.
    ExecutableEstimate& operator+=(const ExecutableEstimate& other);
};

struct PackageEstimate {
    std::optional<ExecutableEstimate> caching;
    ExecutableEstimate computing;
    double first_seconds = 0;      ///< an inference that loads the parameters first
    double cached_seconds = 0;     ///< one that finds them
    double throttled_seconds = 0;  ///< the same at the throttled clock

    /// Of two packages, one after the other.
    PackageEstimate& operator+=(const PackageEstimate& other);
};

/// Errors: those of decoding the programs; bad_input when the package has no program that computes.
/// `spans`, when given, gets both programs' behind those that it holds: first the one that loads
/// the parameters, then the one that computes.
[[nodiscard]] Result<PackageEstimate> estimate(const Package& package,
                                               std::vector<EngineSpan>* spans = nullptr);

}  // namespace reef::edgetpu
