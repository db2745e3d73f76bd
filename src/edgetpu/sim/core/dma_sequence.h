// The DMA transfers that a program's scalar core asks of the host, without running anything else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reef/base/result.h"
#include "reef/edgetpu/package.h"
#include "scalar_core.h"

namespace reef::edgetpu::sim {

/// One transfer, in the terms of the package's hints.
struct FiredTransfer {
    Tag tag{};
    BaseAddress region{};      ///< not for interrupts
    std::string layer{};       ///< of input and output activations
    std::uint64_t offset = 0;  ///< bytes from the region's base
    std::uint64_t bytes = 0;
    friend bool operator==(const FiredTransfer&, const FiredTransfer&) = default;
};

/// Executes the scalar instructions of all streams, one stream after the other, and gives the
/// descriptors in the order in which they are fired. Each region and layer that the field offsets
/// name gets a base address whose low word is 64 bytes below its end, so that additions carry into
/// the high word. Scalar memory that the ring would fill keeps its old contents.
/// Errors: those of ScalarCore; bad_input when a stream runs over its end, when it does not halt
/// within `most_instructions`, or when a descriptor points into no region.
[[nodiscard]] Result<std::vector<FiredTransfer>> dma_sequence(
    const Executable& executable, std::uint64_t most_instructions = 1 << 24);
/// The same, by stream.
[[nodiscard]] Result<std::vector<std::vector<FiredTransfer>>> dma_sequences(
    const Executable& executable, std::uint64_t most_instructions = 1 << 24);

/// Transfers that go on where the one before ended, with the same tag and region, become one.
[[nodiscard]] std::vector<FiredTransfer> merged(std::vector<FiredTransfer> transfers);

}  // namespace reef::edgetpu::sim
