// Which of a team's threads works on which tiles.
#pragma once

#include <array>
#include <cstdint>

#include "edgetpu/sim/program/memory.h"

namespace reef::edgetpu::sim {

/// Every worker has tiles of its own, whose memories stay in its core's caches. A share has two
/// parts, for a thread that is late leaves the caller one of them, and no more: a locked
/// instruction waits for every line that a tile's turn has written and the other core had read.
///
/// Cores are not equally fast, nor for long: one of a virtual machine, whose other half another
/// machine uses, does half as much as its neighbour. A tile goes to the next worker's share where
/// both have then done sooner.
class TileShares {
  public:
    static constexpr unsigned parts = 2;

    /// 1 to tile_count. Equal shares.
    explicit TileShares(unsigned workers);

    /// Workers that have any of `tiles` are below it; others below it have none of them.
    [[nodiscard]] unsigned owners(std::uint32_t tiles) const;
    /// Those of `tiles` that are a part of a worker's share.
    [[nodiscard]] std::uint32_t part_of(std::uint32_t tiles, unsigned owner, unsigned part) const;

    /// What a worker took for its share of a round, all of which it did itself. Times add up until
    /// settle().
    void note(unsigned worker, std::uint64_t nanoseconds) { taken_[worker] += nanoseconds; }
    /// Behind a round whose times are noted. Once they are long enough to say something, tiles
    /// change hands, one of each share at most, and noting begins anew.
    void settle();

  private:
    [[nodiscard]] unsigned tiles_of(unsigned worker) const {
        return first_[worker + 1] - first_[worker];
    }
    [[nodiscard]] std::uint64_t longest_after_move(unsigned from, unsigned to) const;
    void cut();

    unsigned workers_;
    /// A worker's places: which tile is at one says place_of().
    std::array<unsigned, tile_count + 1> first_{};
    std::array<std::uint32_t, tile_count> tiles_{};  ///< by worker
    std::array<std::uint64_t, tile_count> taken_{};  ///< by worker, in nanoseconds
};

}  // namespace reef::edgetpu::sim
