#include "base/worker_pool.h"

#include <algorithm>
#include <cassert>

#include "base/thread_team.h"

namespace reef {
namespace {

/// So many into parts that differ by one at most.
class Cut {
  public:
    Cut(std::size_t count, std::size_t parts) : length_(count / parts), longer_(count % parts) {}
    [[nodiscard]] std::size_t begin(std::size_t part) const {
        return part * length_ + std::min(part, longer_);
    }

  private:
    std::size_t length_, longer_;
};

}  // namespace

WorkerPool::WorkerPool(int threads) : threads_(threads), loop_threads_(threads) {
    assert(threads >= 1 && threads <= most_threads);
}

WorkerPool::~WorkerPool() = default;

void WorkerPool::run(std::size_t count, std::size_t grain, Invoke call, const void* body) {
    if (team_ == nullptr) team_ = std::make_unique<ThreadTeam>(static_cast<unsigned>(threads_));
    // Threads are not equally fast, nor all there, so that each has a few pieces that others can
    // take from it.
    constexpr std::size_t pieces_of_thread = 4;
    const std::size_t most = count / std::max<std::size_t>(grain, 1);
    const auto owners = static_cast<unsigned>(std::min<std::size_t>(most, team_->threads()));
    const auto parts = static_cast<unsigned>(
        std::clamp<std::size_t>(most / owners, 1, owners == 1 ? 1 : pieces_of_thread));
    const Cut shares(count, owners);
    team_->each(owners, parts, ThreadTeam::Help::all, 0,
                [&](unsigned owner, unsigned part, unsigned worker, std::uint64_t) {
                    const std::size_t first = shares.begin(owner);
                    const Cut share(shares.begin(owner + 1) - first, parts);
                    call(body, first + share.begin(part), first + share.begin(part + 1), worker);
                });
}

}  // namespace reef
