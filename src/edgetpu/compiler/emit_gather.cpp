// Images that lie on several tiles, put together on each of some tiles, over ring A. Tiles whose
// parts are alike share the instructions of those that receive.
#include <algorithm>
#include <map>

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

/// Until counters, which have 16 bits and a sign, must begin anew.
constexpr std::int32_t most_words_of_gather = 32000;

/// Two slots for all rows of a part, where its last row is not full.
constexpr std::int32_t part_slots = spec::parameter_rows;
constexpr std::uint32_t most_rows_of_slot = (gather_row - part_slots) / 2;

constexpr std::uint32_t words_of_row = spec::row_bytes / spec::narrow_word_bytes;

/// Where tiles store an image: its first word, and words from one of its rows to the next.
struct Image {
    TileSet tiles = 0;
    std::int32_t base = 0, pitch = 0;
};

/// Parts of equal shape, at equal distances in the image: words, as loops.
struct Parts {
    std::vector<unsigned> from;     ///< the tiles, in the order of the outer loops
    std::vector<Dimension> inside;  ///< of a part in the image
    std::vector<Dimension> outside;
    std::int32_t first = 0;  ///< word of the image
    [[nodiscard]] std::uint32_t words() const {
        std::uint32_t n = 1;
        for (const Dimension& d : inside) n *= d.count;
        return n;
    }
    [[nodiscard]] std::uint32_t rows() const { return (words() + words_of_row - 1) / words_of_row; }
    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(from.size()); }
};

/// Rows or columns of the grid that own equally many pixels, at equal distances.
struct Alike {
    std::vector<unsigned> indices;
    std::int32_t first = 0, distance = 0, size = 0;
};

std::vector<Alike> alike(const Spans& own) {
    std::vector<Alike> out;
    for (unsigned i = 0; i < grid; ++i) {
        if (own[i].empty()) continue;
        const auto joins = [&](const Alike& a) {
            return a.size == own[i].size() &&
                   (a.indices.size() == 1 ||
                    own[i].begin - own[a.indices.back()].begin == a.distance);
        };
        const auto known = std::ranges::find_if(out, joins);
        if (known == out.end()) {
            out.push_back({{i}, own[i].begin, 0, own[i].size()});
            continue;
        }
        known->distance = own[i].begin - own[known->indices.back()].begin;
        known->indices.push_back(i);
    }
    return out;
}

std::vector<Parts> parts_by_pixel(const Tensor& in, const Image& to, const PixelWords& part) {
    std::vector<Parts> out;
    const auto words = static_cast<std::int32_t>(part.count);
    for (const Alike& rows : alike(in.own_rows))
        for (const Alike& columns : alike(in.own_columns)) {
            Parts& parts = out.emplace_back();
            for (const unsigned r : rows.indices)
                for (const unsigned c : columns.indices) parts.from.push_back(grid * r + c);
            if (part.count == in.words())
                parts.inside = {{1, count(columns.size * words)}, {to.pitch, count(rows.size)}};
            else
                parts.inside = {
                    {1, part.count}, {words, count(columns.size)}, {to.pitch, count(rows.size)}};
            parts.outside = {
                {columns.distance * words, static_cast<std::uint32_t>(columns.indices.size())},
                {rows.distance * to.pitch, static_cast<std::uint32_t>(rows.indices.size())}};
            parts.first = to.base + rows.first * to.pitch + columns.first * words;
        }
    return out;
}

/// The last tile may have fewer channels than the others.
std::vector<Parts> parts_by_channel(const Tensor& in, const Image& to) {
    std::vector<Parts> out;
    const std::uint32_t tiles = in.spread_tiles, share = in.words();
    const auto pixel = static_cast<std::int32_t>((in.all_channels + 3) / 4);
    const bool even = in.words_on(in.first_tile + tiles - 1) == share;
    for (const auto& [first, end] :
         {std::pair{0U, even ? tiles : tiles - 1}, std::pair{even ? tiles : tiles - 1, tiles}}) {
        if (first == end) continue;
        Parts& parts = out.emplace_back();
        for (unsigned t = first; t < end; ++t) parts.from.push_back(in.first_tile + t);
        parts.inside = {{1, in.words_on(in.first_tile + first)},
                        {pixel, count(in.width)},
                        {to.pitch, count(in.height)}};
        parts.outside = {{static_cast<std::int32_t>(share), end - first}};
        parts.first = to.base + static_cast<std::int32_t>(first * share);
    }
    return out;
}

