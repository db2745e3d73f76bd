#include "inputs/standard_input.h"

#include <algorithm>

namespace reef::tool {

bool is_standard_input(std::string_view text) {
    return text == "-" || text.ends_with("=-") || text.ends_with("=@-");
}

Status check_read_once(const std::vector<std::string>& texts) {
    if (std::ranges::count_if(texts, is_standard_input) < 2) return {};
    return fail(Cause::bad_argument, "standard input can be read once", {},
                "name files, all but one");
}

}  // namespace reef::tool
