// The compiler's plan of one program: a step for each operator, in the terms of the chip.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/partition.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/compiler/buffer_plan.h"
#include "rk3588/compiler/cost.h"
#include "rk3588/compiler/options.h"
#include "rk3588/compiler/requantisation.h"

namespace reef::rk3588::lowering {

using compiler::ValueId;

/// A tensor of the results' shape that EW adds to the products: (value - zero) * gain, in the scale
/// that they have behind BS.
struct FusedSum {
    ValueId addend = 0;
    std::int32_t zero = 0;  ///< int8 domain
    ScaleAndShift gain;
    bool relu = false;  ///< of the sum
};

/// Zero points and weights are in the domain of int8.
struct ConvolutionStep {
    ConvolutionShape shape;
    BufferPlan buffer;
    std::vector<RowTile> tiles;
    std::int32_t tile_channels = 0;  ///< of the output, of a task
    std::int32_t input_zero = 0, weight_zero = 0;
    Requantisation numbers;
    std::uint32_t weights = 0;  ///< where in the constants
    std::uint32_t weight_bytes = 0;
    std::uint32_t operands = 0;  ///< biases, or groups of biases and factors
    std::uint32_t powers = 0;    ///< BN's factors
    std::optional<FusedSum> sum;

    [[nodiscard]] std::int32_t channel_tiles() const {
        return (shape.out_channels + tile_channels - 1) / tile_channels;
    }
    [[nodiscard]] std::size_t tasks() const {
        return tiles.size() * static_cast<std::size_t>(channel_tiles());
    }
    /// The part of the output channels that begins at `first`.
    [[nodiscard]] ConvolutionShape part(std::int32_t first) const {
        ConvolutionShape s = shape;
        s.out_channels = std::min(tile_channels, shape.out_channels - first);
        return s;
    }
};

/// Of two cubes, by the DPU alone.
struct SumStep {
    std::int32_t zero_a = 0, zero_b = 0;
    SumGains gains;
    std::int32_t zero = 0;
    bool relu = false;
};

/// Its inputs stand in its output.
struct PlacedStep {};

struct Step {
    std::size_t node = 0;
    std::vector<ValueId> inputs;
    ValueId output = 0;
    std::variant<ConvolutionStep, SumStep, PlacedStep> kind;
};

/// Where a value stands: in the cube of `root`, `offset` bytes behind its beginning.
struct Root {
    ValueId value = 0;
    std::uint32_t offset = 0;
};

struct Plan {
    const compiler::Graph* graph = nullptr;
    const compiler::Program* program = nullptr;
    std::vector<Step> steps;
    std::vector<std::byte> constants;
    std::vector<Root> roots;             ///< by value: itself, or what it is a part of
    std::vector<std::uint32_t> offsets;  ///< by value, in the activations: of roots that are used
    std::uint32_t activation_bytes = 0;

    [[nodiscard]] const compiler::Value& value(ValueId id) const { return graph->values[id]; }
    [[nodiscard]] Cube cube(ValueId id) const;
    [[nodiscard]] std::uint32_t offset_of(ValueId id) const {
        return offsets[roots[id].value] + roots[id].offset;
    }
};

/// Steps with their constants. Errors, with the operator as their place: unsupported.
[[nodiscard]] Result<Plan> lower(const compiler::Graph& graph, const compiler::Program& program,
                                 const Options& options);

/// Gives every value its place: parts of a concatenation inside it, and values that are never alive
/// together over each other.
[[nodiscard]] Status place(Plan& plan);

/// Words, tasks and relocations.
[[nodiscard]] Result<Artifact> emit(const Plan& plan);

/// What the steps cost and which unproven forms they use.
[[nodiscard]] std::vector<OperatorReport> report_of(const Plan& plan);
void add_unproven(const Plan& plan, std::vector<UnprovenForm>& forms);

}  // namespace reef::rk3588::lowering
