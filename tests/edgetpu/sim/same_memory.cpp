#include "same_memory.h"

#include <algorithm>
#include <iterator>

namespace reef::edgetpu::sim {

::testing::AssertionResult same_memory(const Tile& a, const Tile& b) {
    if (a.memory.narrow != b.memory.narrow) {
        const auto at = std::ranges::mismatch(a.memory.narrow, b.memory.narrow).in1;
        return ::testing::AssertionFailure()
               << "narrow byte " << at - a.memory.narrow.begin() << " differs";
    }
    for (std::size_t row = 0; row < wide_rows; ++row) {
        if (a.memory.wide[row] != b.memory.wide[row])
            return ::testing::AssertionFailure() << "wide row " << row << " differs";
        if (a.memory.row_length[row] != b.memory.row_length[row])
            return ::testing::AssertionFailure() << "length of wide row " << row << " differs";
        if (a.memory.full[row] != b.memory.full[row])
            return ::testing::AssertionFailure() << "full mark of wide row " << row << " differs";
    }
    if (a.memory.scaling != b.memory.scaling)
        return ::testing::AssertionFailure() << "scaling memory differs";
    for (unsigned c = 0; c < std::size(spec::tile_counter_values); ++c)
        if (a.counters[c] != b.counters[c])
            return ::testing::AssertionFailure() << spec::tile_counter_values[c].name << " is "
                                                 << a.counters[c] << " and " << b.counters[c];
    return ::testing::AssertionSuccess();
}

}  // namespace reef::edgetpu::sim
