// What comes from the host and goes to it.
#include <algorithm>
#include <set>

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int64_t host_unit = spec::activation_unit_bytes;
/// Rows that a tile receives before it copies them to narrow memory. In the vendor's programs it is
/// one.
constexpr std::int32_t most_slot_rows = 4;
constexpr std::int32_t slots_row = top_row - 2 - 2 * most_slot_rows;
constexpr std::int32_t row_words = spec::row_bytes / spec::narrow_word_bytes;
constexpr std::int32_t words_of_unit = spec::activation_unit_bytes / spec::narrow_word_bytes;

/// That one instruction receives.
constexpr std::int64_t most_units = (1 << 16) / words_of_unit;

/// Counters have 16 bits and a sign.
constexpr std::int32_t most_awaited_words = 32000;

/// Among the words for constants, which nothing reads any more.
constexpr std::int32_t unused_word = 20;

std::int64_t up(std::int64_t n, std::int64_t d) {
    return (n + d - 1) / d;
}

/// A bit for each tile of a row of the grid.
constexpr TileSet row_of_tiles(unsigned row) {
    return static_cast<TileSet>(((1U << grid) - 1) << grid * row);
}

/// Units [begin, end) of the input that a row of the grid wants.
struct Units {
    std::int64_t begin = 0, end = 0;
};

class InputWriter {
  public:
    InputWriter(Emission& e, const Step& step)
        : e_(e),
          tensor_(e.tensor(step.out)),
          strip_(step.scratch->base),
          slot_rows_(e.code.prefers_known_forms() ? 1 : most_slot_rows) {
        row_bytes_ = std::int64_t{tensor_.width} * tensor_.channels;
        units_ = tensor_.input_bytes() / host_unit;
        for (unsigned r = 0; r < grid; ++r) {
            const Span& own = tensor_.own_rows[r];
            if (own.empty()) continue;
            wanted_[r] = {own.begin * row_bytes_ / host_unit, up(own.end * row_bytes_, host_unit)};
        }
    }

    void run() {
        ask_for_input(e_, tensor_);
        std::set<std::int64_t> cuts{0, units_};
        for (const auto& w : wanted_)
            if (w) cuts.insert({w->begin, w->end});
        for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
            if (*std::next(cut) - *cut > most_units) cuts.insert(*cut + most_units);
        for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
            pass_on({*cut, *std::next(cut)});
        follows_ = e_.plan.improvements.input && std::ranges::max(words_) <= most_awaited_words;
        if (!follows_) e_.code.full_stop();
        const std::int32_t words =
            tensor_.channels % 4 == 0 ? 1 : static_cast<std::int32_t>(tensor_.words());
        for (std::int32_t w = 0; w < words; ++w)
            e_.code.by_class([&](unsigned t) { return into_window(t, w); });
    }

  private:
    /// Each unit is sent once, to all rows of the grid that want it.
    void pass_on(const Units& part) {
        TileSet tiles = 0;
        const std::int64_t words = (part.end - part.begin) * words_of_unit;
        const auto rows = static_cast<std::uint32_t>(up(words, row_words));
        LoopNest slots =
            nest(4, slots_row,
                 {{1, count(slot_rows_)}, {0, static_cast<std::uint32_t>(up(rows, slot_rows_))}});
        if (const std::uint32_t last = rows % count(slot_rows_); last != 0) {
            slots.crop_level = 1;
            slots.crop_count = last;
            slots.crop_left_out = count(slot_rows_) - last;
        }
        slots = rotating(slots, 1, slot_rows_);
        for (unsigned r = 0; r < grid; ++r) {
            if (!wanted_[r] || wanted_[r]->begin > part.begin || part.end > wanted_[r]->end)
                continue;
            const auto set = row_of_tiles(r);
            tiles = static_cast<TileSet>(tiles | set);
            const auto at =
                static_cast<std::int32_t>(strip_ / 4) +
                static_cast<std::int32_t>(part.begin - wanted_[r]->begin) * words_of_unit;
            receive(r, set, nest(6, at, {{1, static_cast<std::uint32_t>(words)}}), 0, slots);
        }
        if (tiles == 0) tiles = throw_away(part, rows, slots);
        e_.code.scalar(push_of_input(part.begin, part.end - part.begin, tiles));
    }

