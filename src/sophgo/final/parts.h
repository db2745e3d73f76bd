// final.mlir among the kinds of files that the command knows.
#pragma once

#include <memory>

#include "reef/chip/checker.h"
#include "reef/chip/file_kind.h"
#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

[[nodiscard]] bool is_final_mlir(Bytes file);
[[nodiscard]] chip::FileReport report_of(const FinalProgram& program, chip::Detail detail);

[[nodiscard]] std::unique_ptr<chip::FileInspector> final_inspector();
[[nodiscard]] std::unique_ptr<chip::FileChecker> final_checker();

}  // namespace reef::sophgo
