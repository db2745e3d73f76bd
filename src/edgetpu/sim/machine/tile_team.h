// Threads that work on tiles side by side, many times in a row and for some microseconds each time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "edgetpu/sim/program/memory.h"

namespace reef::edgetpu::sim {

/// Every thread has tiles of its own, whose memories stay in its core's caches; it takes others'
/// only when these are late. A thread that has nothing to do looks for work for about a tenth of a
/// millisecond, which is longer than the machine takes from one round to the next, and sleeps then.
/// Nobody waits for a thread that the system does not run, unless it is at work.
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
    /// One thread's. Others write here when they give tiles, take them, or wake it.
    struct alignas(64) Share {
        /// Tiles that nobody has taken yet, below the number of the call of each().
        std::atomic<std::uint64_t> open{0};
        std::atomic<std::uint32_t> asleep{0};  ///< 1: it is
        std::atomic<bool> over{false};
        /// It did not come for its tiles: it gets none before it looks for them.
        std::atomic<bool> away{false};
        std::uint32_t given = 0;  ///< tiles, in this call
        // What to do with them: in the line that comes with them.
        Invoke call = nullptr;
        const void* work = nullptr;
        /// Tiles that the thread has done, its own and others'.
        alignas(64) std::atomic<std::uint32_t> done{0};
    };
    /// Of one call of each().
    struct Call {
        Invoke call;
        const void* work;
    };
    void run(std::uint32_t tiles, Call call);
    void open(Share& share, std::uint32_t tiles, Call call) const;
    [[nodiscard]] bool give(Share& share, std::uint32_t tiles, Call call);
    bool take_one(Share& share, unsigned worker);
    bool take_from_others(unsigned worker);
    [[nodiscard]] bool all_done() const;
    void sleep(Share& mine);
    void serve(unsigned worker);

    unsigned threads_;
    std::vector<Share> shares_;  ///< by worker
    // The caller's.
    alignas(64) std::uint64_t calls_ = 0;            ///< of each()
    std::uint32_t given_ = 0;                        ///< tiles, in all of them
    std::array<std::uint32_t, tile_count> tiles_{};  ///< by worker
    std::vector<std::thread> others_;
};

}  // namespace reef::edgetpu::sim
