#include "graph/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <utility>

namespace reef::graph {
namespace {

using Order = std::vector<std::size_t>;

bool meet(const Lifetime& a, const Lifetime& b) {
    return a.first <= b.last && b.first <= a.last;
}

struct BlockPlacement {
    std::vector<std::size_t> offsets;
    std::size_t arena_bytes = 0;
};

/// Places blocks one after the other at the lowest offset where they fit between those placed
/// before them. Quadratic in the number of blocks.
BlockPlacement place_in_order(std::span<const Lifetime> blocks, const Order& order) {
    BlockPlacement result{std::vector<std::size_t>(blocks.size()), 0};
    Order placed;  // by offset
    placed.reserve(order.size());
    for (const std::size_t index : order) {
        const Lifetime& block = blocks[index];
        std::size_t offset = 0;
        for (const std::size_t other : placed) {
            if (!meet(block, blocks[other])) continue;
            if (offset + block.bytes <= result.offsets[other]) break;
            offset = std::max(offset, align_up(result.offsets[other] + blocks[other].bytes));
        }
        result.offsets[index] = offset;
        result.arena_bytes = std::max(result.arena_bytes, offset + block.bytes);
        const auto by_offset = [&](std::size_t value, std::size_t other) {
            return value < result.offsets[other];
        };
        placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, by_offset), index);
    }
    return result;
}

/// Free parts of an arena without end.
class FreeList {
  public:
    FreeList() { add(0, std::numeric_limits<std::size_t>::max()); }

    /// From the smallest part that is large enough, the lowest of those.
    std::size_t take(std::size_t bytes) {
        const auto [length, begin] = *by_length_.lower_bound({bytes, 0});
        remove(begin, begin + length);
        if (bytes < length) add(begin + bytes, begin + length);
        return begin;
    }

    void give(std::size_t begin, std::size_t bytes) {
        const std::size_t end = begin + bytes;
        const auto next = by_begin_.lower_bound(begin);
        const bool joins_next = next != by_begin_.end() && next->first == end;
        const bool joins_previous = next != by_begin_.begin() && std::prev(next)->second == begin;
        const std::size_t previous_begin = joins_previous ? std::prev(next)->first : begin;
        const std::size_t next_end = joins_next ? next->second : end;
        if (joins_next) remove(end, next_end);
        if (joins_previous) remove(previous_begin, begin);
        add(previous_begin, next_end);
    }

  private:
    void add(std::size_t begin, std::size_t end) {
        by_begin_[begin] = end;
        by_length_.insert({end - begin, begin});
    }
    void remove(std::size_t begin, std::size_t end) {
        by_begin_.erase(begin);
        by_length_.erase({end - begin, begin});
    }

    std::map<std::size_t, std::size_t> by_begin_;              // begin -> end
    std::set<std::pair<std::size_t, std::size_t>> by_length_;  // length, begin
};

/// Takes and frees blocks as the operators run: fast for any number of blocks.
BlockPlacement place_as_run(std::span<const Lifetime> blocks) {
    BlockPlacement result{std::vector<std::size_t>(blocks.size()), 0};
    Order starts(blocks.size());
    std::iota(starts.begin(), starts.end(), std::size_t{0});
    Order ends = starts;
    std::ranges::sort(starts, {}, [&](std::size_t i) { return std::pair(blocks[i].first, i); });
    std::ranges::sort(ends, {}, [&](std::size_t i) { return std::pair(blocks[i].last, i); });
    FreeList free;
    auto next_end = ends.begin();
    for (const std::size_t index : starts) {
        for (; blocks[*next_end].last < blocks[index].first; ++next_end) {
            if (blocks[*next_end].bytes > 0)
                free.give(result.offsets[*next_end], align_up(blocks[*next_end].bytes));
        }
        if (blocks[index].bytes == 0) continue;
        result.offsets[index] = free.take(align_up(blocks[index].bytes));
        result.arena_bytes =
            std::max(result.arena_bytes, result.offsets[index] + blocks[index].bytes);
    }
    return result;
}

/// Bytes alive during each operator, each block's as `size_of_block` counts them.
template <typename Size>
std::vector<std::size_t> live_bytes(std::span<const Lifetime> blocks, const Size& size_of_block) {
    std::size_t count = 0;
    for (const Lifetime& block : blocks) count = std::max(count, block.last + 1);
    // Differences first; wrapping is harmless because the sums come out right.
    std::vector<std::size_t> live(count + 1);
    for (const Lifetime& block : blocks) {
        live[block.first] += size_of_block(block.bytes);
        live[block.last + 1] -= size_of_block(block.bytes);
    }
    std::partial_sum(live.begin(), live.end(), live.begin());
    return live;
}

