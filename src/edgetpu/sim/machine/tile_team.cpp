#include "tile_team.h"

#include <bit>
#include <system_error>

namespace reef::edgetpu::sim {
namespace {

constexpr unsigned looks_before_sleep = 8192;
constexpr unsigned looks_before_yield = 1024;
/// A microsecond or two: a tile that another core has worked on costs more than that to fetch.
constexpr unsigned looks_before_late = 128;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Neighbours, which send each other words, have one owner as far as possible; yet programs that
/// use one row or one column of tiles share its work, too.
unsigned owner_of(unsigned tile, unsigned threads) {
    constexpr unsigned side = grid_side / 2, quarter = side * side;
    const unsigned row = tile / grid_side, column = tile % grid_side;
    const unsigned south = row / side, east = column / side;
    // North-west, south-east, north-east, south-west.
    const unsigned block = 2 * (south ^ east) + south;
    const unsigned place = quarter * block + side * (row % side) + column % side;
    return place * threads / tile_count;
}

void each_of(std::uint32_t tiles, auto&& tell) {
    for (; tiles != 0; tiles &= tiles - 1) tell(static_cast<unsigned>(std::countr_zero(tiles)));
}

std::uint32_t first_half(std::uint32_t tiles) {
    std::uint32_t others = tiles;
    for (int left = (std::popcount(tiles) + 1) / 2; left > 0; --left) others &= others - 1;
    return tiles ^ others;
}

// Values of Share::taken.
constexpr std::uint64_t half_of(std::uint64_t call) {
    return 2 * call;
}
constexpr std::uint64_t all_of(std::uint64_t call) {
    return 2 * call + 1;
}

}  // namespace

TileTeam::TileTeam(unsigned threads) : threads_(threads), shares_(threads), late_(threads) {
    others_.reserve(threads - 1);
    try {
        for (unsigned worker = 1; worker < threads; ++worker)
            others_.emplace_back([&mine = shares_[worker], worker] { serve(mine, worker); });
    } catch (const std::system_error&) {
        // The system gives no more of them: those that there are do the work.
        threads_ = static_cast<unsigned>(others_.size()) + 1;
    }
    for (unsigned tile = 0; tile < tile_count; ++tile)
        tiles_[owner_of(tile, threads_)] |= 1U << tile;
}

TileTeam::~TileTeam() {
    for (Share& share : shares_) {
        share.given.over = true;
        share.asleep = 0;
        share.asleep.notify_one();
    }
    for (auto& thread : others_) thread.join();
}

// One of the thread and the caller succeeds.
bool TileTeam::take(Share& share, std::uint64_t part) {
    std::uint64_t taken = share.taken.load(std::memory_order_relaxed);
    while (taken < part)
        if (share.taken.compare_exchange_weak(taken, part, std::memory_order_acq_rel)) return true;
    return false;
}

// False when the thread has not come since it was late: somebody else has to do them. One that
// sleeps is given them all the same: it may be there before the caller has done its own.
bool TileTeam::give(unsigned worker, std::uint32_t tiles, Call call) {
    Share& share = shares_[worker];
    auto& given = share.given;
    const bool here = !late_[worker] || share.done.load(std::memory_order_acquire) == given.number;
    if (here) {
        late_[worker] = false;
        given.tiles = tiles;
        given.call = call;
        given.number.store(calls_, std::memory_order_release);
    }
    if (share.asleep.load(std::memory_order_relaxed) != 0 && share.asleep.exchange(0) != 0)
        share.asleep.notify_one();
    return here;
}

// What the thread has not begun; false when it is at work on the rest.
bool TileTeam::do_instead(Share& share, unsigned worker) {
    const auto& [number, tiles, call, over] = share.given;
    std::uint64_t taken = share.taken.load(std::memory_order_relaxed);
    if (taken == all_of(calls_) ||
        !share.taken.compare_exchange_strong(taken, all_of(calls_), std::memory_order_acq_rel))
        return false;
    const bool begun = taken == half_of(calls_);
    each_of(begun ? tiles ^ first_half(tiles) : tiles,
            [&](unsigned tile) { call.call(call.work, tile, 0); });
    late_[worker] = !begun;
    return !begun;
}

void TileTeam::wait_for(unsigned worker) {
    Share& share = shares_[worker];
    for (unsigned looks = 0; share.done.load(std::memory_order_acquire) != calls_; ++looks) {
        if (looks >= looks_before_late && do_instead(share, worker)) return;
        relax();
        if (looks >= looks_before_yield) std::this_thread::yield();
    }
}

void TileTeam::run(std::uint32_t tiles, Call call) {
    ++calls_;
    std::uint32_t with = 0;
    for (unsigned worker = 1; worker < threads_; ++worker) {
        const std::uint32_t others = tiles & tiles_[worker];
        if (others == 0 || !give(worker, others, call)) continue;
        tiles &= ~others;
        with |= 1U << worker;
    }
    each_of(tiles, [&](unsigned tile) { call.call(call.work, tile, 0); });
    each_of(with, [&](unsigned worker) { wait_for(worker); });
}

void TileTeam::sleep(Share& mine, std::uint64_t seen) {
    mine.asleep = 1;
    if (mine.given.number == seen && !mine.given.over) mine.asleep.wait(1);
    mine.asleep = 0;
}

void TileTeam::serve(Share& mine, unsigned worker) {
    const auto& given = mine.given;
    std::uint64_t seen = 0;
    for (unsigned looks = 0; !given.over.load(std::memory_order_relaxed); ++looks) {
        const std::uint64_t number = given.number.load(std::memory_order_acquire);
        if (number == seen) {
            relax();
            if (looks < looks_before_sleep) continue;
            sleep(mine, seen);
            looks = 0;
            continue;
        }
        seen = number;
        looks = 0;
        const auto work = [&](std::uint32_t tiles) {
            each_of(tiles, [&](unsigned tile) { given.call.call(given.call.work, tile, worker); });
        };
        // What was given stays until it is done.
        if (take(mine, half_of(number))) work(first_half(given.tiles));
        if (take(mine, all_of(number))) work(given.tiles ^ first_half(given.tiles));
        mine.done.store(number, std::memory_order_release);
    }
}

}  // namespace reef::edgetpu::sim
