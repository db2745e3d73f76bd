// Reef's own compiler for the Edge TPU: from a plain quantised model to one with programs.
//
// In memory, without state: any number may run at once. Programs give the bytes of arithmetic() and
// pass check_program() and check_synchronisation() before they are given out. None of them has run
// on a chip yet: docs/edgetpu-compiler.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reef/base/result.h"
#include "reef/chip/compiler.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

using chip::CompileOptions;

/// A tensor that lies in the host's scratch memory while no step touches it.
struct SpilledTensor {
    std::string name;
    std::size_t bytes = 0;    ///< sent there once
    std::size_t fetches = 0;  ///< as often all of it comes back
};

/// What one program takes of the chip.
struct CompiledProgram {
    std::size_t operators = 0;
    std::size_t cached_bytes = 0;     ///< parameters that stay on the chip
    std::size_t remaining_bytes = 0;  ///< of its parameter memory, below the rows that layers use
    std::size_t streamed_bytes = 0;   ///< parameters that come with every inference
    std::size_t narrow_bytes = 0;     ///< of every tile, for activations
    std::vector<SpilledTensor> spilled;
    std::size_t host_bytes = 0;  ///< of the host's scratch memory, for those
    std::size_t instruction_bytes = 0;
    std::uint64_t cycles = 0;  ///< estimated, of a run whose parameters are on the chip
    double seconds = 0;        ///< estimated, with transfers (reef/edgetpu/estimate.h)
};

/// Instructions of one form (their opcode with its modes, without numbers) that no known program of
/// the vendor has: where a chip could disagree with the simulator.
struct UnprovenForm {
    std::string part;  ///< what they are for: "halo", "input", "convolution", ...
    std::string form;
    std::string difference;  ///< to the least different form that is known
    std::string reason;      ///< why it is there all the same
    std::size_t count = 0;
};

struct Forms {
    std::size_t instructions = 0;  ///< of all programs
    std::size_t known = 0;         ///< of a form that a program of the vendor has
    std::vector<UnprovenForm> unproven;
};

struct Compiled {
    model::Model model;
    std::vector<chip::CompiledOperator> operators;
    std::vector<CompiledProgram> programs;
    /// Of all programs, estimated.
    [[nodiscard]] double seconds() const {
        double sum = 0;
        for (const CompiledProgram& program : programs) sum += program.seconds;
        return sum;
    }
    Forms forms;  ///< with CompileOptions::list_forms
    std::string listing;
};

/// Errors: as chip::Compiler::compile().
[[nodiscard]] Result<Compiled> compile(const model::Model& model, const CompileOptions& options);
/// The passes that make programs faster and may be left out, as CompileOptions::settings' "without"
/// names them, with commas between: "fuse", "spread", "ahead", "halo", "input".
[[nodiscard]] std::vector<std::string> improvements();
/// The estimate without one of them.
struct Gain {
    std::string without;        ///< empty: with all
    std::size_t operators = 0;  ///< on the chip
    std::uint64_t cycles = 0;
};
/// First with all of them, then without each, last without any. Errors: as compile().
[[nodiscard]] Result<std::vector<Gain>> gains_of(const model::Model& model,
                                                 const CompileOptions& options);
/// As chip::Compiler::compile_together(): the programs' parameters lie beside one another under one
/// caching token, those of the first models first; what does not fit is
/// streamed, or left to the CPU where a layer cannot be.
[[nodiscard]] Result<std::vector<Compiled>> compile_together(std::span<const model::Model> models,
                                                             const CompileOptions& options);
/// As chip::Compiler::mapping().
[[nodiscard]] Result<std::vector<chip::CompiledOperator>> mapping(const model::Model& model,
                                                                  const CompileOptions& options);
/// What CompileOptions::settings' "spill" may be, of tensors that lie on the host while no step
/// touches them. "never"; "needed", where a network fits neither whole nor in bands, which holds
/// without the setting, too; "faster", also in place of bands where the estimate is less; "always".
[[nodiscard]] std::vector<std::string> spillings();
/// What CompileOptions::settings' "runtime_version" may be: the oldest runtime of the vendor's that
/// takes the programs, "10" to "14". Without the setting the newest. What an older one is not known
/// to take is refused by name.
[[nodiscard]] std::vector<std::string> runtime_versions();
/// "read", "legalise", "partition", "tile", ...
[[nodiscard]] std::vector<std::string_view> compiler_passes();

}  // namespace reef::edgetpu
