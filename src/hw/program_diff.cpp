#include "reef/hw/program_diff.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace reef::hw {
namespace {

// Stretches longer than this are aligned piece by piece: the table of scores stays at 4 MiB.
constexpr std::size_t longest_piece = 1024;

constexpr std::uint32_t score_equal = 1000;
constexpr std::uint32_t score_same_structure = 30;
constexpr std::uint32_t score_same_instruction = 10;

struct Item {
    Instruction instruction;
    std::uint64_t content = 0;    ///< hash of all bits but its number
    std::uint64_t structure = 0;  ///< hash of instruction, tiles, counts and switches
};

using Pair = std::pair<std::size_t, std::size_t>;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15u;
    return hash ^ hash >> 29;
}

bool is_structure(const FieldInfo& field) {
    return field.kind == FieldKind::limit || field.kind == FieldKind::flag ||
           field.kind == FieldKind::tiles || field.kind == FieldKind::enumeration;
}

Item item_of(const Instruction& instruction, std::string_view numbering) {
    Item item{instruction, 1, 1};
    if (!instruction.info) {
        for (const auto b : instruction.bytes)
            item.content = mixed(item.content, std::to_integer<std::uint64_t>(b));
        return item;
    }
    const auto key = reinterpret_cast<std::uintptr_t>(instruction.info);
    item.content = item.structure = mixed(1, key);
    for (const auto& field : instruction.info->fields) {
        if (field.name == numbering) continue;
        const auto bits = instruction.bits(field);
        item.content = mixed(item.content, bits);
        if (is_structure(field)) item.structure = mixed(item.structure, bits);
    }
    return item;
}

std::vector<Item> items_of(const InstructionSet& set, Bytes stream, std::string_view numbering) {
    std::vector<Item> out;
    InstructionCursor cursor(set, stream);
    while (const auto instruction = cursor.next()) out.push_back(item_of(*instruction, numbering));
    return out;
}

// Pairs of items with equal content that occur once on each side, as many as keep both orders.
std::vector<Pair> anchors(std::span<const Item> a, std::span<const Item> b) {
    struct Seen {
        std::size_t in_a = 0, in_b = 0, count_a = 0, count_b = 0;
    };
    std::unordered_map<std::uint64_t, Seen> seen;
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto& s = seen[a[i].content];
        s.in_a = i;
        ++s.count_a;
    }
    for (std::size_t j = 0; j < b.size(); ++j) {
        auto& s = seen[b[j].content];
        s.in_b = j;
        ++s.count_b;
    }
    std::vector<Pair> unique;
    for (const auto& [hash, s] : seen) {
        if (s.count_a == 1 && s.count_b == 1) unique.emplace_back(s.in_a, s.in_b);
    }
    std::ranges::sort(unique);
    // Longest run of rising b: piles[k] ends the run of length k + 1 with the smallest b.
    std::vector<std::size_t> piles;
    std::vector<std::size_t> previous(unique.size());
    for (std::size_t u = 0; u < unique.size(); ++u) {
        const auto pile = std::ranges::lower_bound(piles, unique[u].second, {},
                                                   [&](std::size_t p) { return unique[p].second; });
        previous[u] = pile == piles.begin() ? u : *(pile - 1);
        if (pile == piles.end()) {
            piles.push_back(u);
        } else {
            *pile = u;
        }
    }
    std::vector<Pair> chain(piles.size());
    for (std::size_t k = piles.size(), u = piles.empty() ? 0 : piles.back(); k-- > 0;
         u = previous[u])
        chain[k] = unique[u];
    return chain;
}

std::uint32_t score(const Item& a, const Item& b) {
    if (a.instruction.info != b.instruction.info) return 0;
    if (a.content == b.content) return score_equal;
    return a.structure == b.structure ? score_same_structure : score_same_instruction;
}

// The pairs of highest total score that keep both orders.
void align_piece(std::span<const Item> a, std::span<const Item> b, Pair offset,
                 std::vector<Pair>& out) {
    const std::size_t columns = b.size() + 1;
    std::vector<std::uint32_t> best((a.size() + 1) * columns, 0);
    for (std::size_t i = a.size(); i-- > 0;) {
        for (std::size_t j = b.size(); j-- > 0;) {
            const auto s = score(a[i], b[j]);
            const auto skip = std::max(best[(i + 1) * columns + j], best[i * columns + j + 1]);
            const auto pair = s ? s + best[(i + 1) * columns + j + 1] : 0;
            best[i * columns + j] = std::max(skip, pair);
        }
    }
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        const auto here = best[i * columns + j];
        const auto s = score(a[i], b[j]);
        if (s && here == s + best[(i + 1) * columns + j + 1]) {
            out.emplace_back(offset.first + i++, offset.second + j++);
        } else if (here == best[(i + 1) * columns + j]) {
            ++i;
        } else {
            ++j;
        }
    }
}

void align_stretch(std::span<const Item> a, std::span<const Item> b, Pair offset,
                   std::vector<Pair>& out) {
    while (!a.empty() && !b.empty()) {
        const auto n = std::min(a.size(), longest_piece);
        const auto m = std::min(b.size(), longest_piece);
        align_piece(a.first(n), b.first(m), offset, out);
        a = a.subspan(n);
        b = b.subspan(m);
        offset.first += n;
        offset.second += m;
    }
}

std::vector<Pair> align(std::span<const Item> a, std::span<const Item> b) {
    std::vector<Pair> out;
    Pair done{0, 0};
    auto fixed = anchors(a, b);
    fixed.emplace_back(a.size(), b.size());
    for (const auto& [i, j] : fixed) {
        align_stretch(a.subspan(done.first, i - done.first),
                      b.subspan(done.second, j - done.second), done, out);
        if (i < a.size()) out.emplace_back(i, j);
        done = {i + 1, j + 1};
    }
    return out;
}

void compare(const Item& a, const Item& b, std::string_view numbering, ProgramDiff& out) {
    ++out.aligned;
    InstructionChange change{a.instruction, b.instruction, {}};
    if (!a.instruction.info) {
        if (!std::ranges::equal(a.instruction.bytes, b.instruction.bytes))
            out.changes.push_back(std::move(change));
        return;
    }
    for (const auto& field : a.instruction.info->fields) {
        if (a.instruction.bits(field) == b.instruction.bits(field)) continue;
        if (field.name == numbering) {
            ++out.renumbered;
        } else {
            change.fields.push_back(&field);
        }
    }
    if (!change.fields.empty()) out.changes.push_back(std::move(change));
}

}  // namespace

ProgramDiff diff_programs(const InstructionSet& set, Bytes before, Bytes after,
                          std::string_view numbering) {
    ProgramDiff out;
    out.identical = std::ranges::equal(before, after);
    const auto a = items_of(set, before, numbering);
    const auto b = items_of(set, after, numbering);
    auto pairs = align(a, b);
    pairs.emplace_back(a.size(), b.size());
    std::size_t i = 0;
    std::size_t j = 0;
    for (const auto& [to_i, to_j] : pairs) {
        for (; i < to_i; ++i) out.changes.push_back({a[i].instruction, std::nullopt, {}});
        for (; j < to_j; ++j) out.changes.push_back({std::nullopt, b[j].instruction, {}});
        if (i < a.size() && j < b.size()) compare(a[i++], b[j++], numbering, out);
    }
    return out;
}

}  // namespace reef::hw