/// A tile's part, word by word.
LoopNest words_of_part(const Tensor& in, unsigned t, const PixelWords& part) {
    const Area own = in.own(t);
    const std::int32_t base = in.address(t, own.rows.begin, own.columns.begin) / 4;
    const auto pitch = static_cast<std::int32_t>(in.pitch(t)) / 4;
    const std::uint32_t h = count(own.rows.size()), w = count(own.columns.size());
    if (in.layout == Layout::channels)
        return nest(6, base,
                    {{1, in.words_on(t)}, {static_cast<std::int32_t>(in.words()), w}, {pitch, h}});
    if (part.count == in.words()) return nest(6, base, {{1, w * in.words()}, {pitch, h}});
    return nest(6, base + static_cast<std::int32_t>(part.first),
                {{1, part.count}, {static_cast<std::int32_t>(in.words()), w}, {pitch, h}});
}

/// Level of a rotation of which each row is a group of its own, as in the vendor's programs, or all
/// are one, which lie in one place.
unsigned slot_level(const Emission& e) {
    return e.code.prefers_known_forms() ? 0 : 1;
}

class GatherWriter {
  public:
    GatherWriter(Emission& e, const Tensor& in, const Image& to, const PixelWords& part)
        : e_(e), in_(in), to_(to), part_(part) {}

    void run() {
        const auto all = in_.layout == Layout::channels ? parts_by_channel(in_, to_)
                                                        : parts_by_pixel(in_, to_, part_);
        for (const Parts& parts : all) {
            if (fits_together(parts)) {
                add(parts);
                continue;
            }
            for (std::uint32_t i = 0; i < parts.count(); ++i) add(single(parts, i));
        }
        e_.code.full_stop();
    }

  private:
    static bool rows_are_full(const Parts& parts) {
        return parts.count() == 1 || parts.words() % words_of_row == 0;
    }
    /// The vendor has an instruction for each tile's part.
    [[nodiscard]] bool fits_together(const Parts& parts) const {
        return !(e_.code.prefers_known_forms() && parts.count() > 1) &&
               (rows_are_full(parts) || parts.rows() <= most_rows_of_slot) &&
               std::int64_t{parts.words()} * parts.count() <= most_words_of_gather;
    }
    static Parts single(const Parts& parts, std::uint32_t i) {
        Parts one{{parts.from[i]}, parts.inside, {}, parts.first};
        for (std::uint32_t rest = i; const Dimension& d : parts.outside) {
            one.first += static_cast<std::int32_t>(rest % d.count) * d.stride;
            rest /= d.count;
        }
        return one;
    }

    void add(const Parts& parts) {
        const auto words = static_cast<std::int32_t>(parts.words() * parts.count());
        if (words_ + words > most_words_of_gather && words_ != 0) {
            e_.code.full_stop();
            words_ = events_ = 0;
        }
        receive(parts);
        for (const unsigned t : parts.from) send(parts, t);
        TileSet from = 0;
        for (const unsigned t : parts.from) from = static_cast<TileSet>(from | 1U << t);
        e_.code.by_class([&](unsigned t) { return take_up(t, parts); }, from);
        words_ += words;
    }

    void receive(const Parts& parts) {
        const bool full = rows_are_full(parts);
        const std::uint32_t rows = parts.rows();
        const LoopNest slots =
            full ? rotating(nest(4, gather_row, {{0, rows * parts.count()}}), slot_level_, 1)
                 : rotating(nest(4, part_slots, {{1, rows}, {0, parts.count()}}), 1,
                            static_cast<std::int32_t>(rows));
        const unsigned level = full ? 0 : 1;
        program::WideToNarrow store;
        store.src = slots;
        auto places = parts.inside;
        places.insert(places.end(), parts.outside.begin(), parts.outside.end());
        store.dst = nest(6, parts.first, places);
        store.written = signal_at(0);
        store.wait[0] = wait_for(counter::RING_READ_A_, level, events_ + 1, 1);
        store.row_level = static_cast<unsigned>(parts.inside.size());
        e_.code.tile(to_.tiles, store);
        program::RingReceive take;
        take.ring = program::Ring::a;
        take.dst = slots;
        take.ring_read = signal_at(level);
        take.wait[0] = room_for(counter::WIDE_TO_NARROW_, level, words_,
                                static_cast<std::int32_t>(full ? words_of_row : parts.words()));
        e_.code.tile(to_.tiles, take);
        events_ += static_cast<std::int32_t>(full ? rows * parts.count() : parts.count());
    }

