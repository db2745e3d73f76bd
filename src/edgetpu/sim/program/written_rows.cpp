#include "written_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace reef::edgetpu::sim {
namespace {

using Range = std::pair<std::size_t, std::size_t>;

/// First and last row; nothing where they leave the memory.
std::optional<Range> rows_between(double first, double last) {
    if (first < 0 || first > last || last >= wide_rows) return std::nullopt;
    return Range(static_cast<std::size_t>(first), static_cast<std::size_t>(last));
}

/// Of a nest with `per_row` addresses to a row. A cropped pass leaves the address where a whole one
/// would: an address is the base and, of each dimension, the index times the stride. Addresses are
/// modulo 2^32 and strides modulo 2^64; where the bounds lie in the memory, so do all between them.
std::optional<Range> rows_of(const Nest& nest, double per_row) {
    const Strides strides = strides_of(nest);
    double first = nest.base, last = nest.base;
    const auto move = [&](double by) { (by < 0 ? first : last) += by; };
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        const bool is_cropped = nest.crop_level != 0 && d == nest.crop_dimension;
        const auto count = is_cropped ? std::max(nest.count[d], nest.crop_count) : nest.count[d];
        move(static_cast<double>(static_cast<std::int64_t>(strides[d])) * (count - 1.0));
    }
    if (nest.rotates()) move(nest.rotate_size);
    return first < 0 ? std::nullopt : rows_between(first / per_row, last / per_row);
}

}  // namespace

// Who leaves the memory stops the run, but what was sent before may not be there any more.
void WrittenRows::include(const std::optional<Range>& rows) {
    const auto [first, last] = rows.value_or(Range(0, wide_rows - 1));
    std::fill(written_.begin() + static_cast<std::ptrdiff_t>(first),
              written_.begin() + static_cast<std::ptrdiff_t>(last) + 1, true);
}

void WrittenRows::include(const Operation& operation) {
    constexpr double quarters = 4;
    if (const auto* receive = std::get_if<RingReceive>(&operation)) {
        include(rows_of(receive->dst, 1));
        const auto& head = receive->head;
        if (head.enabled) include(rows_between(head.base, head.last));
    } else if (const auto* copy = std::get_if<NarrowToWide>(&operation)) {
        include(rows_of(copy->dst, 1));
    } else if (const auto* op = std::get_if<TensorOp>(&operation)) {
        if (!op->acc_internal) include(rows_of(op->acc, quarters));
    }
}

bool WrittenRows::are_kept(const Nest& rows) const {
    const auto sent = rows_of(rows, 1);
    return sent && std::none_of(written_.begin() + static_cast<std::ptrdiff_t>(sent->first),
                                written_.begin() + static_cast<std::ptrdiff_t>(sent->second) + 1,
                                [](bool is_written) { return is_written; });
}

}  // namespace reef::edgetpu::sim
