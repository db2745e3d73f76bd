// From a plain model to one whose operators `reef-rk3588` hold programs for the RK3588.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/chip/compiler.h"
#include "rk3588/compiler/cost.h"
#include "rk3588/compiler/options.h"

namespace reef::rk3588 {

struct CompiledProgram {
    std::vector<OperatorReport> operators;
    std::size_t tasks = 0;
    std::size_t cores = 1;       ///< that work at once, at most
    std::size_t barriers = 0;    ///< of several cores
    std::uint64_t cycles = 0;    ///< estimated, from the first task to the last
    std::size_t fused_sums = 0;  ///< that a convolution computes, too
    std::size_t activation_bytes = 0, constant_bytes = 0, command_bytes = 0;
    std::size_t sram_bytes = 0;  ///< of the activations
};

struct Compiled {
    model::Model model;
    std::vector<chip::CompiledOperator> operators;
    std::vector<CompiledProgram> programs;
    std::vector<UnprovenForm> unproven;
    std::string listing;  ///< of options.print_after
};

[[nodiscard]] std::vector<std::string_view> compiler_passes();

/// Deterministic. Operators that the chip does not take stay, with the reason. Of the options,
/// those of every compiler count: most_programs, print_after, progress and cancelled. Errors: as
/// chip::Compiler::compile().
[[nodiscard]] Result<Compiled> compile(const model::Model& model, const Options& numbers,
                                       const chip::CompileOptions& options);

/// As chip::Compiler::mapping().
[[nodiscard]] Result<std::vector<chip::CompiledOperator>> mapping(
    const model::Model& model, const Options& numbers, const chip::CompileOptions& options);

}  // namespace reef::rk3588
