// What reef compile is asked for, and one model's compilation as it shows it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compile/against.h"
#include "compile/verification.h"
#include "outputs/console.h"
#include "outputs/json_output.h"
#include "reef/base/result.h"
#include "reef/chip/compiler.h"
#include "reef/model/graph.h"

namespace reef::tool {

struct CompileVerbOptions {
    std::vector<std::string> models;
    std::string target;
    std::string out;
    std::string against;
    std::string with;
    std::string report;
    chip::CompileOptions settings;
    std::size_t segments = 1;
    bool verify = false;
    OrderSeed random_seed{};  ///< given: of a verification, which it asks for
    bool no_verify = false;
    bool json = false;
    bool all = false;
};

[[nodiscard]] bool prints_pass(const CompileVerbOptions& options);

/// Errors also: bad_input for what a compiler made, whichever.
[[nodiscard]] Result<model::Model> load_plain(const std::string& path);

/// A report's name says its form. Errors: as those of compile_report().
[[nodiscard]] Status check_report(const CompileVerbOptions& options);

/// Errors: those of verifying. Unasked, there may be none, with the reason.
[[nodiscard]] Result<Proof> proof_of(const CompileVerbOptions& options,
                                     const chip::Compiler& compiler, const model::Model& plain,
                                     const chip::Compilation& done, const std::string& name);

/// Operators of one name and fate in one line, in the order in which they first come.
void print_operators(Console& console, const chip::Compilation& done, bool all);
void print_proof(Console& console, const Proof& proof);
[[nodiscard]] Json document_of(const CompileVerbOptions& options, const chip::Compiler& compiler,
                               const chip::Compilation& done, const Proof& proof,
                               const std::optional<Against>& against);

}  // namespace reef::tool
