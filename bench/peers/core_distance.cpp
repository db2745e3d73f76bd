#include "peers/core_distance.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

namespace reef::peers {
namespace {

bool stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

std::vector<int> own_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    return cores;
}

struct alignas(64) Word {
    std::atomic<int> value{0};
};

}  // namespace

std::optional<double> core_distance_ns() {
    const std::vector<int> cores = own_cores();
    if (cores.size() < 2) return std::nullopt;
    constexpr int turns = 2000, attempts = 10;
    double least = std::numeric_limits<double>::max();
    Word word;
    // Two threads on one core would wait for each other's time to be over.
    std::atomic<int> arrived = 0, placed = 0;
    const auto both_are_placed = [&](int core) {
        if (stay_on(core)) ++placed;
        for (++arrived; arrived < 2;) std::this_thread::yield();
        return placed == 2;
    };
    // Both are threads of their own, so that the caller's cores stay what they are.
    std::jthread there([&] {
        if (!both_are_placed(cores[1])) return;
        for (int i = 0; i < turns * attempts; ++i) {
            while (word.value.load(std::memory_order_acquire) != 2 * i + 1) {
            }
            word.value.store(2 * i + 2, std::memory_order_release);
        }
    });
    std::jthread here([&] {
        if (!both_are_placed(cores[0])) return;
        for (int attempt = 0, i = 0; attempt < attempts; ++attempt) {
            const auto begin = std::chrono::steady_clock::now();
            for (int turn = 0; turn < turns; ++turn, ++i) {
                word.value.store(2 * i + 1, std::memory_order_release);
                while (word.value.load(std::memory_order_acquire) != 2 * i + 2) {
                }
            }
            const std::chrono::duration<double, std::nano> taken =
                std::chrono::steady_clock::now() - begin;
            least = std::min(least, taken.count() / turns);
        }
    });
    here.join();
    there.join();
    if (placed != 2) return std::nullopt;
    return least;
}

}  // namespace reef::peers
