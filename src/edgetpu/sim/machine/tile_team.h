// Threads that work on tiles side by side, many times in a row and for some microseconds each time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "edgetpu/sim/program/memory.h"

namespace reef::edgetpu::sim {

/// Every thread has tiles of its own, whose memories stay in its core's caches; the caller does
/// those of a thread that does not come for them, and half of them when it is late. A thread that
/// has nothing to do looks for work for about a tenth of a millisecond, which is longer than the
/// machine takes from one round to the next, and sleeps then. Nobody waits for a thread that the
/// system does not run, unless it is at work.
///
/// A locked instruction waits for every line that a tile's turn has written and the other core had
/// read: there are two in a call, not one for each tile.
class TileTeam {
  public:
    /// The calling thread is one of them.
    explicit TileTeam(unsigned threads);
    TileTeam(const TileTeam&) = delete;
    TileTeam& operator=(const TileTeam&) = delete;
    ~TileTeam();

    [[nodiscard]] unsigned threads() const { return threads_; }
    /// work(tile, worker) once for every set bit of `tiles`; returns behind the last. Workers are
    /// below threads(), and a worker's calls come one after the other. What the caller does not
    /// write between two calls stays in the others' caches: `work` had better be such an object.
    template <typename Work>
    void each(std::uint32_t tiles, const Work& work) {
        run(tiles, {&invoke<Work>, &work});
    }

  private:
    using Invoke = void (*)(const void* work, unsigned tile, unsigned worker);
    template <typename Work>
    static void invoke(const void* work, unsigned tile, unsigned worker) {
        (*static_cast<const Work*>(work))(tile, worker);
    }
    /// Of one call of each().
    struct Call {
        Invoke call = nullptr;
        const void* work = nullptr;
    };
    /// One thread's, in a line for each who writes it.
    struct Share {
        /// The caller's: the number of the call of each() that gives tiles, and these.
        struct alignas(64) Given {
            std::atomic<std::uint64_t> number{0};
            std::uint32_t tiles = 0;
            Call call;
            std::atomic<bool> over{false};
        } given;
        /// What of the tiles somebody does, the thread or the caller in its stead: twice the number
        /// of the last call when it is the first half of them, one more when it is all.
        alignas(64) std::atomic<std::uint64_t> taken{0};
        std::atomic<std::uint32_t> asleep{0};  ///< 1: it is
        /// The number of the last call whose tiles the thread has done.
        alignas(64) std::atomic<std::uint64_t> done{0};
    };
    void run(std::uint32_t tiles, Call call);
    [[nodiscard]] bool give(unsigned worker, std::uint32_t tiles, Call call);
    void wait_for(unsigned worker);
    [[nodiscard]] bool do_instead(Share& share, unsigned worker);
    [[nodiscard]] static bool take(Share& share, std::uint64_t part);
    static void sleep(Share& mine, std::uint64_t seen);
    static void serve(Share& mine, unsigned worker);

    unsigned threads_;
    std::vector<Share> shares_;  ///< by worker; the caller's is not used
    // The caller's.
    alignas(64) std::uint64_t calls_ = 0;            ///< of each()
    std::array<std::uint32_t, tile_count> tiles_{};  ///< by worker
    std::vector<bool> late_;                         ///< by worker: it did not come for its tiles
    std::vector<std::thread> others_;
};

}  // namespace reef::edgetpu::sim
