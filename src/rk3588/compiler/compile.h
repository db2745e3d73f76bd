// From a plain model to one whose operators `reef-rk3588` hold programs for the RK3588.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/chip/compiler.h"
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

/// Bytes that the chip reads and writes in one inference, as its registers say.
struct BytesMoved {
    std::uint64_t features = 0, weights = 0, operands = 0, commands = 0, results = 0;
    [[nodiscard]] std::uint64_t total() const {
        return features + weights + operands + commands + results;
    }
};

/// An operator on the chip.
struct OperatorReport {
    std::size_t index = 0;  ///< in the plain model
    std::string name;
    std::size_t tasks = 0;
    std::int32_t data_banks = 0, weight_banks = 0;  ///< 0: it does not use the CBUF
    std::uint64_t macs = 0;
    BytesMoved bytes;
    std::uint64_t cycles = 0;     ///< estimated, of one core
    double worst_gain_error = 0;  ///< of a channel's constants, relative
};

struct CompiledProgram {
    std::vector<OperatorReport> operators;
    std::size_t tasks = 0;
    std::size_t activation_bytes = 0, constant_bytes = 0, command_bytes = 0;
};

/// A form that the program uses and that no stream of a real RK3588 has shown in int8.
struct UnprovenForm {
    std::string what;
    std::size_t operators = 0;
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
