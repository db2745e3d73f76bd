#include "inputs/file_kinds.h"

#include <fmt/format.h>

namespace reef::tool {

Status refuse_unless_tflite(Bytes file, std::vector<std::string> known) {
    if (is_tflite(file)) return {};
    known.insert(known.begin(), "TFLite model");
    return fail(Cause::bad_input,
                file.empty() ? "the file is empty" : "a file of a kind that is not known", {},
                fmt::format("kinds that are known: {}", runtime::in_a_row(known)));
}

}  // namespace reef::tool
