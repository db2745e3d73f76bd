// The debugger of a simulated chip: one inference of a package in a stepwise run.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include "debugger_breaks.h"
#include "edgetpu/sim/machine/prepared_executable.h"
#include "reef/edgetpu/debugger.h"
#include "reef/edgetpu/layer_tensor.h"

namespace reef::edgetpu::sim {

class SimulatedDebugger final : public Debugger, private StepObserver {
  public:
    [[nodiscard]] static Result<std::unique_ptr<SimulatedDebugger>> create(
        const Package& package, std::span<const Bytes> inputs);

    [[nodiscard]] const chip::DebugTables& tables() const override { return debug_tables(); }
    [[nodiscard]] bool shows_memories() const override { return true; }
    [[nodiscard]] std::vector<StreamView> streams() const override;
    [[nodiscard]] std::vector<ProgramLayer> layers() const override { return layers_; }
    [[nodiscard]] Result<RunStop> run(RunUntil until, std::uint64_t count) override;
    [[nodiscard]] bool failed() const override { return stopped_.has_value(); }
    void interrupt() override { interrupted_ = true; }
    [[nodiscard]] Status halt() override { return {}; }
    [[nodiscard]] Status restart() override;
    [[nodiscard]] Result<unsigned> add_breakpoint(const BreakCondition& when) override;
    [[nodiscard]] Status delete_breakpoint(unsigned number) override;
    [[nodiscard]] std::span<const Breakpoint> breakpoints() const override {
        return breakpoints_.all();
    }
    [[nodiscard]] Result<CoreState> core() override;
    [[nodiscard]] Result<std::vector<EngineState>> engines() override;
    [[nodiscard]] Result<std::vector<CounterState>> counters() override;
    [[nodiscard]] Result<std::vector<QueueState>> queues() override;
    [[nodiscard]] Result<std::vector<std::byte>> read_memory(const MemoryRange& range) override;
    [[nodiscard]] Result<std::uint64_t> read_register(std::string_view name) override;
    [[nodiscard]] Status write_register(std::string_view name, std::uint64_t value) override;
    [[nodiscard]] Result<std::vector<std::vector<std::byte>>> outputs() override;

  private:
    struct Part {
        std::size_t number = 0;  ///< of the executable in the package
        PreparedExecutable loaded;
    };
    SimulatedDebugger() = default;
    void find_layers();
    void begin_part(std::size_t part);
    [[nodiscard]] bool ended() const { return part_ == parts_.size(); }
    [[nodiscard]] ProgramWord word_of(const ProgramInstruction& instruction) const;
    /// Null when no instruction begins there.
    [[nodiscard]] const ProgramInstruction* instruction_at(const ProgramWord& at) const;
    [[nodiscard]] Status check_word(const ProgramWord& at) const;
    void come_to_next();
    [[nodiscard]] Status round();
    [[nodiscard]] std::optional<RunStop::Reason> why_stop(std::uint64_t count) const;
    void note(DebugEvent::Kind kind, Actor actor, const ProgramInstruction& instruction,
              std::optional<unsigned> breakpoint, std::optional<MemoryRange> memory = std::nullopt);
    [[nodiscard]] bool layer_begins(const ProgramInstruction& instruction);
    [[nodiscard]] EngineState state_of(Actor actor, const EngineStatus& status,
                                       std::string waits) const;
    [[nodiscard]] EngineState state_of(Actor actor, const DispatchStatus& status) const;
    [[nodiscard]] std::span<const std::uint8_t> unit_bytes(const MemoryRange& range,
                                                           std::uint32_t unit);

    void started(Actor actor, const ProgramInstruction& instruction) override;
    void finished(Actor actor, const ProgramInstruction& instruction) override;
    void read(Actor, Watched, unsigned, std::uint32_t) override {}
    void write(Actor actor, Watched memory, unsigned tile, std::uint32_t at,
               bool parameter) override;

    std::vector<Part> parts_;  ///< in the order in which they run
    std::vector<OutputUnpacker> unpackers_;
    std::vector<std::vector<std::byte>> inputs_;
    std::vector<ProgramLayer> layers_;
    std::map<std::uint32_t, std::size_t> layer_of_;  ///< of the computing part, by instruction
    std::optional<Machine> machine_;
    std::size_t part_ = 0;
    std::uint64_t rounds_ = 0;
    std::optional<Error> stopped_;  ///< why the program can not go on
    std::atomic<bool> interrupted_ = false;

    BreakpointList breakpoints_;
    TileProgress progress_;
    std::array<const ProgramInstruction*, actor_count> current_{};
    bool came_ = false;  ///< the scalar core's next instruction was told of
    std::optional<std::size_t> layer_;
    // Of the current run().
    RunUntil until_ = RunUntil::round;
    std::uint64_t steps_ = 0;
    std::vector<DebugEvent> step_events_;
    std::vector<DebugEvent> hits_;
};

}  // namespace reef::edgetpu::sim