Order by_size(std::span<const Lifetime> blocks) {
    Order order(blocks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, std::greater{},
                      [&](std::size_t i) { return std::pair(blocks[i].bytes, i); });
    return order;
}

/// First the blocks alive during the operator with the most live bytes, then those of the next.
Order by_breadth(std::span<const Lifetime> blocks, const std::vector<std::size_t>& live) {
    const auto breadth = [&](std::size_t i) {
        return *std::max_element(live.begin() + static_cast<std::ptrdiff_t>(blocks[i].first),
                                 live.begin() + static_cast<std::ptrdiff_t>(blocks[i].last) + 1);
    };
    std::vector<std::size_t> breadths(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) breadths[i] = breadth(i);
    Order order = by_size(blocks);
    std::ranges::sort(order, std::greater{},
                      [&](std::size_t i) { return std::tuple(breadths[i], blocks[i].bytes, i); });
    return order;
}

/// Swaps pairs of an order as long as that does not make the arena larger than it is.
BlockPlacement improve(std::span<const Lifetime> blocks, Order order, BlockPlacement best,
                       std::size_t goal) {
    // One try costs about the square of the number of blocks; a millisecond or two in all.
    constexpr std::size_t work = 1'000'000;
    const std::size_t tries = std::min<std::size_t>(2000, work / (order.size() * order.size()));
    std::minstd_rand random(1);
    for (std::size_t i = 0; i < tries && best.arena_bytes > goal; ++i) {
        const std::size_t a = random() % order.size();
        const std::size_t b = random() % order.size();
        std::swap(order[a], order[b]);
        BlockPlacement candidate = place_in_order(blocks, order);
        if (candidate.arena_bytes <= best.arena_bytes) {
            best = std::move(candidate);
        } else {
            std::swap(order[a], order[b]);
        }
    }
    return best;
}

BlockPlacement best_placement(std::span<const Lifetime> blocks) {
    // Every block starts at a multiple of the alignment, so that this is as good as it gets, give
    // or take the padding behind the topmost block.
    const std::vector<std::size_t> live = live_bytes(blocks, align_up);
    const std::size_t goal = *std::ranges::max_element(live);
    BlockPlacement best = place_as_run(blocks);
    constexpr std::size_t quadratic_limit = 4096;
    if (blocks.size() > quadratic_limit) return best;
    for (const Order& order : {by_size(blocks), by_breadth(blocks, live)}) {
        if (best.arena_bytes <= goal) break;
        BlockPlacement candidate = improve(blocks, order, place_in_order(blocks, order), goal);
        if (candidate.arena_bytes < best.arena_bytes) best = std::move(candidate);
    }
    return best;
}

/// Blocks that are alive from beginning to end (graph inputs) share with nobody: they lie below the
/// others, which are then placed as if there were none.
BlockPlacement place_all(std::span<const Lifetime> blocks) {
    std::size_t end = 0;
    for (const Lifetime& block : blocks) end = std::max(end, block.last);
    BlockPlacement result{std::vector<std::size_t>(blocks.size()), 0};
    std::vector<Lifetime> others;
    Order other_indices;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i].first == 0 && blocks[i].last == end) {
            result.offsets[i] = align_up(result.arena_bytes);
            result.arena_bytes = result.offsets[i] + blocks[i].bytes;
        } else {
            others.push_back(blocks[i]);
            other_indices.push_back(i);
        }
    }
    if (others.empty()) return result;
    const BlockPlacement above = best_placement(others);
    const std::size_t base = align_up(result.arena_bytes);
    for (std::size_t k = 0; k < others.size(); ++k)
        result.offsets[other_indices[k]] = base + above.offsets[k];
    if (above.arena_bytes > 0) result.arena_bytes = base + above.arena_bytes;
    return result;
}

std::unexpected<Error> too_large(std::size_t bytes) {
    return fail(Cause::unsupported,
                fmt::format("the tensors need {} bytes at once, more than {}", bytes, arena_limit));
}

}  // namespace

Result<MemoryPlan> plan_memory(std::span<const Lifetime> lifetimes) {
    for (const Lifetime& lifetime : lifetimes) {
        if (lifetime.bytes > arena_limit) return too_large(lifetime.bytes);
    }
    const std::vector<std::size_t> live = live_bytes(lifetimes, std::identity{});
    MemoryPlan plan;
    plan.lower_bound_bytes = *std::ranges::max_element(live);
    if (plan.lower_bound_bytes > arena_limit) return too_large(plan.lower_bound_bytes);
    BlockPlacement placement = place_all(lifetimes);
    if (placement.arena_bytes > arena_limit) return too_large(placement.arena_bytes);
    plan.offsets = std::move(placement.offsets);
    plan.arena_bytes = placement.arena_bytes;
    return plan;
}

}  // namespace reef::graph
