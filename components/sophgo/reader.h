// MLIR's form of final.mlir, and what the reader and the cut both ask of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "reef/sophgo/final_engine.h"

namespace reef::sophgo {

/// A parsed file; it owns its context.
struct Parsed {
    std::unique_ptr<mlir::MLIRContext> context;
    mlir::OwningOpRef<mlir::ModuleOp> top;
    bool old_form = false;  ///< of 2022: names are attributes, "func" has no prefix
};

[[nodiscard]] Result<Parsed> parse(std::string_view text);
[[nodiscard]] std::string printed(const Parsed& parsed);
[[nodiscard]] Result<FinalProgram> program_of(const Parsed& parsed);

/// Of a result or argument: its part of a fused location, its location's name, or (2022) its
/// operator's attribute.
[[nodiscard]] std::string name_of(mlir::Value value);
[[nodiscard]] std::optional<std::int64_t> address_of(mlir::Value value);
/// As it lies in memory. Errors: unsupported for types without a size.
[[nodiscard]] Result<std::uint64_t> bytes_of(mlir::Type type, std::string_view chip);
[[nodiscard]] std::string text_of(mlir::Type type);
[[nodiscard]] bool is_kind(mlir::Operation* op, std::string_view kind);
/// "id = N" in #tpu.lg<...>, which MLIR keeps as text: an operator's number in its group's flow.
[[nodiscard]] std::optional<std::int64_t> group_id(mlir::Operation* op);
void set_group_id(mlir::Operation* op, std::int64_t id);

}  // namespace reef::sophgo
