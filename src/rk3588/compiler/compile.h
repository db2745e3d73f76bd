// From a plain model to one whose operators `reef-rk3588` hold programs for the RK3588.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/chip/compiler.h"
#include "rk3588/compiler/cost.h"
#include "rk3588/compiler/options.h"

namespace reef::rk3588 {

struct CompileOptions {
    Options numbers;
    /// Programs with operators of the CPU between them; 0: as many as there are.
    std::size_t most_programs = 0;
    std::string print_after{};
    std::function<void(std::string_view pass)> progress{};
    const std::atomic<bool>* cancelled = nullptr;
};

struct CompiledProgram {
    std::vector<OperatorReport> operators;
    std::size_t tasks = 0;
    std::size_t fused_sums = 0;  ///< that a convolution computes, too
    std::size_t activation_bytes = 0, constant_bytes = 0, command_bytes = 0;
};

struct Compiled {
    model::Model model;
    std::vector<chip::CompiledOperator> operators;
    std::vector<CompiledProgram> programs;
    std::vector<UnprovenForm> unproven;
    std::string listing;  ///< of print_after
};

[[nodiscard]] std::vector<std::string_view> compiler_passes();

/// Deterministic. Operators that the chip does not take stay, with the reason. Errors: bad_argument
/// for a model that is compiled already and an unknown pass; unsupported when nothing is left for
/// the chip; cancelled.
[[nodiscard]] Result<Compiled> compile(const model::Model& model, const CompileOptions& options);

/// A verdict for each operator of a plain model, from the predicates alone; `most_programs` as in
/// CompileOptions. Errors: bad_argument for a model that is compiled already.
[[nodiscard]] Result<std::vector<chip::CompiledOperator>> operators_of(const model::Model& model,
                                                                       const Options& options,
                                                                       std::size_t most_programs);

}  // namespace reef::rk3588
