// The whole chip: scalar core, sixteen tiles, buses, and the order in which their engines advance.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "base/thread_team.h"
#include "edgetpu/sim/core/core_hold.h"
#include "edgetpu/sim/core/scalar_core.h"
#include "edgetpu/sim/core/scalar_engines.h"
#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/tile/blend_engine.h"
#include "edgetpu/sim/tile/engines.h"
#include "edgetpu/sim/tile/fast_tensor_engine.h"
#include "edgetpu/sim/tile/reduction_engine.h"
#include "edgetpu/sim/tile/tensor_engine.h"
#include "edgetpu/sim/tile/tile.h"
#include "machine_status.h"
#include "reef/edgetpu/simulator.h"
#include "tile_shares.h"

namespace reef::edgetpu::sim {

/// Instructions that may wait at once, as if none of a program's were executed before all are
/// issued; loops of the scalar core can still issue more.
struct QueueSizes {
    std::array<std::size_t, tile_engine_count> of_engine{};
    std::size_t of_tiles = 0;
    std::size_t of_scalar = 0;

    void include(const ProgramInstruction& at) {
        ++(at.source.info->space == Space::tile ? of_tiles : of_scalar);
        if (at.engine != no_engine) ++of_engine[at.engine];
    }
};

/// A program: the streams of one executable, in order. Refers to the streams' bytes.
struct Program {
    std::vector<Stream> streams;
    std::vector<TensorShape> shapes;  ///< by instruction number
    std::uint64_t most_live_positions = 1;
    std::vector<TensorPlan> plans;       ///< of tensor instructions, in order
    std::vector<std::uint32_t> plan_at;  ///< by instruction number: index into plans
    std::uint64_t most_parts = 0;        ///< values of sums that stay between blocks
    ScratchSizes scratch;                ///< of the fast plans
    QueueSizes queues;
    /// Bytes of narrow memory that the executable declares; 0: it does not.
    std::uint64_t narrow_bound = 0;
};
[[nodiscard]] Result<Program> translate_program(std::span<const Bytes> streams);

/// Of the system's steady clock.
[[nodiscard]] std::chrono::nanoseconds steady_time();

struct MachineOptions {
    EngineKind engine = EngineKind::fast;
    /// Seed of the random scheduler; nothing: the deterministic one.
    std::optional<std::uint64_t> random_seed = std::nullopt;
    /// Rows of rotating buffers remember whether they are full: see TileMemory::full.
    bool full_bits = true;
    /// Whether a Monitor watches; the engines are then the plain ones.
    bool strict = false;
    /// After which a program is stopped, as in SimulatorOptions.
    std::uint64_t most_steps = SimulatorOptions{}.most_steps;
    std::uint64_t most_scalar_instructions = SimulatorOptions{}.most_scalar_instructions;
    /// A stepwise run, of which it is told: in a round the scalar core executes one instruction at
    /// most, and an engine takes one up, makes one visit of its nests, or ends one. The engines are
    /// the plain ones. Not with random_seed. Must outlive the machine.
    StepObserver* steps = nullptr;
    /// Looks on; must outlive the machine.
    TensorTap* tap = nullptr;
    /// Holds the scalar core; must outlive the machine.
    CoreHold* hold = nullptr;
    /// That compute tiles side by side, unless something must be told in order.
    int threads = 1;
    /// By which they share tiles out: any clock gives the same bytes. Called by each of them.
    std::chrono::nanoseconds (*tile_clock)() = steady_time;
};

/// How far a round brought a program.
struct Progress {
    bool moved = false;    ///< the scalar core or an engine did something
    bool starved = false;  ///< nothing can go on before the host sends bytes or takes some
    bool held = false;     ///< or before the scalar core is let go
    bool ended = false;    ///< the program's last stream is over and every engine idle
};

class Machine final : public Fabric {
  public:
    explicit Machine(MachineOptions options = {});

