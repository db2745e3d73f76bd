// Values that go to other places in the image, through a copy of all of it on every tile.
#include <algorithm>
#include <map>
#include <span>

#include "edgetpu/compiler/emission.h"
#include "edgetpu/compiler/rearrangement.h"

namespace reef::edgetpu::lowering {
namespace {

/// Of one loop of a tensor instruction.
constexpr std::uint32_t most_passes = 1U << 14U;

/// Two rows for each number of bytes in a first part: those lanes of the identity, and the others.
constexpr std::int32_t part_rows = top_row - 16;

void emit_part_rows(Emission& e) {
    const auto word = [](unsigned part, bool second, unsigned lane) {
        return (lane < part) == second ? 0U : 1U << 8 * lane;
    };
    std::array<std::uint32_t, 16> one_and_two{}, three{};
    for (unsigned i = 0; i < 16; ++i) one_and_two[i] = word(1 + i / 8, i / 4 % 2 == 1, i % 4);
    for (unsigned i = 0; i < 8; ++i) three[i] = word(3, i / 4 == 1, i % 4);
    emit_constants(e, one_and_two, part_rows);
    emit_constants(e, three, part_rows + 4);
}

/// A word of the output, and its first byte's place.
struct WordMove {
    std::int32_t from = 0, to = 0;
    friend bool operator==(const WordMove&, const WordMove&) = default;
};

/// Words at equal distances, in up to three loops.
struct Moves {
    WordMove first;
    std::array<WordMove, 3> step{};
    std::array<std::uint32_t, 3> count{1, 1, 1};
    [[nodiscard]] std::uint32_t all() const { return count[0] * count[1] * count[2]; }
};

WordMove distance(const WordMove& a, const WordMove& b) {
    return {b.from - a.from, b.to - a.to};
}

/// As many words as so many loops hold, three at most, from the first on.
Moves next_moves(std::span<const WordMove> words, std::size_t loops) {
    Moves moves{.first = words.front()};
    std::size_t block = 1;
    for (std::size_t level = 0; level < loops && block < words.size(); ++level) {
        const WordMove step = distance(words[0], words[block]);
        std::uint32_t n = 1;
        const auto repeats = [&] {
            if ((n + 1) * block > words.size()) return false;
            for (std::size_t i = 0; i < block; ++i)
                if (distance(words[(n - 1) * block + i], words[n * block + i]) != step)
                    return false;
            return true;
        };
        while (n < most_passes && repeats()) ++n;
        moves.step[level] = step;
        moves.count[level] = n;
        block *= n;
    }
    return moves;
}

program::Tensor move_words(const Moves& m, const WordBytes& bytes, const Scaling& scaling) {
    program::Tensor op = word_copy();
    apply(op, scaling);
    std::vector<Dimension> in{{bytes.inner, bytes.inner_count}, {bytes.outer, bytes.outer_count}};
    std::vector<Dimension> out{{4, 1}};
    for (std::size_t i = 0; i < m.count.size(); ++i) {
        in.push_back({m.step[i].from, m.count[i]});
        out.push_back({m.step[i].to, m.count[i]});
    }
    const std::uint32_t taken = bytes.inner_count * bytes.outer_count;
    op.in_bytewise = true;
    op.single = op.single_par = bytes.first_part == 0;
    const auto rows = static_cast<std::int32_t>(2 * (bytes.first_part - 1));
    op.loops = loops({bytes.inner_count, bytes.outer_count, m.count[0], m.count[1], m.count[2]});
    op.in = nest(8, m.first.from, in);
    op.out = nest(8, m.first.to, out);
    op.par = bytes.first_part == 0 ? nest(8, 4 * identity_row, {{1, taken}, {0, m.all()}})
                                   : nest(8, 4 * (part_rows + rows), {{4, taken}, {0, m.all()}});
    op.acc = rotating(nest(8, 0, {{0, taken}, {0, m.all()}}), 1, 4);
    op.group_level = 5;
    op.reduction_mask = 3;
    op.avdata = signal_at(4);
    return op;
}

/// Instructions of one tile.
std::vector<program::Tensor> moves_of(const Tensor& in, const Tensor& out, unsigned t,
                                      const Step& step, const RearrangeStep& kind,
                                      std::size_t loops) {
    const Area own = out.own(t);
    const auto base = static_cast<std::int32_t>(step.scratch->base);
    const Span rows{std::max(own.rows.begin, kind.region.rows.begin),
                    std::min(own.rows.end, kind.region.rows.end)};
    const Span columns{std::max(own.columns.begin, kind.region.columns.begin),
                       std::min(own.columns.end, kind.region.columns.end)};
    std::map<WordBytes, std::vector<WordMove>> by_bytes;
    for (std::int32_t y = rows.begin; y < rows.end; ++y)
        for (std::int32_t x = columns.begin; x < columns.end; ++x)
            for (std::int32_t c = 0; c < out.channels; c += 4) {
                const auto first = element_at(kind.order, y, x, c);
                const auto bytes =
                    bytes_of_word(kind.order, in.channels, first, std::min(4, out.channels - c));
                by_bytes[*bytes].push_back(
                    {base + byte_of(first, in.channels), out.address(t, y, x) + c});
            }
    std::vector<program::Tensor> ops;
    for (const auto& [bytes, words] : by_bytes)
        for (std::span<const WordMove> rest = words; !rest.empty();) {
            const Moves moves = next_moves(rest, loops);
            ops.push_back(move_words(moves, bytes, kind.scaling));
            rest = rest.subspan(moves.all());
        }
    return ops;
}

}  // namespace

void emit(Emission& e, const Step& step, const RearrangeStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    std::array<std::vector<program::Tensor>, all_tiles> ops;
    TileSet tiles = 0;
    std::size_t most = 0;
    // Of the vendor's instructions that take single bytes none has more beside that of a word's.
    const std::size_t loops = e.code.prefers_known_forms() ? 2 : 3;
    for (unsigned t = 0; t < all_tiles; ++t) {
        ops[t] = moves_of(in, out, t, step, kind, loops);
        most = std::max(most, ops[t].size());
        if (!ops[t].empty()) tiles = static_cast<TileSet>(tiles | 1U << t);
    }
    emit_gather(e, in, tiles, step.scratch->base, {0, in.words()});
    const auto in_parts = [](const auto& list) {
        return std::ranges::any_of(list, [](const auto& op) { return !op.single; });
    };
    if (std::ranges::any_of(ops, in_parts)) emit_part_rows(e);
    for (std::size_t i = 0; i < most; ++i)
        e.code.by_class([&](unsigned t) {
            return i < ops[t].size() ? std::optional(ops[t][i]) : std::nullopt;
        });
}

}  // namespace reef::edgetpu::lowering
