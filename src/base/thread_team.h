// Threads that do one thing together, many times in a row and for some microseconds each time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

namespace reef {

/// The work of a call is cut into shares, one for each worker, whose data stay in its core's
/// caches from call to call, and every share into parts. Who has nothing left takes parts of
/// others: the caller all of those that a thread does not come for, so that nobody waits for one
/// that the system does not run, unless it has come. A thread that has nothing to do looks for work
/// for some tenths of a millisecond, which is longer than from one call to the next, and sleeps
/// then.
///
/// Cores that share no cache take 0.2 us to see each other's words: a call costs the caller two or
/// three of them. (oneTBB 2021.8 takes 1 to 4 us for two tasks on the same cores, by measurement.)
///
/// One call at a time, by one thread, and none from inside of its work.
class ThreadTeam {
  public:
    static constexpr unsigned most_parts = 127;
    static constexpr std::size_t most_argument_bytes = 32;

    /// The calling thread is one of them.
    explicit ThreadTeam(unsigned threads);
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;
    ~ThreadTeam();

    /// Less than were wanted where the system gives no more.
    [[nodiscard]] unsigned threads() const { return threads_; }

    enum class Help : std::uint8_t {
        /// Whoever has done its share goes on with parts of others' at once.
        all,
        /// Only the caller, of threads that are late by a few microseconds: for shares whose data
        /// cost as much to fetch from another core. Of its own share nobody takes a part.
        late,
    };

    /// work(owner, part, worker, argument) once for every part in [0, parts) of each owner below
    /// `owners`; returns behind the last. Workers are below `owners`, too, and a worker's calls
    /// come one after the other. What the caller does not write between two calls stays in the
    /// others' caches: `work` had better be such an object. A copy of the argument comes with the
    /// word that there is work, in one line of their caches. `work` throws nothing: the program
    /// would end. Preconditions: 1 <= owners <= threads(), 1 <= parts <= most_parts.
    template <typename Argument, typename Work>
    void each(unsigned owners, unsigned parts, Help help, const Argument& argument,
              const Work& work) {
        static_assert(std::is_trivially_copyable_v<Argument> &&
                      sizeof(Argument) <= most_argument_bytes && alignof(Argument) <= 8);
        Call call{.invoke = &invoke<Work, Argument>,
                  .work = &work,
                  .owners = static_cast<std::uint16_t>(owners),
                  .parts = static_cast<std::uint8_t>(parts),
                  .help = help};
        std::memcpy(call.argument.data(), &argument, sizeof argument);
        run(call);
    }

  private:
    using Invoke = void (*)(const void* work, unsigned owner, unsigned part, unsigned worker,
                            const std::byte* argument);
    template <typename Work, typename Argument>
    static void invoke(const void* work, unsigned owner, unsigned part, unsigned worker,
                       const std::byte* argument) {
        Argument copy;
        std::memcpy(&copy, argument, sizeof copy);
        (*static_cast<const Work*>(work))(owner, part, worker, copy);
    }
    /// One of each().
    struct Call {
        Invoke invoke = nullptr;
        const void* work = nullptr;
        alignas(8) std::array<std::byte, most_argument_bytes> argument{};
        std::uint16_t owners = 0;
        std::uint8_t parts = 0;
        Help help = Help::all;

        void operator()(unsigned owner, unsigned part, unsigned worker) const {
            invoke(work, owner, part, worker, argument.data());
        }
    };
    /// How far a share is, as one word: of which call, whether its owner has come for it, and how
    /// many parts somebody has taken.
    class Progress;
    /// One worker's, in a line for each who writes it. The caller's has only `taken`.
    struct Share {
        /// The caller's: the number of the call that gives the thread work. One line of a cache.
        struct alignas(64) Given {
            std::atomic<std::uint64_t> number{0};
            Call call;
        } given;
        static_assert(sizeof(Given) == 64);
        alignas(64) std::atomic<std::uint64_t> taken{0};  ///< a Progress
        /// The thread's: the number of the last call to which it has nothing to add.
        alignas(64) std::atomic<std::uint64_t> done{0};
        std::atomic<std::uint32_t> asleep{0};  ///< 1: it is
    };
    void run(const Call& call) noexcept;
    void give(unsigned worker, const Call& call);
    void help(const Call& call, unsigned owner, unsigned& patience);
    void wait_for(unsigned worker);
    [[nodiscard]] bool ends(const Share& share, unsigned looks) const;
    [[nodiscard]] bool owner_came(const Share& share) const;
    [[nodiscard]] static std::optional<unsigned> take(Share& share, std::uint64_t number,
                                                      unsigned parts, bool is_owner);
    void serve(unsigned worker);
    void work_on(const Call& call, std::uint64_t number, unsigned worker);
    static void sleep(Share& mine, std::uint64_t seen);

    unsigned threads_;
    std::vector<Share> shares_;  ///< by worker
    /// In place of a call's number: there will be none any more.
    static constexpr std::uint64_t over = ~std::uint64_t{0};

    // The caller's.
    alignas(64) std::uint64_t calls_ = 0;  ///< so far
    bool is_called_ = false;               ///< now
    std::vector<bool> late_;               ///< by worker: it did not come for its share
    std::vector<std::thread> others_;
};

}  // namespace reef