    /// Goes to a program's first instruction, on the memories as they are. What an earlier program
    /// left in queues and buses is gone. Everything is referred to until the program ends or
    /// another one begins.
    void begin(const Program& program, HostPort& host);
    /// One round of the scheduler: the scalar core runs ahead until something holds it, then each
    /// of its engines and every tile has a turn. After the end nothing happens.
    /// Precondition: a program has begun, and no round of it returned an error.
    /// Errors: unsupported ("not modelled"), bad_input (a fault of the program, a deadlock that no
    /// byte of the host can end) with the place in the stream; those of the watch.
    [[nodiscard]] Result<Progress> advance();
    /// Asked in every round, from the next on; an error ends the program with it. Null: nobody.
    /// Must outlive the machine's work.
    void watch(const RunWatch* watch) { run_watch_ = watch; }
    /// begin() and advance() to the end. A host that has nothing is a deadlock here.
    [[nodiscard]] Status run(const Program& program, HostPort& host);

    /// Every unit that waits, and for what: an error, should nothing end it.
    [[nodiscard]] Error deadlock() const;

    /// Null unless options.strict.
    [[nodiscard]] Monitor* monitor() { return monitor_.get(); }
    [[nodiscard]] Tile& tile(unsigned number) {
        count_produced(*units_[number], round_);
        return units_[number]->tile;
    }

    // What everything is doing, between two rounds.
    /// Which thread has which tiles.
    [[nodiscard]] const TileShares& shares() const { return tile_turns_.shares; }
    [[nodiscard]] EngineStatus engine(unsigned tile, unsigned number) const;
    [[nodiscard]] EngineStatus scalar_engine(unsigned number) const;
    [[nodiscard]] DispatchStatus dispatcher(unsigned tile) const;
    [[nodiscard]] CoreStatus core_status() const;
    /// Null when the core has halted, or is at no instruction.
    [[nodiscard]] const ProgramInstruction* next_of_core() const;
    [[nodiscard]] ScalarCore& core() { return core_; }
    [[nodiscard]] ScalarState& scalar() { return scalar_; }

    [[nodiscard]] bool ring_has_room(Ring ring, std::uint16_t tiles, bool scalar) const override;
    void ring_send(Ring ring, std::uint16_t tiles, bool scalar,
                   std::span<const std::uint8_t> data) override;
    std::size_t ring_send_each(Ring ring, std::uint16_t tiles, std::size_t size,
                               std::span<const std::uint8_t> data) override;
    std::uint32_t ring_send_rows(Ring ring, std::uint16_t tiles, const TileMemory& memory,
                                 const Rows& rows) override;
    void count_producer(Ring ring, unsigned events) override;
    [[nodiscard]] MeshLink* link_from(unsigned tile, Direction to) override;

  private:
    static constexpr std::uint32_t all_tiles = (1U << tile_count) - 1;
    using TileActivity =
        std::variant<std::monostate, TensorEngine, FastTensorEngine, BlendEngine, ReductionEngine,
                     TableEngine, RingSendEngine, RingReceiveEngine, NarrowToWideEngine,
                     WideToNarrowEngine, MeshEngine>;
    using ScalarActivity =
        std::variant<std::monostate, InfeedEngine, RingPushEngine, RingPopEngine>;

    /// An instruction on its way, with what registers held when it was issued.
    struct Issued {
        static constexpr std::uint32_t own_base = std::numeric_limits<std::uint32_t>::max();

        const ProgramInstruction* instruction = nullptr;
        std::uint32_t source_base = own_base;  ///< see TileIssue; own_base: the instruction's
        std::uint8_t lines = 0;                ///< of the instruction
        std::uint8_t engine = no_engine;       ///< of a tile, the instruction's
        std::uint16_t tiles = 0;               ///< bits
    };
    template <typename Activity>
    struct Engine {
        const ProgramInstruction* current = nullptr;
        Blocked blocked;
        std::size_t next = 0;
        std::vector<Issued> queue;
        std::vector<Release> after;  ///< in strict runs, of who issued each
        Activity activity;

