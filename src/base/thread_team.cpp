#include "base/thread_team.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <exception>

namespace reef {
namespace {

// One takes 27 ns on Zen 3.
constexpr unsigned looks_before_sleep = 8192;
constexpr unsigned looks_before_late = 128;
constexpr unsigned looks_before_yield = 1024;
constexpr unsigned looks_between = 16;
/// Some milliseconds; behind them even a thread of lower priority has its turn.
constexpr unsigned yields_before_rest = 10'000;
constexpr std::chrono::microseconds rest(50);

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    // `yield` does nothing on most cores.
    asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

class ThreadTeam::Progress {
  public:
    explicit Progress(std::uint64_t word) : word_(word) {}
    static Progress beginning(std::uint64_t call) { return Progress(call << call_shift); }

    [[nodiscard]] std::uint64_t word() const { return word_; }
    [[nodiscard]] std::uint64_t call() const { return word_ >> call_shift; }
    [[nodiscard]] bool owner_came() const { return (word_ & came) != 0; }
    [[nodiscard]] unsigned parts() const { return static_cast<unsigned>(word_ & most_parts); }
    [[nodiscard]] Progress with_next(bool is_owner) const {
        return Progress((word_ + 1) | (is_owner ? came : 0));
    }

  private:
    static constexpr int call_shift = 8;
    static constexpr std::uint64_t came = most_parts + 1;
    std::uint64_t word_;
};

ThreadTeam::ThreadTeam(unsigned threads) : threads_(threads), shares_(threads), late_(threads) {
    assert(threads >= 1);
    others_.reserve(threads - 1);
    try {
        for (unsigned worker = 1; worker < threads; ++worker)
            others_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::exception&) {
        // The system gives no more of them: those that there are do the work.
        threads_ = static_cast<unsigned>(others_.size()) + 1;
    }
}

// All orders are sequential here and in sleep(): one of the two sees what the other has written.
ThreadTeam::~ThreadTeam() {
    for (Share& share : shares_) {
        share.given.number = over;
        share.asleep = 0;
        share.asleep.notify_one();
    }
    for (auto& thread : others_) thread.join();
}

/// The next part that nobody has taken; nothing when there is none, or when the share is a later
/// call's.
std::optional<unsigned> ThreadTeam::take(Share& share, std::uint64_t number, unsigned parts,
                                         bool is_owner) {
    std::uint64_t word = share.taken.load(std::memory_order_relaxed);
    for (;;) {
        const Progress seen(word);
        if (seen.call() > number) return std::nullopt;
        const Progress now = seen.call() == number ? seen : Progress::beginning(number);
        if (now.parts() == parts) return std::nullopt;
        if (share.taken.compare_exchange_weak(word, now.with_next(is_owner).word(),
                                              std::memory_order_acq_rel, std::memory_order_relaxed))
            return now.parts();
    }
}

/// What was given stays until the thread is done with it: one that is late gets nothing. One that
/// sleeps is given its share all the same: it may be there before the caller has done its own. A
/// thread that is just falling asleep may miss this call, for nobody needs it; the next one wakes
/// it.
void ThreadTeam::give(unsigned worker, const Call& call) {
    Share& share = shares_[worker];
    auto& given = share.given;
    if (late_[worker]) late_[worker] = share.done.load(std::memory_order_acquire) != given.number;
    if (!late_[worker]) {
        given.call = call;
        given.number.store(calls_, std::memory_order_release);
    }
    if (share.asleep.load(std::memory_order_relaxed) != 0 && share.asleep.exchange(0) != 0)
        share.asleep.notify_one();
}

/// Whether the thread is done with the call within so many looks.
bool ThreadTeam::ends(const Share& share, unsigned looks) const {
    for (; looks > 0; --looks) {
        if (share.done.load(std::memory_order_acquire) == calls_) return true;
        relax();
    }
    return false;
}

bool ThreadTeam::owner_came(const Share& share) const {
    const Progress now(share.taken.load(std::memory_order_relaxed));
    return now.call() == calls_ && now.owner_came();
}

/// The caller, of another's share. A look at `taken` takes its line from the thread that writes it,
/// one at `done` does not before the end.
void ThreadTeam::help(const Call& call, unsigned owner, unsigned& patience) {
    Share& share = shares_[owner];
    while (!late_[owner] && patience > 0) {
        if (call.help == Help::all && owner_came(share)) break;
        const unsigned looks =
            call.help == Help::late ? patience : std::min(patience, looks_between);
        if (ends(share, looks)) return;
        patience -= looks;
    }
    while (const auto part = take(share, calls_, call.parts, false)) call(owner, *part, 0);
}

/// Of a share that has no part left: who has not come by now finds nothing to do.
void ThreadTeam::wait_for(unsigned worker) {
    Share& share = shares_[worker];
    if (late_[worker] || ends(share, 1)) return;
    late_[worker] = !owner_came(share);
    if (late_[worker] || ends(share, looks_before_yield)) return;
    for (unsigned yields = 0; !ends(share, looks_between); ++yields) {
        if (yields < yields_before_rest)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(rest);
    }
}

void ThreadTeam::run(const Call& call) noexcept {
    assert(call.owners >= 1 && call.owners <= threads_);
    assert(call.parts >= 1 && call.parts <= most_parts);
    assert(!is_called_);
    is_called_ = true;
    ++calls_;
    for (unsigned worker = 1; worker < call.owners; ++worker) give(worker, call);
    if (call.help == Help::all) {
        while (const auto part = take(shares_[0], calls_, call.parts, true)) call(0, *part, 0);
    } else {
        for (unsigned part = 0; part < call.parts; ++part) call(0, part, 0);
    }
    unsigned patience = looks_before_late;
    for (unsigned worker = 1; worker < call.owners; ++worker) help(call, worker, patience);
    for (unsigned worker = 1; worker < call.owners; ++worker) wait_for(worker);
    is_called_ = false;
}

void ThreadTeam::work_on(const Call& call, std::uint64_t number, unsigned worker) {
    bool came = false;
    while (const auto part = take(shares_[worker], number, call.parts, true)) {
        came = true;
        call(worker, *part, worker);
    }
    // The caller waits for those that came, and for nobody else.
    if (!came || call.help == Help::late) return;
    for (unsigned next = 1; next < call.owners; ++next) {
        const unsigned owner = (worker + next) % call.owners;
        while (const auto part = take(shares_[owner], number, call.parts, false))
            call(owner, *part, worker);
    }
}

void ThreadTeam::sleep(Share& mine, std::uint64_t seen) {
    mine.asleep = 1;
    if (mine.given.number == seen) mine.asleep.wait(1);
    mine.asleep = 0;
}

void ThreadTeam::serve(unsigned worker) {
    Share& mine = shares_[worker];
    const auto& given = mine.given;
    std::uint64_t seen = 0;
    for (unsigned looks = 0;; ++looks) {
        const std::uint64_t number = given.number.load(std::memory_order_acquire);
        if (number == over) return;
        if (number == seen) {
            relax();
            if (looks < looks_before_sleep) continue;
            sleep(mine, seen);
            looks = 0;
            continue;
        }
        seen = number;
        looks = 0;
        work_on(given.call, number, worker);
        mine.done.store(number, std::memory_order_release);
    }
}

}  // namespace reef
