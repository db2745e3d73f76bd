// A compiled program in simulated memory, whose operators run one by one.
#pragma once

#include <memory>
#include <vector>

#include "rk3588/artifact/artifact.h"
#include "rk3588/sim/machine.h"

namespace reef::test {

class ChipMemory {
  public:
    explicit ChipMemory(rk3588::Artifact artifact, const rk3588::sim::Switches& switches = {});

    [[nodiscard]] const rk3588::Artifact& artifact() const { return artifact_; }
    void write(const rk3588::Cube& cube, Bytes tensor);
    [[nodiscard]] std::vector<std::byte> read(const rk3588::Cube& cube) const;
    [[nodiscard]] Status run(const rk3588::ArtifactOperator& op);
    [[nodiscard]] const rk3588::sim::Traffic& traffic() const { return traffic_; }

  private:
    rk3588::Artifact artifact_;
    std::vector<std::byte> constants_, activations_;
    std::vector<std::uint64_t> commands_;
    rk3588::sim::Memory memory_;
    rk3588::sim::Machine machine_;
    rk3588::sim::Traffic traffic_;
};

/// The programs of a compiled model, in its order.
[[nodiscard]] std::vector<rk3588::Artifact> programs_of(const model::Model& compiled);

}  // namespace reef::test
