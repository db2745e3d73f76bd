// The halo of a tensor: constants outside the image, then what neighbouring tiles own, over the
// mesh. Rows first, then columns over the whole height of the window. What comes from further than
// the neighbour goes through the windows of the tiles between.
#include <algorithm>

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t side = grid;

/// Words of an area in a tile's window.
LoopNest words_of(const Tensor& t, unsigned tile, const Area& area) {
    const std::uint32_t row = count(area.columns.size()) * t.words();
    const std::int32_t base = t.address(tile, area.rows.begin, area.columns.begin) / 4;
    if (area.rows.size() == 1) return nest(4, base, {{1, row}});
    return nest(
        4, base,
        {{1, row}, {static_cast<std::int32_t>(t.pitch(tile) / 4), count(area.rows.size())}});
}

unsigned dimensions_of(const Area& area) {
    return area.rows.size() == 1 ? 1 : 2;
}

/// One phase: data move one way, in hops.
struct Way {
    program::Direction to;
    std::int32_t step;  ///< from a tile to the one that its halo comes from
    bool rows;          ///< whether rows of the halo move, else columns
};
constexpr Way ways[] = {{program::Direction::north, side, true},
                        {program::Direction::south, -side, true},
                        {program::Direction::west, 1, false},
                        {program::Direction::east, -1, false}};

std::optional<unsigned> neighbour(unsigned tile, std::int32_t steps, const Way& way) {
    const std::int32_t at = static_cast<std::int32_t>(tile) + steps * way.step;
    if (at < 0 || at >= static_cast<std::int32_t>(all_tiles)) return std::nullopt;
    if (!way.rows && at / side != static_cast<std::int32_t>(tile) / side) return std::nullopt;
    return static_cast<unsigned>(at);
}

Span inside(const Span& s, std::int32_t size) {
    return {std::max(s.begin, 0), std::min(s.end, size)};
}

/// What the tile wants of the image on one side of what it owns.
std::optional<Area> wanted(const Tensor& t, unsigned tile, const Way& way) {
    const Area own = t.own(tile), window = t.window(tile);
    const bool behind = way.step > 0;
    Area area;
    if (way.rows) {
        if (own.columns.empty()) return std::nullopt;
        area = {inside(behind ? Span{own.rows.end, window.rows.end}
                              : Span{window.rows.begin, own.rows.begin},
                       t.height),
                own.columns};
    } else {
        area = {inside(window.rows, t.height),
                inside(behind ? Span{own.columns.end, window.columns.end}
                              : Span{window.columns.begin, own.columns.begin},
                       t.width)};
    }
    if (area.empty()) return std::nullopt;
    return area;
}

/// The part of it that the tile so many steps away owns.
std::optional<Area> part_from(const Tensor& t, unsigned tile, std::int32_t steps, const Way& way) {
    auto area = wanted(t, tile, way);
    const auto owner = neighbour(tile, steps, way);
    if (!area || !owner) return std::nullopt;
    const Area own = t.own(*owner);
    Span& moved = way.rows ? area->rows : area->columns;
    const Span& limit = way.rows ? own.rows : own.columns;
    moved = {std::max(moved.begin, limit.begin), std::min(moved.end, limit.end)};
    if (moved.empty()) return std::nullopt;
    return area;
}

bool anyone_wants(const Tensor& t, std::int32_t steps, const Way& way) {
    for (unsigned tile = 0; tile < all_tiles; ++tile)
        if (part_from(t, tile, steps, way)) return true;
    return false;
}

/// A tile gives its neighbour what that wants from `steps` away, and takes its own.
std::optional<program::Mesh> link(const Tensor& t, unsigned tile, std::int32_t steps,
                                  const Way& way) {
    const auto taker = neighbour(tile, -1, way);
    const auto given = taker ? part_from(t, *taker, steps, way) : std::nullopt;
    const auto taken = part_from(t, tile, steps, way);
    if (!given && !taken) return std::nullopt;
    program::Mesh op;
    op.to = way.to;
    op.src = given ? words_of(t, tile, *given) : nest(4, 0, {});
    op.dst = taken ? words_of(t, tile, *taken) : nest(4, 0, {});
    if (taken) op.in = signal_at(dimensions_of(*taken));
    return op;
}

std::optional<program::Mesh> fill(const Tensor& t, unsigned tile, const Area& area) {
    if (area.empty()) return std::nullopt;
    program::Mesh op;
    op.to = program::Direction::north;
    op.src = nest(4, 0, {});
    op.dst = words_of(t, tile, area);
    op.in = signal_at(dimensions_of(area));
    op.fills = true;
    op.fill_value = static_cast<std::uint32_t>(t.border) * 0x01010101U;
    return op;
}

/// Above, below, left and right of the image. Whole rows of the window first.
Area outside(const Tensor& t, unsigned tile, int where) {
    const Area w = t.window(tile);
    switch (where) {
        case 0:
            return {{w.rows.begin, std::min(0, w.rows.end)}, w.columns};
        case 1:
            return {{std::max(t.height, w.rows.begin), w.rows.end}, w.columns};
        case 2:
            return {inside(w.rows, t.height), {w.columns.begin, std::min(0, w.columns.end)}};
        default:
            return {inside(w.rows, t.height), {std::max(t.width, w.columns.begin), w.columns.end}};
    }
}

