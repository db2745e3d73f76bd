// Where the tables of two bmodels hold different values: every field that the schema has.
#pragma once

#include <string>
#include <vector>

#include "sophgo/bmodel/container.h"

namespace reef::sophgo {

/// What is different, and what each file has there: "-" for nothing.
struct Differing {
    std::string what, a, b;
};

/// Nets meet by their names, stages by their numbers, other tables by their place. A field that is
/// absent is equal to one with its default. Ranges of the binary section are left out: they are
/// compared with what lies in them.
[[nodiscard]] std::vector<Differing> table_differences(const Bmodel& a, const Bmodel& b);

}  // namespace reef::sophgo
