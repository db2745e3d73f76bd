#include "reef/edgetpu/parameter_memory.h"

#include <algorithm>
#include <array>
#include <bitset>

#include "edgetpu/program/codec.h"
#include "reef/edgetpu/isa.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {

static_assert(tile_count == spec::tile_count && row_bytes == spec::row_bytes &&
              parameter_rows_per_tile == spec::parameter_rows);

namespace {

/// The rows of each tile that were written.
struct Rows {
    ParameterRows written;
    /// Bounds the time for programs that write the same rows again and again.
    std::int64_t visits_left = std::int64_t{16} * tile_count * parameter_rows_per_tile;

    [[nodiscard]] std::int64_t count() const {
        std::int64_t sum = 0;
        for (const auto& tile : written) sum += static_cast<std::int64_t>(tile.count());
        return sum;
    }
};

void mark_row(Rows& rows, std::uint64_t mask, std::uint64_t row) {
    if (row >= parameter_rows_per_tile) return;  // staging
    for (unsigned tile = 0; tile < tile_count; ++tile) {
        if ((mask >> tile & 1) != 0) rows.written[tile].set(static_cast<std::size_t>(row));
    }
}

/// The rows in front of each group. False when the visits are used up.
bool mark_head(Rows& rows, const program::RingReceive& receive) {
    const auto& head = receive.head;
    if (!head.enabled || head.base > head.last) return true;
    rows.visits_left -= head.last - head.base + 1;
    if (rows.visits_left < 0) return false;
    for (std::int32_t row = head.base; row <= head.last; ++row)
        mark_row(rows, receive.work.tiles, static_cast<std::uint64_t>(row));
    return true;
}

/// Marks what one instruction writes. False for nests of more visits than there are rows, and when
/// the visits are used up.
bool mark(Rows& rows, const program::RingReceive& receive) {
    const LoopNest& nest = receive.dst;
    const Strides strides = strides_of(nest);
    const std::uint64_t visits = nest.visits_below(nest.dimensions);
    if (visits > parameter_rows_per_tile) return false;
    rows.visits_left -= static_cast<std::int64_t>(visits);
    if (rows.visits_left < 0) return false;
    for (std::uint64_t visit = 0; visit < visits; ++visit) {
        auto row = static_cast<std::uint64_t>(nest.base);
        std::uint64_t rest = visit;
        for (unsigned d = 0; d < nest.dimensions; ++d) {
            row += strides[d] * (rest % nest.count[d]);
            rest /= nest.count[d];
        }
        mark_row(rows, receive.work.tiles, row);
    }
    return mark_head(rows, receive);
}

}  // namespace

std::optional<ParameterRows> parameter_rows_of(const Executable& caching) {
    Rows rows;
    for (const InstructionBitstream& stream : caching.bitstreams) {
        InstructionCursor cursor(stream.instructions.view());
        while (const auto instruction = cursor.next()) {
            if (instruction->info == nullptr) return std::nullopt;
            const auto kind = instruction->info - spec::instructions;
            if (kind != spec::op::ring_receive_a && kind != spec::op::ring_receive_b) continue;
            const auto typed = program::decode(*instruction);
            if (!mark(rows, std::get<program::RingReceive>(typed.operation))) return std::nullopt;
        }
    }
    return rows.written;
}

bool overlap(const ParameterRows& a, const ParameterRows& b) {
    for (unsigned tile = 0; tile < tile_count; ++tile)
        if ((a[tile] & b[tile]).any()) return true;
    return false;
}

ParameterMemory parameter_memory_of(const Package& package) {
    ParameterMemory memory;
    Rows rows;
    bool followed = true;
    for (const Executable& executable : package.executables) {
        const auto size = static_cast<std::int64_t>(executable.parameters.size());
        if (executable.type != ExecutableType::parameter_caching) {
            memory.streamed_bytes += size;
            continue;
        }
        memory.cached_bytes += size;
        const auto written = parameter_rows_of(executable);
        followed = followed && written.has_value();
        if (!written) continue;
        for (unsigned tile = 0; tile < tile_count; ++tile) rows.written[tile] |= (*written)[tile];
    }
    if (followed) memory.occupied_bytes = rows.count() * row_bytes;
    return memory;
}

}  // namespace reef::edgetpu
