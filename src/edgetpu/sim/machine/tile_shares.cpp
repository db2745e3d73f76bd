#include "tile_shares.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace reef::edgetpu::sim {
namespace {

/// Some rounds, whose tiles are not equally long. Cores change within some milliseconds.
constexpr std::uint64_t long_enough = 400'000;

/// Neighbours, which send each other words, have one owner as far as possible; yet programs that
/// use one row or one column of tiles share its work, too.
unsigned place_of(unsigned tile) {
    constexpr unsigned side = grid_side / 2, quarter = side * side;
    const unsigned row = tile / grid_side, column = tile % grid_side;
    const unsigned south = row / side, east = column / side;
    // North-west, south-east, north-east, south-west.
    const unsigned block = 2 * (south ^ east) + south;
    return quarter * block + side * (row % side) + column % side;
}

std::uint32_t first_half(std::uint32_t tiles) {
    std::uint32_t others = tiles;
    for (int left = (std::popcount(tiles) + 1) / 2; left > 0; --left) others &= others - 1;
    return tiles ^ others;
}

}  // namespace

TileShares::TileShares(unsigned workers) : workers_(workers) {
    assert(workers >= 1 && workers <= tile_count);
    for (unsigned worker = 0; worker <= workers; ++worker)
        first_[worker] = (worker * tile_count + workers - 1) / workers;
    cut();
}

void TileShares::cut() {
    tiles_.fill(0);
    for (unsigned tile = 0; tile < tile_count; ++tile) {
        const auto behind =
            std::upper_bound(first_.begin(), first_.begin() + workers_, place_of(tile));
        tiles_[static_cast<std::size_t>(behind - first_.begin() - 1)] |= 1U << tile;
    }
}

unsigned TileShares::owners(std::uint32_t tiles) const {
    unsigned owners = workers_;
    while (owners > 1 && (tiles & tiles_[owners - 1]) == 0) --owners;
    return owners;
}

std::uint32_t TileShares::part_of(std::uint32_t tiles, unsigned owner, unsigned part) const {
    const std::uint32_t mine = tiles & tiles_[owner];
    const std::uint32_t first = first_half(mine);
    return part == 0 ? first : mine ^ first;
}

/// What the longer of both shares would have taken with one tile of `from` in the other, if a
/// share's tiles are equally long.
std::uint64_t TileShares::longest_after_move(unsigned from, unsigned to) const {
    return std::max(taken_[from] - taken_[from] / tiles_of(from),
                    taken_[to] + taken_[to] / tiles_of(to));
}

void TileShares::settle() {
    const auto worker_end = taken_.begin() + workers_;
    if (*std::max_element(taken_.begin(), worker_end) < long_enough) return;
    bool moved = false;
    for (unsigned w = 0; w + 1 < workers_; ++w) {
        const std::uint64_t longest = std::max(taken_[w], taken_[w + 1]);
        const bool down = taken_[w] > taken_[w + 1];
        const unsigned from = down ? w : w + 1, to = down ? w + 1 : w;
        // Times are noisy, and a tile's memory moves with it.
        if (tiles_of(from) == 1 || longest_after_move(from, to) > longest - longest / 32) continue;
        first_[w + 1] += down ? ~0U : 1U;
        moved = true;
        ++w;  // whose time is not its share's any more
    }
    if (moved) cut();
    taken_.fill(0);
}

}  // namespace reef::edgetpu::sim