    /// Rows of other bands: a word of each, all over one, and the rest of the row is dropped.
    TileSet throw_away(const Units& part, std::uint32_t rows, const LoopNest& slots) {
        unsigned row = 0;
        while (!wanted_[row] || wanted_[row]->begin < part.end) ++row;
        const auto set = row_of_tiles(row);
        receive(row, set, nest(6, unused_word, {{0, 1}, {0, rows}}), 1, slots);
        return set;
    }

    /// An event comes with every pass of what is stored from `level` on.
    void receive(unsigned row, TileSet tiles, const LoopNest& to, unsigned level,
                 const LoopNest& slots) {
        program::WideToNarrow store;
        store.src = slots;
        store.dst = to;
        store.written = signal_at(level);
        store.wait[0] = wait_for(counter::RING_READ_A_, 1, groups_[row] + 1, 1);
        store.row_level = 1;
        e_.code.tile(tiles, store);
        program::RingReceive take;
        take.ring = program::Ring::a;
        take.dst = slots;
        take.ring_read = signal_at(1);
        take.wait[0] = room_for(counter::WIDE_TO_NARROW_, 1, wrapped(words_[row]),
                                level == 0 ? row_words * slot_rows_ : slot_rows_);
        e_.code.tile(tiles, take);
        words_[row] += static_cast<std::int32_t>(to.passes_from(level));
        groups_[row] += static_cast<std::int32_t>(slots.count[1]);
    }

    /// Row `i` of a tile's own is copied when the words up to its end are there: at equal distances
    /// in front of the last one's, which may be a word or so more than a row needs.
    [[nodiscard]] program::Wait row_arrived(unsigned t, unsigned level,
                                            std::int64_t skipped) const {
        const unsigned r = t / grid;
        const Span rows = tensor_.own(t).rows;
        const auto stored =
            static_cast<std::int32_t>(wanted_[r]->end - wanted_[r]->begin) * words_of_unit;
        const auto last = static_cast<std::int32_t>(
            up(skipped + rows.size() * row_bytes_, spec::narrow_word_bytes));
        const auto step = static_cast<std::int32_t>(row_bytes_ / spec::narrow_word_bytes);
        return wait_for(counter::WIDE_TO_NARROW_, level,
                        words_[r] - stored + last - step * (rows.size() - 1), step);
    }

    /// From the strip of whole rows to what the tile owns. Where pixels are no whole words, bytes
    /// are taken one by one; the fourth byte, which nothing fills, becomes 0.
    std::optional<program::Tensor> into_window(unsigned t, std::int32_t word) const {
        const Area own = tensor_.own(t);
        if (own.empty()) return std::nullopt;
        const auto h = count(own.rows.size()), w = count(own.columns.size());
        const auto pitch = static_cast<std::int32_t>(tensor_.pitch(t));
        const auto skipped = own.rows.begin * row_bytes_ - wanted_[t / grid]->begin * host_unit;
        const auto from = static_cast<std::int32_t>(strip_ + skipped) +
                          own.columns.begin * tensor_.channels + 4 * word;
        const std::int32_t to = tensor_.address(t, own.rows.begin, own.columns.begin) + 4 * word;
        program::Tensor op = word_copy();
        if (tensor_.channels % 4 != 0) {
            const auto bytes = static_cast<std::uint32_t>(std::min(4, tensor_.channels - 4 * word));
            op.loops = loops({bytes, w, h});
            op.in = nest(
                8, from,
                {{1, bytes}, {tensor_.channels, w}, {static_cast<std::int32_t>(row_bytes_), h}});
            op.out = nest(
                8, to, {{4, 1}, {static_cast<std::int32_t>(tensor_.pixel_bytes()), w}, {pitch, h}});
            op.par = nest(8, 4 * identity_row, {{1, bytes}, {0, w}, {0, h}});
            op.acc = rotating(nest(8, 0, {{0, bytes}, {0, w}, {0, h}}), 1, 4);
            op.in_bytewise = op.single = op.single_par = true;
            op.group_level = 3;
            op.reduction_mask = 1;
            op.avdata = signal_at(3);
            if (follows_) op.wait[0] = row_arrived(t, 2, skipped);
            return op;
        }
        const std::uint32_t words = w * tensor_.words();
        op.loops = loops({words, h});
        op.in = nest(8, from, {{4, words}, {static_cast<std::int32_t>(row_bytes_), h}});
        op.out = nest(8, to, {{4, words}, {pitch, h}});
        op.par = nest(8, 4 * identity_row, {{0, words}, {0, h}});
        op.acc = rotating(nest(8, 0, {{0, words}, {0, h}}), 0, 4);
        op.group_level = 1;
        op.avdata = signal_at(2);
        if (follows_) op.wait[0] = row_arrived(t, 1, skipped);
        return op;
    }

