// What a file is, by its bytes: a TFLite model, or of a kind that a chip's parts know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"

namespace reef::tool {

using model::is_tflite;

/// The part of that kind (chip::FileInspector, ...) that knows the file; null for models and for
/// files that nobody knows.
template <class Part>
[[nodiscard]] const Part* kind_of(Bytes file) {
    for (const Part* part : runtime::Registry::of_process().parts<Part>())
        if (part->recognises(file)) return part;
    return nullptr;
}

/// Of the parts of that kind: "one tape or other tape".
template <class Part>
[[nodiscard]] std::string known_kinds() {
    std::vector<std::string> known;
    for (const Part* part : runtime::Registry::of_process().parts<Part>())
        known.emplace_back(part->kind());
    return runtime::in_a_row(known, "or");
}

/// Errors: bad_input.
[[nodiscard]] Status refuse_empty(Bytes file);

[[nodiscard]] Status refuse_unless_tflite(Bytes file, std::vector<std::string> known);

/// Errors: bad_input for what is no TFLite model, with the kinds that parts of that kind know.
template <class Part>
[[nodiscard]] Status refuse_unknown_kind(Bytes file) {
    std::vector<std::string> known;
    for (const Part* part : runtime::Registry::of_process().parts<Part>())
        known.emplace_back(part->kind());
    return refuse_unless_tflite(file, std::move(known));
}

}  // namespace reef::tool
