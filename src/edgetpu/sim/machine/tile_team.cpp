#include "tile_team.h"

#include <bit>
#include <system_error>

namespace reef::edgetpu::sim {
namespace {

constexpr unsigned looks_before_sleep = 8192;
constexpr unsigned looks_before_yield = 1024;
/// A microsecond or two: a tile that another core has worked on costs more than that to fetch.
constexpr unsigned looks_before_others = 128;
constexpr unsigned bits_of_tiles = 32;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

std::uint32_t tiles_of(std::uint64_t open) {
    return static_cast<std::uint32_t>(open);
}

/// Programs that use one row or one column of tiles share its work, too.
unsigned owner_of(unsigned tile, unsigned threads) {
    const unsigned row = tile / grid_side;
    return (row * grid_side + (tile + row) % grid_side) % threads;
}

}  // namespace

TileTeam::TileTeam(unsigned threads) : threads_(threads), shares_(threads) {
    others_.reserve(threads - 1);
    try {
        for (unsigned worker = 1; worker < threads; ++worker)
            others_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::system_error&) {
        // The system gives no more of them: those that there are do the work.
        threads_ = static_cast<unsigned>(others_.size()) + 1;
    }
    for (unsigned tile = 0; tile < tile_count; ++tile)
        tiles_[owner_of(tile, threads_)] |= 1U << tile;
}

TileTeam::~TileTeam() {
    for (Share& share : shares_) {
        share.over = true;
        share.asleep = 0;
        share.asleep.notify_one();
    }
    for (auto& thread : others_) thread.join();
}

// Whoever takes a tile has seen what is written before.
void TileTeam::open(Share& share, std::uint32_t tiles, Call call) const {
    share.given = tiles;
    share.call = call.call;
    share.work = call.work;
    share.open = calls_ << bits_of_tiles | tiles;
}

// False when the thread is away: somebody else has to do them.
bool TileTeam::give(Share& share, std::uint32_t tiles, Call call) {
    const bool here = !share.away;
    if (here) open(share, tiles, call);
    if (share.asleep != 0 && share.asleep.exchange(0) != 0) share.asleep.notify_one();
    return here;
}

// Takes one of the share's tiles and does it; false when none is left. Who has the share begins
// below, others above: they meet late.
bool TileTeam::take_one(Share& share, unsigned worker) {
    const bool owner = &share == &shares_[worker];
    std::uint64_t open = share.open.load(std::memory_order_acquire);
    std::uint32_t one = 0;
    do {
        const std::uint32_t tiles = tiles_of(open);
        if (tiles == 0) return false;
        one = owner ? tiles & (~tiles + 1) : std::bit_floor(tiles);
    } while (!share.open.compare_exchange_weak(open, open & ~std::uint64_t{one},
                                               std::memory_order_acq_rel));
    // The caller of each() is never away: it does what the others do not.
    if (!owner && &share != &shares_[0] && tiles_of(open) == share.given) share.away = true;
    share.call(share.work, static_cast<unsigned>(std::countr_zero(one)), worker);
    std::atomic<std::uint32_t>& done = shares_[worker].done;
    done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return true;
}

bool TileTeam::take_from_others(unsigned worker) {
    for (Share& share : shares_)
        if (&share != &shares_[worker] &&
            tiles_of(share.open.load(std::memory_order_relaxed)) != 0 && take_one(share, worker))
            return true;
    return false;
}

bool TileTeam::all_done() const {
    std::uint32_t done = 0;
    for (const Share& share : shares_) done += share.done.load(std::memory_order_acquire);
    return done == given_;
}

void TileTeam::run(std::uint32_t tiles, Call call) {
    ++calls_;
    given_ += static_cast<std::uint32_t>(std::popcount(tiles));
    for (unsigned worker = 1; worker < threads_; ++worker) {
        const std::uint32_t others = tiles & tiles_[worker];
        if (others != 0 && give(shares_[worker], others, call)) tiles &= ~others;
    }
    open(shares_[0], tiles, call);
    while (take_one(shares_[0], 0)) {
    }
    for (unsigned looks = 0; !all_done(); ++looks) {
        if (looks >= looks_before_others && take_from_others(0)) continue;
        relax();
        if (looks >= looks_before_yield) std::this_thread::yield();
    }
}

void TileTeam::sleep(Share& mine) {
    mine.away = true;
    mine.asleep = 1;
    if (tiles_of(mine.open) == 0 && !mine.over) mine.asleep.wait(1);
    mine.asleep = 0;
}

void TileTeam::serve(unsigned worker) {
    Share& mine = shares_[worker];
    for (unsigned looks = 0; !mine.over.load(std::memory_order_relaxed); ++looks) {
        if (mine.away.load(std::memory_order_relaxed)) mine.away = false;
        if (take_one(mine, worker)) {
            looks = 0;
        } else if (looks >= looks_before_sleep) {
            sleep(mine);
            looks = 0;
        } else if (looks % looks_before_others != looks_before_others - 1 ||
                   !take_from_others(worker)) {
            relax();
        }
    }
}

}  // namespace reef::edgetpu::sim
