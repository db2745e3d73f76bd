#include "base/worker_pool.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>

namespace reef {

struct WorkerPool::Arena {
    explicit Arena(int threads) : arena(threads) {
        // oneTBB starts no more threads than the machine has cores unless it is told to; fewer are
        // never forced on the rest of the program.
        if (threads > tbb::info::default_concurrency())
            limit.emplace(tbb::global_control::max_allowed_parallelism,
                          static_cast<std::size_t>(threads));
    }
    std::optional<tbb::global_control> limit;
    tbb::task_arena arena;
};

WorkerPool::WorkerPool(int threads)
    : threads_(threads), arena_(threads > 1 ? std::make_unique<Arena>(threads) : nullptr) {}

WorkerPool::~WorkerPool() = default;

void WorkerPool::run(std::size_t count, std::size_t grain, Invoke call, const void* body) {
    // A few pieces per thread, so that a thread the system takes away does not hold up the rest.
    constexpr std::size_t pieces_per_thread = 4;
    const std::size_t pieces = std::min(count / std::max<std::size_t>(grain, 1),
                                        static_cast<std::size_t>(threads_) * pieces_per_thread);
    const std::size_t length = count / pieces;
    const std::size_t longer = count % pieces;
    arena_->arena.execute([&] {
        tbb::parallel_for(
            std::size_t{0}, pieces,
            [&](std::size_t piece) {
                const std::size_t begin = piece * length + std::min(piece, longer);
                const std::size_t end = begin + length + (piece < longer ? 1 : 0);
                const int slot = tbb::this_task_arena::current_thread_index();
                call(body, begin, end, static_cast<std::size_t>(slot));
            },
            tbb::simple_partitioner{});
    });
}

}  // namespace reef