    Emission& e_;
    const Tensor& tensor_;
    std::uint32_t strip_;
    std::int32_t slot_rows_;
    bool follows_ = false;  ///< rows are taken up while others arrive
    std::int64_t row_bytes_ = 0, units_ = 0;
    std::array<std::optional<Units>, grid> wanted_{};
    std::array<std::int32_t, grid> words_{}, groups_{};  ///< events, by row of the grid
};

}  // namespace

std::uint32_t TilePart::wide_rows() const {
    return static_cast<std::uint32_t>(up(words, row_words));
}

std::uint32_t TilePart::units() const {
    return static_cast<std::uint32_t>(up(words, words_of_unit));
}

std::optional<TilePart> part_of(const Tensor& t, unsigned tile) {
    if (t.layout == Layout::channels) {
        if (tile >= t.spread_tiles) return std::nullopt;
        const std::uint32_t words = t.words_on(tile);
        return TilePart{words, nest(6, t.address(tile, 0, 0) / 4, {{1, words}}), 1};
    }
    const Area own = t.own(tile);
    if (own.empty()) return std::nullopt;
    const std::uint32_t row = count(own.columns.size()) * t.words();
    const std::uint32_t rows = count(own.rows.size());
    return TilePart{row * rows,
                    nest(6, t.address(tile, own.rows.begin, own.columns.begin) / 4,
                         {{1, row}, {static_cast<std::int32_t>(t.pitch(tile) / 4), rows}}),
                    2};
}

std::optional<program::NarrowToWide> to_ring(const Tensor& tensor, unsigned tile,
                                             std::int32_t first_row) {
    const auto part = part_of(tensor, tile);
    if (!part) return std::nullopt;
    program::NarrowToWide op;
    op.src = part->source;
    op.dst = rotating(nest(4, first_row, {{0, part->wide_rows()}}), 0, 1);
    op.written = signal_at(0);
    op.wait[0] = room_for(counter::RING_WRITE_, 0, -1, 1);
    op.row_level = part->row_level;
    return op;
}

void take_from_host(Emission& e, std::uint32_t bytes) {
    const std::int64_t units = bytes / host_unit;
    e.code.reset_scalar(1U << scalar_counter::AVDATA_INFEED_,
                        std::int32_t{spec::activation_fifo_units} - 4);
    e.code.reset_scalar(1U << scalar_counter::AVDATA_POP_, 0);
    program::Infeed infeed;
    infeed.source = spec::InfeedSource::activations_;
    infeed.dst = fifo_pass(0, units, spec::activation_fifo_units, spec::activation_fifo_units / 2);
    infeed.infeed = signal_at(0);
    infeed.wait[0] = wait_for(scalar_counter::AVDATA_INFEED_, 0, 0, 1);
    e.code.scalar(infeed);
}

