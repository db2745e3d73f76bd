// Threads that work on tiles side by side, many times in a row and for some microseconds each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace reef::edgetpu::sim {

/// A thread that has nothing to do looks for work for a few dozen microseconds, which is longer
/// than the machine takes from one round to the next, and sleeps then. Nobody waits for a thread
/// that the system does not run, unless it is at work.
class TileTeam {
  public:
    /// The calling thread is one of them.
    explicit TileTeam(unsigned threads);
    TileTeam(const TileTeam&) = delete;
    TileTeam& operator=(const TileTeam&) = delete;
    ~TileTeam();

    [[nodiscard]] unsigned threads() const { return threads_; }
    /// work(tile, worker) once for every set bit of `tiles`; returns behind the last. Workers are
    /// below threads(), and a worker's calls come one after the other.
    template <typename Work>
    void each(std::uint32_t tiles, const Work& work) {
        run(tiles, &invoke<Work>, &work);
    }

  private:
    using Invoke = void (*)(const void* work, unsigned tile, unsigned worker);
    template <typename Work>
    static void invoke(const void* work, unsigned tile, unsigned worker) {
        (*static_cast<const Work*>(work))(tile, worker);
    }
    void run(std::uint32_t tiles, Invoke call, const void* work);
    bool take_some(unsigned worker);
    void sleep();
    void serve(unsigned worker);

    unsigned threads_;
    // Read by who has taken tiles, and changed when all of them are done.
    Invoke call_ = nullptr;
    const void* work_ = nullptr;
    /// Tiles that nobody has taken yet, below the number of the call of each().
    alignas(64) std::atomic<std::uint64_t> open_{0};
    alignas(64) std::atomic<unsigned> undone_{0};  ///< tiles
    alignas(64) std::atomic<unsigned> sleepers_{0};
    std::atomic<std::uint32_t> calls_{0};  ///< of sleepers
    std::atomic<bool> over_{false};
    std::vector<std::thread> others_;
};

}  // namespace reef::edgetpu::sim
