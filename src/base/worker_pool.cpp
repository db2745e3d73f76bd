#include "base/worker_pool.h"

#include <algorithm>
#include <array>
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

/// A share into parts that get shorter: threads are not equally fast, nor all there, and who has
/// done its own takes what others have not begun. With one core 0.5 to 1 times as fast as the other
/// these lengths leave 1.7 % of the time unused in the mean, 4.8 % at most; four equal parts would
/// leave 5.9 and 14 %.
class Parts {
  public:
    /// `pieces`: how many a share has of the grain's length.
    static unsigned count_of(std::size_t pieces) {
        return static_cast<unsigned>(std::clamp<std::size_t>(pieces, 1, ends.size()));
    }
    Parts(std::size_t length, std::size_t pieces) : length_(length), pieces_(pieces) {}
    [[nodiscard]] std::size_t begin(std::size_t part) const {
        if (pieces_ < unit) return Cut(length_, count_of(pieces_)).begin(part);
        return part == 0 ? 0 : length_ * ends[part - 1] / unit;
    }

  private:
    static constexpr std::size_t unit = 16;
    static constexpr std::array<std::size_t, 6> ends{5, 9, 12, 14, 15, 16};
    std::size_t length_, pieces_;
};

}  // namespace

WorkerPool::WorkerPool(int threads) : threads_(threads), loop_threads_(threads) {
    assert(threads >= 1 && threads <= most_threads);
}

WorkerPool::~WorkerPool() = default;

void WorkerPool::run(std::size_t count, std::size_t grain, Invoke call, const void* body) {
    if (team_ == nullptr) team_ = std::make_unique<ThreadTeam>(static_cast<unsigned>(threads_));
    const std::size_t most = count / std::max<std::size_t>(grain, 1);
    const auto owners = static_cast<unsigned>(std::min<std::size_t>(most, team_->threads()));
    const std::size_t pieces = owners == 1 ? 1 : most / owners;
    const Cut shares(count, owners);
    team_->each(owners, Parts::count_of(pieces), ThreadTeam::Help::all, 0,
                [&](unsigned owner, unsigned part, unsigned worker, int) {
                    const std::size_t first = shares.begin(owner);
                    const Parts share(shares.begin(owner + 1) - first, pieces);
                    call(body, first + share.begin(part), first + share.begin(part + 1), worker);
                });
}

}  // namespace reef
