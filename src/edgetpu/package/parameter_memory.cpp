#include "reef/edgetpu/parameter_memory.h"

#include <algorithm>
#include <array>
#include <bitset>

#include "edgetpu/isa/loop_nest.h"
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

const FieldGroup* find_group(const InstructionInfo& info, std::string_view name) {
    const auto found = std::ranges::find(info.groups, name, &FieldGroup::name);
    return found == info.groups.end() ? nullptr : &*found;
}

void mark_row(Rows& rows, std::uint64_t mask, std::uint64_t row) {
    if (row >= parameter_rows_per_tile) return;  // staging
    for (unsigned tile = 0; tile < tile_count; ++tile) {
        if ((mask >> tile & 1) != 0) rows.written[tile].set(static_cast<std::size_t>(row));
    }
}

/// The rows in front of each group. False when the instruction has no such fields.
bool mark_head(Rows& rows, const Instruction& instruction, std::uint64_t mask) {
    const auto enable = instruction.value("head.enable");
    const auto base = instruction.value("head.base");
    const auto last = instruction.value("head.last");
    if (!enable || !base || !last) return false;
    if (*enable == 0) return true;
    if (*base > *last) return true;
    rows.visits_left -= *last - *base + 1;
    if (rows.visits_left < 0) return false;
    for (std::int64_t row = *base; row <= *last; ++row) {
        mark_row(rows, mask, static_cast<std::uint64_t>(row));
    }
    return true;
}

/// Marks what one instruction writes. False for nests of more visits than there are rows, and when
/// the visits are used up.
bool mark(Rows& rows, const Instruction& instruction) {
    const FieldGroup* group = find_group(*instruction.info, "dst");
    const auto tiles = instruction.value("tiles");
    if (group == nullptr || !tiles) return false;
    const auto mask = static_cast<std::uint64_t>(*tiles);
    const LoopNest nest = read_loop_nest(instruction.bytes, *instruction.info, *group);
    std::uint64_t visits = 1;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        visits *= nest.limits[d] + 1;
        if (visits > parameter_rows_per_tile) return false;
    }
    rows.visits_left -= static_cast<std::int64_t>(visits);
    if (rows.visits_left < 0) return false;
    for (std::uint64_t visit = 0; visit < visits; ++visit) {
        std::uint64_t row = nest.base;
        std::uint64_t rest = visit;
        for (unsigned d = 0; d < nest.dimensions; ++d) {
            row += nest.strides[d] * (rest % (nest.limits[d] + 1));
            rest /= nest.limits[d] + 1;
        }
        mark_row(rows, mask, row);
    }
    return mark_head(rows, instruction, mask);
}

}  // namespace

std::optional<ParameterRows> parameter_rows_of(const Executable& caching) {
    Rows rows;
    for (const InstructionBitstream& stream : caching.bitstreams) {
        InstructionCursor cursor(stream.instructions.view());
        while (const auto instruction = cursor.next()) {
            if (instruction->info == nullptr) return std::nullopt;
            const bool receives = instruction->info->name == "ring_receive_a" ||
                                  instruction->info->name == "ring_receive_b";
            if (receives && !mark(rows, *instruction)) return std::nullopt;
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