/// Pixels outside the image that repeat its edge: copies of one row or column.
std::optional<program::Tensor> repeat(const Tensor& t, unsigned tile, const Area& area,
                                      std::int32_t y, std::int32_t x, bool of_row) {
    if (area.empty()) return std::nullopt;
    const auto h = count(area.rows.size()), w = count(area.columns.size());
    const auto pixel = static_cast<std::int32_t>(t.pixel_bytes());
    const auto pitch = static_cast<std::int32_t>(t.pitch(tile));
    const std::uint32_t words = t.words() * h * w;
    program::Tensor op = word_copy();
    op.loops = loops({words});
    op.in = nest(8, t.address(tile, y, x),
                 {{4, t.words()}, {of_row ? pixel : 0, w}, {of_row ? 0 : pitch, h}});
    op.out = nest(8, t.address(tile, area.rows.begin, area.columns.begin),
                  {{4, t.words()}, {pixel, w}, {pitch, h}});
    op.par = nest(8, 4 * identity_row, {{0, words}});
    op.acc = rotating(nest(8, 0, {{0, words}}), 0, 4);
    op.group_level = 1;
    op.avdata = signal_at(3);
    return op;
}

void repeat_edges(Emission& e, const Tensor& t) {
    e.code.fence();
    for (int where = 0; where < 4; ++where) {
        e.code.by_class([&](unsigned tile) -> std::optional<program::Tensor> {
            const Area w = t.window(tile);
            Area area = outside(t, tile, where);
            if (where < 2) {
                area.columns = inside(w.columns, t.width);
                return repeat(t, tile, area, where == 0 ? 0 : t.height - 1, area.columns.begin,
                              true);
            }
            area.rows = w.rows;
            return repeat(t, tile, area, w.rows.begin, where == 2 ? 0 : t.width - 1, false);
        });
        e.code.fence();
    }
}

}  // namespace

namespace {

bool in_one_hop(const Tensor& t) {
    for (const Way& way : ways)
        for (std::int32_t steps = 2; steps < side; ++steps)
            if (anyone_wants(t, steps, way)) return false;
    return true;
}

/// Whether all of the tensor on the tiles comes from tensor instructions, and their events, and
/// those of the mesh, are few enough to be waited for.
bool can_follow(const Emission& e, const Step& step, const Tensor& t) {
    if (std::holds_alternative<FetchStep>(step.kind)) return false;
    const auto* copy = std::get_if<CopyStep>(&step.kind);
    if (t.repeats_border || !in_one_hop(t) || (copy != nullptr && copy->filled_words > 0))
        return false;
    constexpr std::uint64_t most_events = 16384;
    for (unsigned tile = 0; tile < all_tiles; ++tile)
        if (e.code.avdata_events(tile) > most_events) return false;
    return true;
}

unsigned counter_of(program::Direction to) {
    switch (to) {
        case program::Direction::north:
            return counter::MESH_SOUTH_IN_;
        case program::Direction::south:
            return counter::MESH_NORTH_IN_;
        case program::Direction::west:
            return counter::MESH_EAST_IN_;
        default:
            return counter::MESH_WEST_IN_;
    }
}

/// A transfer that waits for what it sends: what the tile computed and, of columns, the rows that
/// it got.
std::optional<program::Mesh> waiting_link(const Emission& e, const Tensor& t, unsigned tile,
                                          const Way& way) {
    auto op = link(t, tile, 1, way);
    const auto taker = neighbour(tile, -1, way);
    const auto given = taker ? part_from(t, *taker, 1, way) : std::nullopt;
    if (!op || !given) return op;
    const unsigned level = dimensions_of(*given);
    std::size_t waits = 0;
    const auto wait = [&](unsigned which, std::uint64_t events) {
        if (events != 0)
            op->wait[waits++] = wait_for(which, level, static_cast<std::int32_t>(events), 0);
    };
    wait(counter::AVDATA_, e.code.avdata_events(tile));
    if (!way.rows)
        for (const auto to : {program::Direction::south, program::Direction::north})
            wait(counter_of(to), e.code.received_events(tile, to));
    return op;
}

}  // namespace

void emit_halo_of(Emission& e, const Step& step, std::size_t number) {
    const TensorId id = step.out;
    const Tensor& t = e.tensor(id);
    if (!e.plan.improvements.halo || e.last_writer[id] != number || !e.halo_read[id] ||
        !t.has_halo() || e.bordered[id])
        return;
    if (!can_follow(e, step, t)) return;
    e.bordered[id] = true;
    for (int where = 0; where < 4; ++where)
        e.code.by_class([&](unsigned tile) { return fill(t, tile, outside(t, tile, where)); });
    for (const Way& way : ways)
        e.code.by_class([&](unsigned tile) { return waiting_link(e, t, tile, way); });
}

void emit_halo(Emission& e, TensorId id) {
    const Tensor& t = e.tensor(id);
    for (int where = 0; where < 4; ++where)
        e.code.by_class([&](unsigned tile) { return fill(t, tile, outside(t, tile, where)); });
    e.code.fence();
    for (const Way& way : ways) {
        if (way.to == program::Direction::west) e.code.fence();
        for (std::int32_t steps = 1; steps < side; ++steps) {
            if (!anyone_wants(t, steps, way)) continue;
            if (steps > 1) e.code.fence();
            e.code.by_class([&](unsigned tile) { return link(t, tile, steps, way); });
        }
    }
    if (t.repeats_border) repeat_edges(e, t);
    e.code.full_stop();
}

}  // namespace reef::edgetpu::lowering
