// Addresses in a module: moved together with all that must lie at the same place, and the sizes of
// its regions.
#pragma once

#include <cstdint>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reef/base/result.h"

namespace reef::sophgo {

/// Moves a value of a function with its alias class: Reshapes on both sides, a group's result with
/// its Store and Yield, what it is called in main and in later functions. Errors: unsupported for
/// classes with a network's input and for operators that write into an operand's memory.
[[nodiscard]] Status move_value(mlir::Value value, std::int64_t address);

/// Types of functions, calls and arguments after those of values have changed.
void mend_types(mlir::ModuleOp device);

[[nodiscard]] std::int64_t integer(mlir::Operation* op, const char* name);
void set_integer(mlir::Operation* op, const char* name, std::int64_t value);

}  // namespace reef::sophgo
