#include "text.h"

namespace reef::specgen {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

std::string cell(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

std::string_view grades_text() {
    return "Grades: **exact**: whole programs computed with this reading reproduce the source "
           "model's\narithmetic, and stop doing so when the field is changed. **fitted**: agrees "
           "with every known\nprogram, nothing fails without it. **inferred**: follows from the "
           "regular structure or from few\nprograms. **guess**: a plausible name for bits of "
           "unknown purpose.\n";
}

}  // namespace reef::specgen
