// Which of a team's threads works on which tiles.
#pragma once

#include <array>
#include <cstdint>

#include "edgetpu/sim/program/memory.h"

namespace reef::edgetpu::sim {

/// Every worker has tiles of its own, whose memories stay in its core's caches. A share has two
/// parts, for a thread that is late leaves the caller one of them, and no more: a locked
/// instruction waits for every line that a tile's turn has written and the other core had read.
class TileShares {
  public:
    static constexpr unsigned parts = 2;

    explicit TileShares(unsigned workers);

    /// Workers that have any of `tiles` are below it; others below it have none of them.
    [[nodiscard]] unsigned owners(std::uint32_t tiles) const;
    /// Those of `tiles` that are a part of a worker's share.
    [[nodiscard]] std::uint32_t part_of(std::uint32_t tiles, unsigned owner, unsigned part) const;

  private:
    unsigned workers_;
    std::array<std::uint32_t, tile_count> tiles_{};  ///< by worker
};

}  // namespace reef::edgetpu::sim
