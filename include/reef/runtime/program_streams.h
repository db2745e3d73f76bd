// The chip programs of a file: those of a compiled model, or a raw stream.
#pragma once

#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/chip/disassembler.h"

namespace reef::runtime {

struct ProgramStreams {
    std::size_t executable = 0;       ///< its number in the file
    std::string type;                 ///< "EXECUTION_ONLY", ..., "raw" for a file that is a stream
    std::vector<Bytes> chunks;        ///< instruction streams that run one after the other
    std::vector<SharedBytes> owners;  ///< keep the chunks alive
    const chip::Disassembler* disassembler = nullptr;
    SharedBytes parameters = {};  ///< see chip::Program

    /// "raw", or "0-EXECUTION_ONLY"; with the chunk's number behind it when there are several.
    [[nodiscard]] std::string chunk_name(std::size_t chunk) const;
};

/// The one of that family of chips, or the first for an empty name. Errors: bad_argument.
[[nodiscard]] Result<const chip::Disassembler*> disassembler_of(const std::string& family);

/// A file that is no TFLite model is taken as one raw stream of a chip of `family`.
/// Errors: a plain model, which has no programs; a broken program.
[[nodiscard]] Result<std::vector<ProgramStreams>> program_streams_of(
    const SharedBytes& file, const std::string& family = {});

/// Those that `which` names: a number, a type, or all when it is empty. Errors:
/// bad_argument when there is none.
[[nodiscard]] Result<std::vector<ProgramStreams>> select_programs(
    std::vector<ProgramStreams> programs, const std::string& which);

}  // namespace reef::runtime
