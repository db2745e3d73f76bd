// The first look at a .tflite file: is it one, is it sound, and what does it hold that Reef's
// schema does not know.
#pragma once

#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::model {

struct Survey {
    /// Fields and union members beyond the schema, one clause each; at most a few are listed.
    std::vector<std::string> unknown;
};

/// After success the file may be read through the generated accessors: every offset has been
/// verified, and what the file stands for (a FlatBuffer may refer to one vector many times) is at
/// most a small multiple of its size. `file` starts at an address that is a multiple of 8.
[[nodiscard]] Result<Survey> survey_tflite(Bytes file);

/// The most bytes that a file of this size may stand for.
[[nodiscard]] std::uint64_t expansion_limit(std::size_t file_size);

}  // namespace reef::model
