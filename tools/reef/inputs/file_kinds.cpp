#include "inputs/file_kinds.h"

#include <fmt/format.h>

namespace reef::tool {

Status refuse_empty(Bytes file) {
    if (!file.empty()) return {};
    return fail(Cause::bad_input, "the file is empty");
}

Status refuse_unless_tflite(Bytes file, std::vector<std::string> known) {
    if (is_tflite(file)) return {};
    REEF_CHECK(refuse_empty(file));
    known.insert(known.begin(), "TFLite model");
    return fail(Cause::bad_input, "a file of a kind that is not known", {},
                fmt::format("kinds that are known: {}", runtime::in_a_row(known)));
}

}  // namespace reef::tool
