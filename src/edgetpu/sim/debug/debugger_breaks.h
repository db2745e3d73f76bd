// Breakpoints: which of a stepwise run's events are hits.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/watch/watcher.h"
#include "reef/edgetpu/debugger.h"

namespace reef::edgetpu::sim {

/// Who that is.
[[nodiscard]] ChipUnit unit_of(Actor actor);
/// The mnemonic is the table's own: it lives on.
[[nodiscard]] inline std::string_view name_of(const ProgramInstruction& instruction) {
    return instruction.source.info->name;
}
/// Whether the scalar core does it all by itself.
[[nodiscard]] bool of_core(const ProgramInstruction& instruction);

/// Which tiles have begun and ended an instruction in its current pass: a loop may bring it again.
class TileProgress {
  public:
    /// Whether no tile had begun it.
    bool begin(std::uint32_t instruction, unsigned tile);
    /// Whether that was the last of `tiles`; of tiles that are not known, each is.
    bool end(std::uint32_t instruction, unsigned tile, std::uint16_t tiles);
    void clear();

  private:
    std::map<std::uint32_t, std::uint16_t> begun_;
    std::map<std::uint32_t, std::uint16_t> ended_;
};

class BreakpointList {
  public:
    unsigned add(const BreakCondition& when);
    /// False when there is none of that number.
    bool remove(unsigned number);
    [[nodiscard]] std::span<const Breakpoint> all() const { return all_; }

    // The number of the first breakpoint that is hit, counting the hit of each.
    /// `first`: of its tiles, or of its pass, for instructions that tiles execute.
    std::optional<unsigned> at_word(const ProgramWord& at, bool done, const ChipUnit& unit,
                                    bool first);
    /// `at` as AccessWatcher counts it.
    std::optional<unsigned> at_write(MemoryNumber memory, unsigned tile, std::uint32_t at);

  private:
    std::vector<Breakpoint> all_;
    unsigned last_ = 0;
};

}  // namespace reef::edgetpu::sim
