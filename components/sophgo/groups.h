// Groups: units of operators on the chip's local memory, seen from outside as one operator.
#pragma once

#include <string>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace reef::sophgo {

/// Erases what nobody uses, from the end on; returns how many operators with a "tpu." name went.
std::size_t erase_dead(mlir::func::FuncOp function);

/// Results of groups that nobody uses go with their Store, what only it used, and their ids in the
/// flow; returns their names. Groups whose flow does not say what they run stay as they are.
std::vector<std::string> prune_group_results(mlir::func::FuncOp function);

/// Gives each such result a Reshape on its own memory, for which nothing is executed.
std::vector<std::string> keep_group_results(mlir::func::FuncOp function);

/// A Load or Store that a neighbour emits would never be emitted without it: all lists become
/// empty. Returns how many groups had some.
std::size_t reset_overlaps(mlir::func::FuncOp function);

}  // namespace reef::sophgo
