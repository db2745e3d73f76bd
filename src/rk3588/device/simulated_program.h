// A compiled program in simulated memory, with cores of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rk3588/artifact/artifact.h"
#include "rk3588/sim/cores.h"

namespace reef::rk3588 {

/// Nothing is kept from one run to the next.
class SimulatedProgram {
  public:
    /// The artifact must outlive it. Errors: unsupported for one larger than the NPU addresses.
    [[nodiscard]] static Result<std::unique_ptr<SimulatedProgram>> place(
        const Artifact& artifact, const sim::Switches& switches = {});

    /// Forgets the run before. A tensor for each of the artifact's inputs, with its bytes.
    [[nodiscard]] Status begin(std::span<const Bytes> inputs);
    [[nodiscard]] const std::vector<Stage>& stages() const { return stages_; }
    /// One of stages(), in their order. Errors, with the operators as their place: those of the
    /// cores.
    [[nodiscard]] Status run(const Stage& stage);
    /// What a cube holds now. Errors: bytes that nobody has written.
    [[nodiscard]] Status read(const Cube& cube, MutableBytes tensor) const;

    SimulatedProgram(const Artifact& artifact, const sim::Switches& switches);

  private:
    [[nodiscard]] Status place();
    [[nodiscard]] Status add(std::uint32_t address, MutableBytes bytes,
                             sim::Contents contents = sim::Contents::known) {
        return bytes.empty() ? Status{} : memory_.add(address, bytes, contents);
    }

    const Artifact& artifact_;
    std::vector<std::byte> constants_, activations_;
    std::vector<std::uint64_t> commands_;
    std::uint32_t commands_base_ = 0, activations_base_ = 0;
    std::vector<Stage> stages_;
    std::vector<sim::Start> starts_;
    sim::Memory memory_;
    sim::Cores cores_;
};

}  // namespace reef::rk3588
