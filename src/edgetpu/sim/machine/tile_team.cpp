#include "tile_team.h"

#include <algorithm>
#include <bit>
#include <system_error>

namespace reef::edgetpu::sim {
namespace {

constexpr unsigned looks_before_sleep = 2048;
constexpr unsigned looks_before_yield = 1024;
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

/// So many of the tiles: the caller's from below, others' from above, so that each thread mostly
/// has those whose memories are in its caches.
std::uint32_t share(std::uint32_t tiles, unsigned count, bool from_below) {
    std::uint32_t taken = 0;
    for (; count > 0; --count) {
        const std::uint32_t one = from_below ? tiles & (~tiles + 1) : std::bit_floor(tiles);
        taken |= one;
        tiles &= ~one;
    }
    return taken;
}

}  // namespace

TileTeam::TileTeam(unsigned threads) : threads_(threads) {
    others_.reserve(threads - 1);
    try {
        for (unsigned worker = 1; worker < threads; ++worker)
            others_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::system_error&) {
        // The system gives no more of them: those that there are do the work.
        threads_ = static_cast<unsigned>(others_.size()) + 1;
    }
}

TileTeam::~TileTeam() {
    over_ = true;
    ++calls_;
    calls_.notify_all();
    for (auto& thread : others_) thread.join();
}

// Half of a fair part of what is left, and does them; false when nothing is.
bool TileTeam::take_some(unsigned worker) {
    std::uint64_t open = open_.load();
    std::uint32_t mine = 0;
    do {
        const std::uint32_t tiles = tiles_of(open);
        if (tiles == 0) return false;
        const auto left = static_cast<unsigned>(std::popcount(tiles));
        mine = share(tiles, std::max(left / (2 * threads_), 1U), worker == 0);
    } while (!open_.compare_exchange_weak(open, open & ~std::uint64_t{mine}));
    const auto count = static_cast<unsigned>(std::popcount(mine));
    for (; mine != 0; mine &= mine - 1)
        call_(work_, static_cast<unsigned>(std::countr_zero(mine)), worker);
    undone_.fetch_sub(count);
    return true;
}

void TileTeam::run(std::uint32_t tiles, Invoke call, const void* work) {
    call_ = call;
    work_ = work;
    undone_ = static_cast<unsigned>(std::popcount(tiles));
    const std::uint64_t number = (open_.load() >> bits_of_tiles) + 1;
    open_ = number << bits_of_tiles | tiles;
    if (sleepers_ != 0) {
        ++calls_;
        calls_.notify_all();
    }
    while (take_some(0)) {
    }
    for (unsigned looks = 0; undone_ != 0; ++looks) {
        relax();
        if (looks >= looks_before_yield) std::this_thread::yield();
    }
}

void TileTeam::sleep() {
    ++sleepers_;
    const std::uint32_t calls = calls_;
    if (tiles_of(open_) == 0 && !over_) calls_.wait(calls);
    --sleepers_;
}

void TileTeam::serve(unsigned worker) {
    unsigned looks = 0;
    while (!over_) {
        if (take_some(worker)) {
            looks = 0;
        } else if (++looks < looks_before_sleep) {
            relax();
        } else {
            sleep();
            looks = 0;
        }
    }
}

}  // namespace reef::edgetpu::sim
