// Runs loops on a fixed number of threads.
#pragma once

#include <cstddef>
#include <memory>

namespace reef {

class ThreadTeam;

/// With one thread a loop's body runs on the caller. Others start with the first loop that wants
/// them. One loop at a time, by one thread.
class WorkerPool {
  public:
    static constexpr int most_threads = 256;

    /// 1 to most_threads.
    explicit WorkerPool(int threads);
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;
    ~WorkerPool();

    [[nodiscard]] int threads() const { return threads_; }

    /// Whether loops take all threads from now on, as they do at the start, or the caller's alone.
    void use_all(bool all) { loop_threads_ = all ? threads_ : 1; }

    /// Calls body(begin, end, worker) so that [0, count) is covered once in pieces of at least
    /// `grain`; worker is below threads() and no two calls at the same time share one, so that a
    /// body may own the worker-th part of a scratch area. It throws nothing, and begins no loop.
    template <typename Body>
    void parallel_for(std::size_t count, std::size_t grain, const Body& body) {
        if (count == 0) return;
        if (loop_threads_ == 1 || count / 2 < grain) {
            body(std::size_t{0}, count, std::size_t{0});
            return;
        }
        run(count, grain, &invoke<Body>, &body);
    }

  private:
    using Invoke = void (*)(const void* body, std::size_t begin, std::size_t end,
                            std::size_t worker);
    template <typename Body>
    static void invoke(const void* body, std::size_t begin, std::size_t end, std::size_t worker) {
        (*static_cast<const Body*>(body))(begin, end, worker);
    }
    void run(std::size_t count, std::size_t grain, Invoke call, const void* body);

    int threads_;
    int loop_threads_;
    std::unique_ptr<ThreadTeam> team_;  ///< from the first loop on
};

}  // namespace reef
