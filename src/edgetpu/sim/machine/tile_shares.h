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
/// machine uses, does half as much as its neighbour. A tile goes to a neighbour's share where the
/// longer of both is then shorter by more than a thirtieth.
class TileShares {
  public:
    static constexpr unsigned parts = 2;

    /// 1 to tile_count. Equal shares.
    explicit TileShares(unsigned workers);

    /// Workers that have any of `tiles` are below it; others below it have none of them.
    [[nodiscard]] unsigned owners(std::uint32_t tiles) const;
    /// Those of `tiles` that are a part of a worker's share.
    [[nodiscard]] std::uint32_t part_of(std::uint32_t tiles, unsigned owner, unsigned part) const;

    /// Whether the workers look at the clock in the next round of several tiles. A look takes 25
    /// ns, and a worker has three of them in a round: a quarter of the rounds say how fast the
    /// workers are, in the long run those of a program all alike.
    [[nodiscard]] bool times_next_round();
    /// How many of its own tiles a worker did in a round, and what they took. A thread that was
    /// late did fewer, as fast as ever. Both add up until settle().
    void note(unsigned worker, unsigned tiles, std::uint64_t nanoseconds);
    /// Behind a timed round of these tiles, several, which is noted where more than one worker has
    /// some. Once the times are long enough to say something, tiles change hands, one of two
    /// neighbours', and noting begins anew. Many rounds of one worker's tiles make shares equal
    /// again: a program may use others than the one before.
    void settle(std::uint32_t tiles);

  private:
    struct Noted {
        std::uint64_t tiles = 0, nanoseconds = 0;
    };
    [[nodiscard]] bool has_one_owner(std::uint32_t tiles) const;
    [[nodiscard]] unsigned active(unsigned worker) const;
    [[nodiscard]] double time_with(unsigned worker, int more) const;
    [[nodiscard]] bool move_between(unsigned worker);
    void make_equal();
    void cut();

    unsigned workers_;
    /// A worker's places: which tile is at one says place_of().
    std::array<unsigned, tile_count + 1> first_{};
    std::array<std::uint32_t, tile_count> tiles_{};  ///< by worker
    // The caller's, who writes some of it in every round; the others' cores have the lines before.
    alignas(64) std::array<Noted, tile_count> noted_{};  ///< by worker
    std::uint32_t active_ = 0;                           ///< tiles of the noted rounds
    std::uint32_t rounds_ = 0;                           ///< modulo 2^32
    unsigned alone_ = 0;  ///< timed rounds of one worker's, one after the other
};

}  // namespace reef::edgetpu::sim