void transfer_activations(Emission& e, std::uint32_t bytes, spec::DmaTag tag) {
    e.code.copy(6, 5);
    e.code.copy(7, 4);
    e.code.transfer({6, 7}, {8, 9}, bytes, tag);
}

void ask_for_input(Emission& e, const Tensor& tensor) {
    e.code.set_address(10, {.base = BaseAddress::input_activation,
                            .name = tensor.name,
                            .half = AddressHalf::upper_32_bits});
    e.code.set_address(11, {.base = BaseAddress::input_activation,
                            .name = tensor.name,
                            .half = AddressHalf::lower_32_bits});
    take_from_host(e, tensor.input_bytes());
    e.code.copy(5, 11);
    e.code.copy(4, 10);
    transfer_activations(e, tensor.input_bytes(), spec::DmaTag::input_activations_);
}

program::RingPush push_of_input(std::int64_t first, std::int64_t units, TileSet tiles) {
    program::RingPush push;
    push.fifo = spec::Fifo::activations_;
    push.src =
        fifo_pass(first, units, spec::activation_fifo_units, spec::activation_fifo_units / 2);
    push.pop = signal_at(0);
    push.wait[0] = wait_for(scalar_counter::AVDATA_POP_, 0, wrapped(first + 1), 1);
    push.to_tiles = tiles;
    push.message_words = row_words;
    return push;
}

void emit(Emission& e, const Step& step, const InputStep&) {
    InputWriter(e, step).run();
}

void emit_output(Emission& e, const Port& port) {
    const Tensor& tensor = e.tensor(port.tensor);
    emit_output(e, port, [&](unsigned t) { return to_ring(tensor, t, output_row); });
}

Emission::Output send_to_host(Emission& e, const Tensor& tensor, const RowsOfOutput& rows,
                              std::int32_t first_row) {
    Emission::Output out;
    for (unsigned t = 0; t < all_tiles; ++t) {
        const auto part = part_of(tensor, t);
        if (!part) continue;
        out.offsets[t] = out.bytes;
        out.bytes += part->units() * static_cast<std::uint32_t>(host_unit);
    }
    e.code.by_class(rows);
    transfer_activations(e, out.bytes, spec::DmaTag::output_activations_);
    for (unsigned t = 0; t < all_tiles; ++t) {
        const auto part = part_of(tensor, t);
        if (!part) continue;
        program::RingPop pop;
        pop.dst = nest(3, 0, {{0, part->units()}});
        pop.outfeed = signal_at(1);
        pop.message_words = spec::row_bytes / spec::narrow_word_bytes;
        pop.to_host = true;
        e.code.scalar(pop);
        ++e.relay_taken;
        program::RingSend send;
        send.src = rotating(nest(4, first_row, {{1, 1}, {0, part->wide_rows()}}), 1, 1);
        send.src.mask = 1;
        send.ring_write = signal_at(1);
        send.producer = signal_at(2);
        send.wait[0] = wait_for(counter::RING_PRODUCER_A_, 2, e.next_message_a(), 1);
        send.wait[1] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
        send.to_scalar = true;
        e.code.tile(static_cast<TileSet>(1U << t), send);
        ++e.messages_a;
    }
    return out;
}

void emit_output(Emission& e, const Port& port, const RowsOfOutput& rows) {
    const Tensor& tensor = e.tensor(port.tensor);
    const std::string name = output_name(e.plan, port);
    e.code.set_address(
        10,
        {.base = BaseAddress::output_activation, .name = name, .half = AddressHalf::upper_32_bits});
    e.code.set_address(
        11,
        {.base = BaseAddress::output_activation, .name = name, .half = AddressHalf::lower_32_bits});
    e.code.copy(5, 11);
    e.code.copy(4, 10);
    e.outputs.push_back(send_to_host(e, tensor, rows, output_row));
}

}  // namespace reef::edgetpu::lowering
