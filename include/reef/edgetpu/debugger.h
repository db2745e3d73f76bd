// What the Edge TPU's debuggers show: a simulated chip's, and a stick's (usb/stick_debugger.h).
#pragma once

#include <memory>
#include <span>

#include "reef/chip/debugger.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

using chip::BreakCondition;
using chip::Breakpoint;
using chip::ChipUnit;
using chip::CoreState;
using chip::CounterState;
using chip::DebugEvent;
using chip::Debugger;
using chip::EngineState;
using chip::MemoryInfo;
using chip::MemoryNumber;
using chip::MemoryRange;
using chip::NestState;
using chip::ProgramLayer;
using chip::ProgramWord;
using chip::QueueState;
using chip::RunStop;
using chip::RunUntil;
using chip::StreamView;
using chip::TileNumber;
using chip::WordBreak;
using chip::WriteBreak;

/// Tiles are numbered 4 * row + column. Narrow memory is watched by words of 4 bytes.
struct ChipMemory {
    static constexpr MemoryNumber narrow{0};           ///< of a tile, by bytes
    static constexpr MemoryNumber wide{1};             ///< of a tile, by rows of 256 bytes
    static constexpr MemoryNumber scaling{2};          ///< of a tile, by words of 8 bytes
    static constexpr MemoryNumber scalar{3};           ///< by words of 4 bytes
    static constexpr MemoryNumber parameter_fifo{4};   ///< by units of 64 bytes
    static constexpr MemoryNumber activation_fifo{5};  ///< by units of 8 bytes
};

/// The scalar core's register files, as numbers in DebugTables::registers.
inline constexpr std::size_t scalar_file = 0;
inline constexpr std::size_t predicate_file = 1;

[[nodiscard]] const chip::DebugTables& debug_tables();
[[nodiscard]] inline const MemoryInfo& info_of(MemoryNumber memory) {
    return debug_tables().info_of(memory);
}

/// One inference of a package on a simulated chip of its own: the caching program, if there is one,
/// then the computing one. `inputs` as of SimulatedPackage::run(). The package's bytes stay shared.
/// Errors: those of SimulatedPackage::prepare(), and of the inputs.
[[nodiscard]] Result<std::unique_ptr<Debugger>> simulated_debugger(const Package& package,
                                                                   std::span<const Bytes> inputs);

}  // namespace reef::edgetpu
