// The compiler's plan of one program: a step for each operator, in the terms of the chip.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
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

/// What the DPU's tables hold: entries of LE, then of LO, from the starts to the ends of their
/// ranges. LE answers below its range, LO everywhere else outside, each with its end's entry.
struct TableContents {
    std::int32_t le_start = 0, le_end = 0, lo_start = 0, lo_end = 0;
    std::vector<std::int16_t> entries;
};

/// Zero points and weights are in the domain of int8.
struct ConvolutionStep {
    ConvolutionShape shape;
    std::int32_t task_channels = 0;  ///< of the output, at most
    std::vector<Piece> pieces;       ///< by core
    std::int32_t input_zero = 0, weight_zero = 0;
    Requantisation numbers;
    std::uint32_t weights = 0;  ///< where in the constants
    std::uint32_t weight_bytes = 0;
    std::uint32_t operands = 0;  ///< biases, or groups of biases and factors
    std::uint32_t powers = 0;    ///< BN's factors
    std::uint64_t macs = 0;      ///< of the operator
    std::optional<FusedSum> sum;
    std::optional<TableContents> tables;  ///< between BN and the converter

    /// Of a part of the output channels: offsets in the constants.
    [[nodiscard]] std::uint32_t weights_of(const Piece& piece) const;
    [[nodiscard]] std::uint32_t operands_of(const Piece& piece) const;
    [[nodiscard]] std::uint32_t powers_of(const Piece& piece) const;
};

/// Two cubes, or one, by the DPU alone.
struct ElementStep {
    enum class Operation : std::uint8_t {
        sum,      ///< a * gain_a + b * gain_b
        product,  ///< a * b * gain_b
        rescale,  ///< a * gain_a
        copy,     ///< a
    };
    Operation operation = Operation::sum;
    std::int32_t zero_a = 0, zero_b = 0;
    SumGains gains;
    std::int32_t zero = 0;
    bool relu = false;
    std::uint32_t first_surface = 0;  ///< of a, of a copy
    std::int32_t cores = 1;           ///< that share it by surfaces
};

/// Of each value of a byte from -128 on, int8 domain.
using ByteFunction = std::array<std::int8_t, 256>;

/// Each value of a cube for itself, by the DPU's tables.
struct FunctionStep {
    ByteFunction function{};
    std::size_t operators = 1;  ///< that the table computes
    std::int32_t cores = 1;     ///< that share it by surfaces
};

/// The greatest of windows, by the PPU.
struct PoolStep {
    compiler::Window window;
    std::int32_t bottom = 0, right = 0;  ///< pixels behind the image
    std::int32_t cores = 1;              ///< that share it by surfaces
};

/// Its inputs stand in its output.
struct PlacedStep {};

struct Step {
    std::size_t node = 0;
    std::vector<ValueId> inputs;
    ValueId output = 0;
    std::variant<ConvolutionStep, ElementStep, FunctionStep, PoolStep, PlacedStep> kind;
    /// Steps of one stage run at once, each on a core of its own unless it is alone; a barrier
    /// stands between stages.
    std::size_t stage = 0;
    std::int32_t core = 0;  ///< of the first part
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
    std::vector<AbsorbedOperator> absorbed;
    std::vector<std::byte> constants;
    std::map<ValueId, Fold> folds;           ///< of inputs whose rows are folded
    std::map<ValueId, std::uint32_t> slack;  ///< bytes behind values that are written, too
    std::vector<Root> roots;                 ///< by value: itself, or what it is a part of
    std::vector<std::uint32_t> offsets;  ///< by value, in the activations: of roots that are used
    std::uint32_t activation_bytes = 0;
    std::uint32_t sram_bytes = 0;  ///< the first ones, of the chip's SRAM

    [[nodiscard]] const compiler::Value& value(ValueId id) const { return graph->values[id]; }
    [[nodiscard]] Cube cube(ValueId id) const;
    [[nodiscard]] std::uint32_t offset_of(ValueId id) const {
        return offsets[roots[id].value] + roots[id].offset;
    }
};

/// Steps with their constants. Errors, with the operator as their place: unsupported.
[[nodiscard]] Result<Plan> lower(const compiler::Graph& graph, const compiler::Program& program,
                                 const Options& options);

/// Shares the steps among the cores, by what each way costs, and gathers those that do not need
/// each other in stages.
void divide(Plan& plan, std::int32_t cores);

/// Roots of all values.
void find_roots(Plan& plan);

/// Gives every value its place: parts of a concatenation inside it, and values that are never alive
/// together over each other. With `sram_bytes` the values that move the most bytes stand in the
/// first ones.
[[nodiscard]] Status place(Plan& plan, std::uint32_t sram_bytes);

/// Words, tasks and relocations.
[[nodiscard]] Result<Artifact> emit(const Plan& plan);

/// What the steps cost and which unproven forms they use.
[[nodiscard]] std::vector<OperatorReport> report_of(const Plan& plan);
/// Of the stages one after the other.
[[nodiscard]] std::uint64_t cycles_of(const Plan& plan);

/// Of each core that a step uses, from its first one on.
[[nodiscard]] std::vector<Work> work_of(const Plan& plan, const Step& step);

/// How many cores share a step, and which surfaces of its output one of them makes.
[[nodiscard]] Rows surfaces_of_core(std::int32_t channels, std::int32_t cores, std::int32_t core);
void add_unproven(const Plan& plan, std::vector<UnprovenForm>& forms);

}  // namespace reef::rk3588::lowering