        [[nodiscard]] bool idle() const { return current == nullptr && next == queue.size(); }
        void empty_queue() {
            queue.clear();
            after.clear();
            next = 0;
        }
    };
    struct alignas(64) TileUnit {
        std::uint32_t busy = 0;      ///< bit: the engine of that number is not idle
        std::uint32_t held_for = 0;  ///< engines that the next fence waits for
        Blocked held_until;          ///< messages that it waits for then
        std::size_t next = 0;        ///< of issued_: all before it are dispatched
        bool at_fence = false;    ///< in stepwise runs: the next in line is one, and was taken up
        std::uint8_t awaits = 0;  ///< bits by Ring: something waits for its producers' count
        std::array<std::uint16_t, 2> produced_counted{};  ///< of Round::produced, by Ring
        std::array<Engine<TileActivity>, tile_engine_count> engines;
        TensorState tensor;
        Tile tile;
    };
    /// What a tile's engines compute with in one turn, what of steps_left_ they used up, and what
    /// stopped one of them.
    struct Purse {
        Work work;
        std::uint64_t most = 0;  ///< of one turn
        std::uint64_t spent = 0;
        std::unique_ptr<Error> error{};  ///< null: none
    };
    /// What came of the tiles that one worker did in a round. Tiles by number are bits.
    struct Report {
        std::uint32_t round = 0;                  ///< which, by Round::number
        std::uint32_t spent = 0;                  ///< steps
        std::uint32_t taken = 0;                  ///< for `done`, in nanoseconds; in timed rounds
        std::uint32_t unfinished = 0;             ///< that could go on
        std::uint32_t sending = 0;                ///< whose ring producer is busy
        std::uint32_t reached = 0;                ///< by words of the mesh, or by room for them
        std::uint32_t notified = 0;               ///< whose fences have notified the scalar core
        std::array<std::uint32_t, 2> awaiting{};  ///< that have TileUnit::awaits, by Ring
        unsigned done = 0;  ///< how many of the worker's own share, as `taken`
        bool moved = false;
        bool again = false;   ///< one has notified more than once: Turns say how often
        bool failed = false;  ///< one has an error: Turns have it
    };
    /// What a worker has of its own. Behind a round the caller reads the report, which lies in one
    /// line of a cache, and more where the report says so. It writes none of it: the worker would
    /// have to fetch what the caller has written.
    struct alignas(64) Turns {
        Report report;
        std::uint32_t tiles = 0;  ///< that have their turns now, as bits
        unsigned faulty = 0;      ///< the lowest tile with an error
        std::unique_ptr<Error> error;
        std::chrono::nanoseconds begun{};
        std::array<std::uint32_t, tile_count> notified_again{};  ///< more often than once, by tile
        TensorScratch scratch;

