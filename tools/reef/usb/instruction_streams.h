// The Edge TPU programs of a file: those of a compiled model, or a raw stream.
#pragma once

#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::tool {

struct Program {
    std::size_t executable = 0;       ///< its number in the file
    std::string type;                 ///< "EXECUTION_ONLY", ..., "raw" for a file that is a stream
    std::vector<Bytes> chunks;        ///< instruction streams that run one after the other
    std::vector<SharedBytes> owners;  ///< keep the chunks alive

    /// "raw", or "0-EXECUTION_ONLY"; with the chunk's number behind it when there are several.
    [[nodiscard]] std::string chunk_name(std::size_t chunk) const;
};

/// A file that is no TFLite model is taken as one raw stream.
/// Errors: a plain model, which has no programs; a broken package.
[[nodiscard]] Result<std::vector<Program>> programs_of(const SharedBytes& file);

/// Those that `which` names: a number, a type, or all when it is empty. Errors: there is none.
[[nodiscard]] Result<std::vector<Program>> select_programs(std::vector<Program> programs,
                                                           const std::string& which);

}  // namespace reef::tool
