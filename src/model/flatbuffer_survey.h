// A walk over a verified FlatBuffer along its schema: what it stands for, and what it holds that
// the schema does not know.
#pragma once

#include <flatbuffers/minireflect.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reef::model {

struct FlatbufferSurvey {
    /// Fields and union members beyond the schema, one clause each; at most a few are listed.
    std::vector<std::string> unknown;
    /// Bytes of vectors and strings, counted once for every reference to them.
    std::uint64_t payload_bytes = 0;
    /// A vector whose elements are off their alignment, if there is one.
    const std::uint8_t* misaligned = nullptr;
};

/// Precondition: the FlatBuffers verifier passed `root` as a table of `type`. Visits exactly what
/// the verifier visited, so that its limits on depth and number of tables hold here too. `name` is
/// the root's in clauses, such as "the model".
[[nodiscard]] FlatbufferSurvey survey_flatbuffer(const flatbuffers::Table& root,
                                                 const flatbuffers::TypeTable& type,
                                                 std::string_view name);

}  // namespace reef::model
