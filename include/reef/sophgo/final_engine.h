// Reading, printing and cutting final.mlir: what needs MLIR's library. It is a module of its own,
// loaded when the first such file comes, so that nothing else pays for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

struct CutRequest {
    std::vector<std::string> at;  ///< names of tensors; they become the outputs, in this order
    /// Results of groups that nobody uses any more stay, each with a Reshape on its memory;
    /// without, they go, with their Store.
    bool keep_group_results = false;
    bool keep_coefficient_size = false;
    std::string weight_file;  ///< module.weight_file of the result; empty: as it was
};

struct Cut {
    std::string text;
    FinalProgram program;
    std::vector<std::string> weights;  ///< names that the result still reads
    std::vector<std::string> notes;    ///< what else was changed, a clause each
};

class FinalEngine {
  public:
    FinalEngine() = default;
    FinalEngine(const FinalEngine&) = delete;
    FinalEngine& operator=(const FinalEngine&) = delete;
    virtual ~FinalEngine() = default;

    /// Errors: bad_input with line and column; unsupported for modules that are in no state that
    /// has addresses, and for types that have no size here.
    [[nodiscard]] virtual Result<FinalProgram> read(std::string_view text) const = 0;
    /// The canonical print. Equal to `text` when that is one, but for results that are named.
    [[nodiscard]] virtual Result<std::string> print(std::string_view text) const = 0;
    /// Errors: bad_argument for names that no operator computes and for tensors inside a group,
    /// with the names that would do; unsupported for what cannot be cut safely, by name.
    [[nodiscard]] virtual Result<Cut> cut(std::string_view text,
                                          const CutRequest& request) const = 0;
};

/// The module beside the command or the library. Errors: unsupported when this build has none, with
/// what to install; io_failed when it cannot be loaded.
[[nodiscard]] Result<const FinalEngine*> final_engine();

}  // namespace reef::sophgo
