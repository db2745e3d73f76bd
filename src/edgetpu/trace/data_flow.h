// Where the data of tensor instructions come from: a run of a package in which every word of memory
// holds the name of what made it. Everything moves as in any run, held back by the program's own
// synchronisation; only the tensor instructions compute nothing.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reef/base/result.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu::trace {

struct DataOrigin {
    enum class Kind : std::uint8_t {
        tensor,      ///< index in DataFlow::tensors
        fill,        ///< index in DataFlow::fills
        input,       ///< index of a layer of the executable that computes
        parameters,  ///< index of an executable of the package
    };
    Kind kind = Kind::tensor;
    std::size_t index = 0;
    std::size_t offset = 0;  ///< in parameters, bytes
    friend bool operator==(const DataOrigin&, const DataOrigin&) = default;
};

/// An instruction's place in the executable that computes.
struct InstructionPlace {
    std::size_t bitstream = 0;
    std::size_t word = 0;
    friend auto operator<=>(const InstructionPlace&, const InstructionPlace&) = default;
};

/// What a tensor instruction reads, on all its tiles. Lists have no order and no duplicates.
struct TensorFlow {
    InstructionPlace place;
    /// By the row of parameters that the input meets, counted from the first, modulo 4.
    std::array<std::vector<DataOrigin>, 4> in;
    /// Of the rows from the package, the first word.
    std::vector<DataOrigin> parameters;
    std::vector<DataOrigin> scaling;  ///< factors and biases of the first lane
};

struct OutputFlow {
    std::vector<DataOrigin> all;
    /// Of channels 4 * i to 4 * i + 3; empty unless channels are a multiple of 4, of one byte each.
    std::vector<std::vector<DataOrigin>> by_channels;
};

struct DataFlow {
    std::vector<TensorFlow> tensors;  ///< in the order of the streams
    std::vector<InstructionPlace> fills;
    std::vector<OutputFlow> outputs;  ///< by layer of the executable that computes
};

/// Errors: those of SimulatedPackage::prepare() and run().
[[nodiscard]] Result<DataFlow> data_flow(const Package& package);

}  // namespace reef::edgetpu::trace
