// The simulated Edge TPU behind a simulated stick: runs the instruction streams that come over USB.
#pragma once

#include <memory>

#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/usb/chip_core.h"

namespace reef::edgetpu::usb {

/// Knows bytes only. An instruction stream ends with its `end`; the next bytes of that tag begin
/// the next stream. Streams run one after the other, each as far as input and room for output let
/// it; what the chip has not asked for waits. Translated streams are kept, so that a program that
/// is sent again starts at once.
///
/// The scalar core's debug registers work: scalarCoreRunControl, scalarCoreBreakPoint and
/// scalarCoreRunStatus hold and show it between two instructions, while everything else works on;
/// currentPc, the scalar and predicate register files and its sync counters are those of the chip.
/// docs/debugger.md says how much of that is known of a real one.
///
/// What it makes up: 32 MiB of each tag may wait, 256 streams, and 4 MiB of output.
class SimulatorCore final : public ChipCore {
  public:
    /// `options.strict` finds nothing here: what a finding is depends on the package, which a chip
    /// does not know.
    explicit SimulatorCore(const SimulatorOptions& options = {});
    ~SimulatorCore() override;

    void reset() override;
    [[nodiscard]] Status receive(Tag tag, Bytes bytes) override;
    [[nodiscard]] std::size_t take_output(MutableBytes room) override;
    [[nodiscard]] std::optional<ChipEvent> take_event() override;
    [[nodiscard]] std::optional<std::uint64_t> read_register(std::uint32_t offset) const override;
    void write_register(std::uint32_t offset, std::uint64_t value) override;
    void watch(const RunWatch* watch) override;
    [[nodiscard]] bool idle() const override;
    [[nodiscard]] std::string standstill() const override;

    /// Streams that were translated, since construction.
    [[nodiscard]] std::uint64_t translations() const;

  private:
    struct Chip;
    std::unique_ptr<Chip> chip_;
};

}  // namespace reef::edgetpu::usb