        void begin(std::uint32_t round);
        void notify(unsigned tile);
    };
    /// What the tiles' workers are told of a round: they get a copy with the call.
    struct Round {
        const Issued* issued = nullptr;  ///< issued_'s first, of so many
        std::uint32_t issued_count = 0;
        std::uint32_t most_steps = 0;                    ///< of one tile's turn
        std::uint32_t number = 0;                        ///< another one each time
        std::uint32_t of_mesh = MeshLink::no_round + 1;  ///< see MeshLink
        /// What producers have counted, by Ring, modulo 2^16, as all counters. Tiles add it to
        /// theirs when they look, where these lie in the caches.
        std::array<std::uint16_t, 2> produced{};
        std::uint16_t tiles = 0;  ///< as bits: that have a turn
        bool is_timed = false;    ///< what the turns take is noted
    };
    /// Turns of some tiles, for the team. What it reads is seldom written: it stays in their
    /// caches.
    struct TileTurns {
        Machine* machine;
        TileShares shares;
        void operator()(unsigned owner, unsigned part, unsigned worker, const Round& round) const;
    };
    std::size_t room_for_messages(std::size_t size);
    void send_some(Ring ring, std::uint16_t tiles, bool scalar, std::span<const std::uint8_t> data);
    std::uint32_t send_while_room(Ring ring, std::uint16_t tiles, std::uint32_t messages,
                                  auto&& put, auto&& message);
    void reserve(const Program& program);
    void reserve_queues(const QueueSizes& sizes);
    inline void start_tensor(TileUnit& unit, Engine<TileActivity>& engine, const TensorOp& op);
    void empty_buses();
    void begin_stream();
    [[nodiscard]] Result<bool> round();
    [[nodiscard]] bool stream_ended() const { return halted_ && !word_to_host_ && all_idle(); }
    [[nodiscard]] bool waits_for_host() const;
    // Inline: what one file alone calls, every round.
    [[nodiscard]] inline Result<bool> advance_scalar();
    [[nodiscard]] inline Status execute(const ProgramInstruction& at);
    inline void pass(const ProgramInstruction& at);
    [[nodiscard]] inline Result<bool> give_word();
    [[nodiscard]] static bool waits_for_engine(const Sync& sync, unsigned engine);
    [[nodiscard]] bool sync_ready(const Sync& sync) const;
    [[nodiscard]] std::string waits_of(const Sync& sync) const;
    void finish_sync(const Sync& sync);
    void witness_sync(const Sync& sync);
    inline void issue_to_tiles(const ProgramInstruction& instruction, const TileIssue& issue);
    [[nodiscard]] inline std::size_t issue_fixed(const Stream& stream, std::size_t first,
                                                 std::size_t most);
    [[nodiscard]] inline Status issue(const ProgramInstruction& instruction);
    [[nodiscard]] inline bool still_blocked(const Engine<ScalarActivity>& engine) const;
    [[nodiscard]] inline Result<bool> advance_scalar_engines();
    [[nodiscard]] inline Result<bool> feed_rings();
    [[nodiscard]] Result<bool> advance_tiles();
    [[nodiscard]] Result<bool> advance_tiles_by_turns();
    // Whether anything moved, or an error in the purse.
    inline bool advance_inside(TileUnit& unit, const Round& round, Purse& purse, Turns& turns);
    [[nodiscard]] inline Purse purse_of(TileUnit& unit, const Round& round, TensorScratch* scratch,
                                        std::uint64_t most);
    void begin_tiles();
    void take_turn_of(unsigned tile, const Round& round, Turns& turns);
    void take_turns_of(std::uint32_t tiles, const Round& round, Turns& turns);
    [[nodiscard]] const Report* report_of(unsigned worker) const;
    void settle_shares(std::uint32_t tiles);
    void take_notifications(const Report& report, const Turns& turns);
    [[nodiscard]] Result<bool> take_stock(std::uint32_t tiles);
    [[nodiscard]] Result<bool> advance_producers();
    void end_mesh_round(std::uint32_t reached);
    void wake(unsigned tile) { awake_ |= 1U << tile; }
    void wake_all() { awake_ = sending_ = awaiting_[0] = awaiting_[1] = all_tiles; }
    [[nodiscard]] bool in_any_order() const {
        return options_.random_seed.has_value() || options_.steps != nullptr;
    }
    /// What may wait at a receiver is the chip's in runs that try its rules; in others senders go
    /// further ahead, which takes fewer rounds.
    [[nodiscard]] bool short_queues() const { return in_any_order() || watcher_ != nullptr; }
    /// Nobody looks on who must be told of one thing after the other.
    [[nodiscard]] bool side_by_side() const {
        return team_.threads() > 1 && watcher_ == nullptr && options_.tap == nullptr;
    }
    inline bool dispatch(TileUnit& unit, const Round& round, Turns& turns);
    inline bool pass_fence(TileUnit& unit, const ProgramInstruction& at, Turns& turns);
    [[nodiscard]] std::size_t waiting_to_dispatch(const TileUnit& unit) const;
    void forget_dispatched();
    static void count_produced(TileUnit& unit, const Round& round);
    void count_produced() const;
    inline void witness_fence(const TileUnit& unit, const Fence& fence);
    inline void start(TileUnit& unit, Engine<TileActivity>& engine);
    [[nodiscard]] static inline bool still_blocked(TileUnit& unit, const Round& round,
                                                   unsigned number);
    [[nodiscard]] static inline bool may_move(TileUnit& unit, const Round& round, unsigned number);
    inline bool advance_engine(TileUnit& unit, unsigned number, Purse& purse);
    void started(Actor actor, const ProgramInstruction& instruction);
    void finished(Actor actor, const ProgramInstruction& instruction);
    /// Of one turn: some milliseconds, in which nobody is asked whether the program may go on.
    [[nodiscard]] std::uint64_t turn_steps() const {
        constexpr std::uint64_t most = 1U << 18U;
        return steps_left_ < most ? steps_left_ : most;
    }
    [[nodiscard]] std::uint64_t budget(std::uint64_t most, std::uint64_t spent = 0);
    void spend(std::uint64_t given, std::uint64_t left);
    void spend(std::uint64_t steps);
    [[nodiscard]] inline Status check_steps() const;
    [[nodiscard]] std::uint64_t most_scalar_instructions() const;
    [[nodiscard]] Witness witness(Actor actor, unsigned tile) const {
        return {monitor_.get(), watcher_, actor, tile};
    }
    [[nodiscard]] inline bool may_issue(const ProgramInstruction& instruction);
    [[nodiscard]] bool all_idle() const;

