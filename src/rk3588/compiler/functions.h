// Functions of one byte: operators that the DPU's tables compute, each value for itself.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "rk3588/compiler/lowering.h"

namespace reef::rk3588::lowering {

/// Operators of which one gives a function of a value, and the others, which nothing else reads,
/// what it makes it of.
struct FunctionGroup {
    ValueId root = 0;                  ///< the function's argument
    std::vector<std::size_t> members;  ///< ascending; the last one gives the result
    ByteFunction function{};
};

/// The chip computes it by table or not at all.
[[nodiscard]] bool needs_table(const compiler::Graph& graph, const compiler::Node& node);

/// Why the tables do not compute it; empty when they do.
[[nodiscard]] std::string refuse_function(const compiler::Graph& graph, const compiler::Node& node);

/// The most operators of a program that one table computes and of which `last` gives the result;
/// nothing when it is one that needs no table.
[[nodiscard]] std::optional<FunctionGroup> function_behind(const compiler::Graph& graph,
                                                           std::span<const std::size_t> program,
                                                           std::size_t last);

/// Each value of a byte, times its steps, meets an entry of its own.
[[nodiscard]] TableContents tables_of(const ByteFunction& function);
/// What BN multiplies a byte with for them, and the result's bits that they add.
inline constexpr int entry_bits = 2, result_bits = 7;

/// Tables behind the sum of so many bytes, and the converter that then gives its quotient by their
/// number, cut off towards zero.
struct Truncation {
    TableContents tables;
    ScaleAndShift converter;
};
/// Nothing: some quotient would be another one.
[[nodiscard]] std::optional<Truncation> truncation_of(std::int32_t count);

}  // namespace reef::rk3588::lowering
