// The demo's networks compiled for every chip that has a compiler, and run on its simulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "demo/run.h"

namespace reef::tool {

/// One network on one chip, against the plain network on the CPU.
struct DemoNetworkOnChip {
    std::string name;
    model::Model compiled;
    std::size_t operators = 0, on_chip = 0;
    std::uint64_t bytes = 0;      ///< of its outputs in all frames
    std::uint64_t differing = 0;  ///< from the plain network's
    int most_apart = 0;           ///< of two bytes
    /// Tensors of the last picture that the chip stores, each against what the CPU makes of the
    /// chip's values in front of it.
    std::size_t layers = 0;
    std::size_t same_layers = 0;  ///< equal, or as far apart as the chip's rounding may be
};

struct DemoOnChip {
    std::string family;
    std::string chip;    ///< for people
    std::string device;  ///< a simulated one
    std::vector<DemoNetworkOnChip> networks;
    std::size_t same_verdicts = 0;  ///< frames whose verdict is the plain networks'
};

/// `plain` is the run of `models` on the CPU. Chips without a simulated device are left out.
[[nodiscard]] Result<std::vector<DemoOnChip>> run_demo_on_chips(const DemoModels& models,
                                                                const DemoRun& plain);

}  // namespace reef::tool
