#include "tile_shares.h"

#include <bit>
#include <cassert>

namespace reef::edgetpu::sim {
namespace {

/// Neighbours, which send each other words, have one owner as far as possible; yet programs that
/// use one row or one column of tiles share its work, too.
unsigned owner_of(unsigned tile, unsigned workers) {
    constexpr unsigned side = grid_side / 2, quarter = side * side;
    const unsigned row = tile / grid_side, column = tile % grid_side;
    const unsigned south = row / side, east = column / side;
    // North-west, south-east, north-east, south-west.
    const unsigned block = 2 * (south ^ east) + south;
    const unsigned place = quarter * block + side * (row % side) + column % side;
    return place * workers / tile_count;
}

std::uint32_t first_half(std::uint32_t tiles) {
    std::uint32_t others = tiles;
    for (int left = (std::popcount(tiles) + 1) / 2; left > 0; --left) others &= others - 1;
    return tiles ^ others;
}

}  // namespace

TileShares::TileShares(unsigned workers) : workers_(workers) {
    assert(workers >= 1 && workers <= tile_count);
    for (unsigned tile = 0; tile < tile_count; ++tile)
        tiles_[owner_of(tile, workers)] |= 1U << tile;
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

}  // namespace reef::edgetpu::sim
