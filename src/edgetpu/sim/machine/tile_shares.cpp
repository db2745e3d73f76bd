#include "tile_shares.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace reef::edgetpu::sim {
namespace {

/// Nanoseconds of some rounds, whose tiles are not equally long. Cores change within milliseconds.
constexpr std::uint64_t long_enough = 200'000;
constexpr unsigned many_rounds = 64;
/// Times are noisy, and a tile's memory moves with it.
constexpr double worth_moving = 31.0 / 32;

/// Neighbours, which send each other words, have one owner as far as possible; yet programs that
/// use one row or one column of tiles share its work, too.
constexpr unsigned place_of(unsigned tile) {
    constexpr unsigned side = grid_side / 2, quarter = side * side;
    const unsigned row = tile / grid_side, column = tile % grid_side;
    const unsigned south = row / side, east = column / side;
    // North-west, south-east, south-west, north-east: the northern row, whose tiles add up in pairs
    // at an average pool's end, is at both ends, where two workers' border seldom comes.
    const unsigned block = 2 * (south ^ east) + east;
    return quarter * block + side * (row % side) + column % side;
}

constexpr std::array<unsigned, tile_count> tile_at = [] {
    std::array<unsigned, tile_count> tiles{};
    for (unsigned tile = 0; tile < tile_count; ++tile) tiles[place_of(tile)] = tile;
    return tiles;
}();

std::uint32_t first_half(std::uint32_t tiles) {
    std::uint32_t others = tiles;
    for (int left = (std::popcount(tiles) + 1) / 2; left > 0; --left) others &= others - 1;
    return tiles ^ others;
}

}  // namespace

TileShares::TileShares(unsigned workers) : workers_(workers) {
    assert(workers >= 1 && workers <= tile_count);
    make_equal();
}

bool TileShares::times_next_round() {
    constexpr std::uint32_t of_golden_ratio = 0x9E3779B1;
    return ++rounds_ * of_golden_ratio >> 30U == 0;
}

void TileShares::make_equal() {
    for (unsigned worker = 0; worker <= workers_; ++worker)
        first_[worker] = (worker * tile_count + workers_ - 1) / workers_;
    cut();
}

void TileShares::cut() {
    for (unsigned worker = 0; worker < workers_; ++worker) {
        tiles_[worker] = 0;
        for (unsigned place = first_[worker]; place < first_[worker + 1]; ++place)
            tiles_[worker] |= 1U << tile_at[place];
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

void TileShares::note(unsigned worker, unsigned tiles, std::uint64_t nanoseconds) {
    noted_[worker].tiles += tiles;
    noted_[worker].nanoseconds += nanoseconds;
}

unsigned TileShares::active(unsigned worker) const {
    return static_cast<unsigned>(std::popcount(active_ & tiles_[worker]));
}

/// What all of a worker's active tiles and some more take.
double TileShares::time_with(unsigned worker, int more) const {
    const Noted& noted = noted_[worker];
    return static_cast<double>(noted.nanoseconds) / static_cast<double>(noted.tiles) *
           (static_cast<int>(active(worker)) + more);
}

/// An active tile of this worker or of the next one, with the others on the way, where that saves
/// time. Nobody gives away the last.
bool TileShares::move_between(unsigned worker) {
    const unsigned next = worker + 1;
    if (noted_[worker].tiles == 0 || noted_[next].tiles == 0) return false;
    const bool down = time_with(worker, 0) > time_with(next, 0);
    const unsigned from = down ? worker : next, to = down ? next : worker;
    const double longest = time_with(from, 0);
    const double after = std::max(time_with(from, -1), time_with(to, 1));
    if (active(from) < 2 || after > longest * worth_moving) return false;
    bool moved = false;
    for (unsigned& border = first_[next]; !moved;) {
        const unsigned place = down ? --border : border++;
        moved = (active_ >> tile_at[place] & 1U) != 0;
    }
    return true;
}

bool TileShares::has_one_owner(std::uint32_t tiles) const {
    return std::any_of(tiles_.begin(), tiles_.begin() + workers_,
                       [&](std::uint32_t share) { return (tiles & ~share) == 0; });
}

void TileShares::settle(std::uint32_t tiles) {
    if (has_one_owner(tiles)) {
        if (++alone_ == many_rounds) make_equal();
        return;
    }
    alone_ = 0;
    active_ |= tiles;
    const auto is_long = [](const Noted& noted) { return noted.nanoseconds >= long_enough; };
    if (std::none_of(noted_.begin(), noted_.begin() + workers_, is_long)) return;
    bool moved = false;
    for (unsigned worker = 0; worker + 1 < workers_; ++worker) {
        if (!move_between(worker)) continue;
        moved = true;
        ++worker;  // whose share is not the noted one any more
    }
    if (moved) cut();
    noted_.fill({});
    active_ = 0;
}

}  // namespace reef::edgetpu::sim