    void send(const Parts& parts, unsigned t) {
        program::RingSend op;
        op.src = rotating(nest(4, gather_source_row, {{1, 1}, {0, parts.rows()}}), 1, 1);
        op.ring_write = signal_at(1);
        op.producer = signal_at(2);
        op.wait[0] = wait_for(counter::RING_PRODUCER_A_, 2, e_.next_message_a(), 1);
        op.wait[1] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
        op.to_tiles = to_.tiles;
        e_.code.tile(static_cast<TileSet>(1U << t), op);
        ++e_.messages_a;
    }

    [[nodiscard]] std::optional<program::NarrowToWide> take_up(unsigned t,
                                                               const Parts& parts) const {
        program::NarrowToWide op;
        op.src = words_of_part(in_, t, part_);
        op.dst = rotating(nest(4, gather_source_row, {{0, parts.rows()}}), 0, 1);
        op.written = signal_at(0);
        op.wait[0] = room_for(counter::RING_WRITE_, 0, -1, 1);
        op.row_level = static_cast<unsigned>(parts.inside.size());
        return op;
    }

    Emission& e_;
    const Tensor& in_;
    Image to_;
    PixelWords part_;
    unsigned slot_level_ = slot_level(e_);
    std::int32_t words_ = 0, events_ = 0;  ///< since the last full stop
};

}  // namespace

void emit_gather(Emission& e, const Tensor& in, TileSet to, std::uint32_t base,
                 const PixelWords& part) {
    const auto row = in.width * static_cast<std::int32_t>(part.count);
    GatherWriter(e, in, {to, static_cast<std::int32_t>(base / 4), row}, part).run();
}

void emit(Emission& e, const Step& step, const GatherStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    if (in.layout == Layout::pixels && in.height * in.width == 1) {
        const std::uint32_t words = in.words();
        emit_broadcast(e, 0, kind.to, nest(6, in.address(0, 0, 0) / 4, {{1, words}}),
                       nest(6, out.address(0, 0, 0) / 4, {{1, words}}),
                       (words + words_of_row - 1) / words_of_row);
        return;
    }
    GatherWriter(e, in,
                 {kind.to, (out.address(0, 0, 0) + step.first_channel) / 4,
                  static_cast<std::int32_t>(out.pitch(0)) / 4},
                 {0, in.words()})
        .run();
}

void emit_broadcast(Emission& e, unsigned from, TileSet to, const LoopNest& source,
                    const LoopNest& target, std::uint32_t rows) {
    program::WideToNarrow store;
    store.src = rotating(nest(4, gather_row, {{0, rows}}), slot_level(e), 1);
    store.dst = target;
    store.written = signal_at(0);
    store.wait[0] = wait_for(counter::RING_READ_A_, 0, 1, 1);
    store.row_level = 1;
    e.code.tile(to, store);
    program::RingReceive take;
    take.ring = program::Ring::a;
    take.dst = store.src;
    take.ring_read = signal_at(0);
    take.wait[0] = room_for(counter::WIDE_TO_NARROW_, 0, 0, 64);
    e.code.tile(to, take);
    program::RingSend send;
    send.src = rotating(nest(4, gather_source_row, {{1, 1}, {0, rows}}), 1, 1);
    send.ring_write = signal_at(1);
    send.producer = signal_at(2);
    send.wait[0] = wait_for(counter::RING_PRODUCER_A_, 2, e.next_message_a(), 1);
    send.wait[1] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
    send.to_tiles = to;
    e.code.tile(static_cast<TileSet>(1U << from), send);
    ++e.messages_a;
    program::NarrowToWide load;
    load.src = source;
    load.dst = rotating(nest(4, gather_source_row, {{0, rows}}), 0, 1);
    load.written = signal_at(0);
    load.wait[0] = room_for(counter::RING_WRITE_, 0, -1, 1);
    load.row_level = 1;
    e.code.tile(static_cast<TileSet>(1U << from), load);
}

}  // namespace reef::edgetpu::lowering
