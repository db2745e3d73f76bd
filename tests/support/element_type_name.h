// Tests by element type are called by its name.
#pragma once

#include <ostream>

#include "reef/base/element_type.h"

namespace reef {

inline void PrintTo(ElementType type, std::ostream* out) {
    *out << name_of(type);
}

}  // namespace reef