    // Not written while a program runs.
    MachineOptions options_;
    std::unique_ptr<Monitor> monitor_;
    AccessWatcher* watcher_ = nullptr;
    const Program* program_ = nullptr;
    HostPort* host_ = nullptr;
    /// Side by side: at equal places in their pages they would push each other out of the caches.
    std::unique_ptr<TileUnit[]> unit_memory_;
    std::array<TileUnit*, tile_count> units_{};
    ThreadTeam team_;
    std::vector<Turns> turns_;  ///< by worker
    TileTurns tile_turns_{this, TileShares(team_.threads())};

    Round round_;
    alignas(64) std::uint64_t steps_left_ = 0;
    std::uint64_t steps_of_few_ = 0;  ///< of the last round of few tiles
    std::uint64_t scalar_instructions_left_ = 0;
    /// Tiles that something has happened to since all of their engines waited, those whose ring
    /// producer is busy, and, by Ring, those that wait for a producer's count.
    std::uint32_t awake_ = 0;
    std::uint32_t sending_ = 0;
    std::array<std::uint32_t, 2> awaiting_{};
    TileUnit* sender_ = nullptr;  ///< whose producer has its turn
    /// By Ring: messages that every tile has room for, or fewer than that.
    mutable std::array<unsigned, 2> sure_room_{};
    std::mt19937_64 random_;
    ScalarState scalar_;
    MessageStore messages_{2, 2 * tile_count + 1};
    std::array<RingPlaces, 2> to_tiles_;  ///< by Ring
    RingPlaces to_core_;                  ///< of one receiver
    std::array<Engine<ScalarActivity>, scalar_engine_count> scalar_engines_;
    /// What some tile has to dispatch yet, in order, and before it what all have. One for all
    /// tiles: cores that share their work fetch each instruction once.
    std::vector<Issued> issued_;
    std::vector<Release> issued_after_;  ///< in strict runs, of the scalar core at each
    std::size_t issued_kept_ = 0;        ///< of it, when it was last made shorter
    std::array<std::uint32_t, tile_count> notifications_{};  ///< by tile, that no sync took yet
    const RunWatch* run_watch_ = nullptr;
    ScalarCore core_;
    std::size_t stream_ = 0;  ///< of program_; behind the last: it ended
    unsigned idle_rounds_ = 0;
    /// No queue of instructions is longer.
    std::size_t most_issued_ = 0;
    bool halted_ = false;
    /// A word of the scalar core that the host has no room for; holds the core.
    std::optional<std::uint32_t> word_to_host_;
    const ProgramInstruction* waiting_sync_ = nullptr;
};

}  // namespace reef::edgetpu::sim
