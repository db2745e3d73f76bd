// Readable models made other readable models: what mutated bytes, which a reader refuses, do not
// reach.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::fuzz {

/// For LLVMFuzzerCustomMutator: `data` holds a model of `size` bytes or anything else, and gets one
/// with other numbers (scales, zero points, constants, options, inputs of operators), another
/// random network, or other bytes. Gives how many bytes of `capacity` it has.
[[nodiscard]] std::size_t mutate_network(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                         unsigned seed);

}  // namespace reef::fuzz
