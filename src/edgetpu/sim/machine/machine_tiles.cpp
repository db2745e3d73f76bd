// The tiles of a machine: how instructions reach their engines, and when these advance.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "engine_turn.h"
#include "machine.h"

namespace reef::edgetpu::sim {
namespace {

namespace kind = spec::value::tile_engine;

// Consumers come before what feeds them: data are taken as soon as they are there, as on the chip,
// where an engine starts in the cycle after its wait is met.
constexpr std::array<unsigned, tile_engine_count> consumers_first = {kind::OP_,
                                                                     kind::WIDE_TO_NARROW_,
                                                                     kind::MESH_0_,
                                                                     kind::MESH_1_,
                                                                     kind::MESH_2_,
                                                                     kind::MESH_3_,
                                                                     kind::RING_PRODUCER_,
                                                                     kind::NARROW_TO_WIDE_,
                                                                     kind::RING_CONSUMER_0_,
                                                                     kind::RING_CONSUMER_1_};
// Those that touch nothing but their tile and their end of a mesh link. What brings data comes
// before what uses them: a row arrives, is copied and computed with in one pass over the engines.
constexpr std::array inside = {
    kind::RING_CONSUMER_0_, kind::RING_CONSUMER_1_, kind::WIDE_TO_NARROW_, kind::MESH_0_,
    kind::MESH_1_,          kind::MESH_2_,          kind::MESH_3_,         kind::OP_,
    kind::NARROW_TO_WIDE_};
constexpr unsigned producer_a = spec::value::tile_counter::RING_PRODUCER_A_;
static_assert(spec::value::tile_counter::RING_PRODUCER_B_ == producer_a + 1);
static_assert(inside.size() + 1 == consumers_first.size());

// A counter that starts anew takes the marks of its buffers with it.
void reset(Tile& tile, const Fence& fence) {
    namespace counter = spec::value::tile_counter;
    tile.counters.reset(fence.reset_counters, fence.reset_value);
    const auto forget = [&](unsigned which, RowOwner owner) {
        if ((fence.reset_counters >> which & 1U) != 0) tile.memory.full.forget(owner);
    };
    forget(counter::RING_READ_A_, RowOwner::ring_a);
    forget(counter::RING_READ_B_, RowOwner::ring_b);
    forget(counter::NARROW_TO_WIDE_, RowOwner::narrow_to_wide);
}

/// So many tiles are not worth the threads' meeting when the last time they took few steps: a tile
/// that sends to another.
constexpr int few_tiles = 2;
constexpr std::uint64_t few_steps = 256;

/// Bits by Ring: whether it is a count of the ring's producers.
std::uint8_t producers_of(const Unmet& unmet) {
    const unsigned ring = unmet.counter - producer_a;
    return ring < 2 ? static_cast<std::uint8_t>(1U << ring) : std::uint8_t{0};
}
constexpr std::uint8_t both_producers = 0b11;

/// The messages that a fence waits for and that were not sent yet.
std::optional<Unmet> unmet(const Fence& fence, const TileCounters& counters) {
    const auto needed = static_cast<std::uint16_t>(fence.expected);
    for (const unsigned ring : {0U, 1U}) {
        const auto which = static_cast<std::uint8_t>(producer_a + ring);
        if ((fence.expected_counters >> ring & 1U) != 0 && !counters.reached(which, needed))
            return Unmet{which, needed};
    }
    return std::nullopt;
}

}  // namespace

void Machine::witness_fence(const TileUnit& unit, const Fence& fence) {
    const unsigned tile = unit.tile.number;
    for (unsigned e = 0; e < tile_engine_count; ++e)
        if ((fence.engines >> e & 1U) != 0)
            monitor_->join(dispatch_actor(tile), monitor_->release(tile_actor(tile, e)));
    for (const unsigned ring : {0U, 1U})
        if ((fence.expected_counters >> ring & 1U) != 0)
            monitor_->waited(dispatch_actor(tile), tile,
                             {.counter = static_cast<std::uint8_t>(producer_a + ring)},
                             static_cast<std::uint16_t>(fence.expected));
    monitor_->counters_set(tile, fence.reset_counters,
                           static_cast<std::uint16_t>(fence.reset_value));
    if (fence.notifies()) monitor_->notified(tile);
}

std::size_t Machine::waiting_to_dispatch(const TileUnit& unit) const {
    return static_cast<std::size_t>(std::count_if(
        issued_.begin() + static_cast<std::ptrdiff_t>(unit.next), issued_.end(),
        [&](const Issued& issued) { return (issued.tiles >> unit.tile.number & 1U) != 0; }));
}

// Many at a time: it looks at every tile.
void Machine::forget_dispatched() {
    constexpr std::size_t many = 1U << 9U;
    if (issued_.size() < std::max(many, 2 * issued_kept_)) return;
    std::size_t dispatched = issued_.size();
    for (const auto* unit : units_)
        if (waiting_to_dispatch(*unit) != 0) dispatched = std::min(dispatched, unit->next);
    issued_.erase(issued_.begin(), issued_.begin() + static_cast<std::ptrdiff_t>(dispatched));
    if (monitor_)
        issued_after_.erase(issued_after_.begin(),
                            issued_after_.begin() + static_cast<std::ptrdiff_t>(dispatched));
    issued_kept_ = issued_.size();
    for (auto* unit : units_) unit->next -= std::min(unit->next, dispatched);
}

// False where the fence holds back what is behind it.
bool Machine::pass_fence(TileUnit& unit, const ProgramInstruction& at, Turns& turns) {
    const auto& fence = std::get<Fence>(at.operation);
    unit.held_for = fence.engines;
    if ((unit.held_for & unit.busy) != 0) return false;
    unit.held_for = 0;
    unit.held_until = {};
    if (const auto missing = unmet(fence, unit.tile.counters)) {
        unit.held_until = {Blocked::On::counter, *missing};
        unit.awaits |= producers_of(*missing);
        return false;
    }
    reset(unit.tile, fence);
    if (fence.notifies()) turns.notify(unit.tile.number);
    if (monitor_) witness_fence(unit, fence);
    if (options_.steps != nullptr) {
        options_.steps->finished(dispatch_actor(unit.tile.number), at);
        unit.at_fence = false;
    }
    return true;
}

// Hands instructions to their engines in order; a fence holds back those after it.
bool Machine::dispatch(TileUnit& unit, const Round& round, Turns& turns) {
    if ((unit.held_for & unit.busy) != 0) return false;
    bool moved = false;
    const std::uint32_t before = turns.tiles & ((1U << unit.tile.number) - 1);
    for (; unit.next < round.issued_count; ++unit.next) {
        const Issued& issued = round.issued[unit.next];
        if ((issued.tiles >> unit.tile.number & 1U) == 0) continue;
        const Actor actor = dispatch_actor(unit.tile.number);
        if (monitor_) monitor_->join(actor, issued_after_[unit.next]);
        if ((issued.tiles & before) == 0) issued.instruction->fetch(issued.lines);
        if (issued.engine == no_engine) {
            if (options_.steps != nullptr && !std::exchange(unit.at_fence, true)) {
                started(actor, *issued.instruction);
                return true;
            }
            if (!pass_fence(unit, *issued.instruction, turns)) return moved;
        } else {
            auto& engine = unit.engines[issued.engine];
            engine.queue.push_back(issued);
            if (monitor_) engine.after.push_back(monitor_->release(actor));
            unit.busy |= 1U << issued.engine;
        }
        moved = true;
    }
    return moved;
}

void Machine::start_tensor(TileUnit& unit, Engine<TileActivity>& engine, const TensorOp& op) {
    const std::uint32_t number = engine.current->number;
    const TensorShape& shape = program_->shapes[number];
    const TensorPlan& plan = program_->plans[program_->plan_at[number]];
    const bool watched =
        options_.tap != nullptr && options_.tap->begin(unit.tile.number, *engine.current);
    const bool fast = options_.engine == EngineKind::fast && !watched;
    if (fast && plan.fast && tensor_kernels() != nullptr)
        engine.activity.emplace<FastTensorEngine>(op, shape, plan, unit.tensor);
    else if (fast && plan.blends && options_.tap == nullptr)
        engine.activity.emplace<BlendEngine>(op);
    else if (fast && plan.reduces && options_.tap == nullptr)
        engine.activity.emplace<ReductionEngine>(op, shape);
    else
        engine.activity.emplace<TensorEngine>(op, shape, unit.tensor.sums, watched);
}

void Machine::start(TileUnit& unit, Engine<TileActivity>& engine) {
    const std::size_t next = engine.next++;
    const Issued& issued = engine.queue[next];
    engine.current = issued.instruction;
    engine.blocked = {};
    const auto number = static_cast<unsigned>(&engine - unit.engines.data());
    const Actor actor = tile_actor(unit.tile.number, number);
    if (monitor_) monitor_->join(actor, engine.after[next]);
    started(actor, *issued.instruction);
    auto& activity = engine.activity;
    std::visit(Cases{[&](const TensorOp& op) { start_tensor(unit, engine, op); },
                     [&](const Table& table) { activity.emplace<TableEngine>(table); },
                     [&](const RingSend& op) { activity.emplace<RingSendEngine>(op); },
                     [&](const RingReceive& op) { activity.emplace<RingReceiveEngine>(op); },
                     [&](const NarrowToWide& op) {
                         activity.emplace<NarrowToWideEngine>(
                             op, issued.source_base == Issued::own_base
                                     ? op.src.base
                                     : static_cast<std::int32_t>(issued.source_base));
                     },
                     [&](const WideToNarrow& op) { activity.emplace<WideToNarrowEngine>(op); },
                     [&](const MeshTransfer& op) { activity.emplace<MeshEngine>(op); },
                     [](const auto&) {}},
               engine.current->operation);
}

bool Machine::advance_engine(TileUnit& unit, unsigned number, Purse& purse) {
    auto& engine = unit.engines[number];
    bool progress = false;
    while (true) {
        if (engine.current == nullptr) {
            if (engine.queue.empty()) break;
            start(unit, engine);
            progress = true;
            if (options_.steps != nullptr) break;
        }
        // Under watch and in random order messages are received one at a time.
        const bool one_by_one =
            (watcher_ != nullptr || options_.random_seed) &&
            (number == kind::RING_CONSUMER_0_ || number == kind::RING_CONSUMER_1_);
        const std::uint64_t given = one_by_one ? 0 : budget(purse.most, purse.spent);
        const Actor actor = tile_actor(unit.tile.number, number);
        Work& work = purse.work;
        work.witness.actor = actor;
        work.budget = given;
        work.blocked = &engine.blocked;
        engine.blocked.on = Blocked::On::nothing;
        const Outcome outcome = take_turn(engine.activity, work);
        if (work.fault) {
            purse.error = std::make_unique<Error>(
                stopped(*work.fault,
                        fmt::format("{} on tile {}", place_of(*engine.current), unit.tile.number))
                    .error());
            break;
        }
        if (outcome != Outcome::waiting) {
            progress = true;
            purse.spent += std::max<std::uint64_t>(given - work.budget, 1);
        }
        if (outcome != Outcome::done) {
            if (engine.blocked.on == Blocked::On::counter)
                unit.awaits |= producers_of(engine.blocked.unmet);
            break;
        }
        finished(actor, *engine.current);
        engine.current = nullptr;
        if (engine.next == engine.queue.size()) {
            unit.busy &= ~(1U << number);
            engine.empty_queue();
        }
        if (one_by_one || options_.random_seed || options_.steps != nullptr) break;
    }
    return progress;
}

namespace {

// Both ends at once: what one waits for says nothing of the other.
bool waits_on_two_sides(const MeshTransfer& op) {
    return op.sends && (op.receives || op.fills);
}

}  // namespace

// What an engine waits for is looked at here before the engine itself.
inline bool Machine::still_blocked(TileUnit& unit, const Round& round, unsigned number) {
    const auto& engine = unit.engines[number];
    if (engine.current == nullptr || engine.blocked.on == Blocked::On::nothing) return false;
    const auto* mesh = std::get_if<MeshTransfer>(&engine.current->operation);
    if (mesh != nullptr && waits_on_two_sides(*mesh)) {
        unit.awaits = both_producers;
        return false;
    }
    switch (engine.blocked.on) {
        case Blocked::On::counter:
            if (unit.tile.counters.reached(engine.blocked.unmet.counter,
                                           engine.blocked.unmet.needed))
                return false;
            unit.awaits |= producers_of(engine.blocked.unmet);
            return true;
        case Blocked::On::ring_empty:
            return unit.tile.rings[number == kind::RING_CONSUMER_0_ ? 0 : 1].empty();
        case Blocked::On::mesh_empty:
            return unit.tile.arrived[static_cast<unsigned>(mesh->to)].size(round.of_mesh, 1) == 0;
        case Blocked::On::row_full:
            return unit.tile.memory.full[engine.blocked.row] != RowOwner::none;
        default:
            return false;
    }
}

inline bool Machine::may_move(TileUnit& unit, const Round& round, unsigned number) {
    return (unit.busy >> number & 1U) != 0 && !still_blocked(unit, round, number);
}

// What a tile's engines do by themselves, until all of them wait for something: the order between
// tiles is nowhere seen.
bool Machine::advance_inside(TileUnit& unit, const Round& round, Purse& purse, Turns& turns) {
    bool progress = false;
    while (purse.spent < purse.most) {
        bool moved = unit.next < round.issued_count && (unit.held_for & unit.busy) == 0 &&
                     dispatch(unit, round, turns);
        for (const unsigned number : inside) {
            if (!may_move(unit, round, number)) continue;
            const bool advanced = advance_engine(unit, number, purse);
            if (purse.error) return progress;
            moved |= advanced;
        }
        if (!moved) return progress;
        progress = true;
    }
    turns.report.unfinished |= 1U << unit.tile.number;
    return progress;
}

Machine::Purse Machine::purse_of(TileUnit& unit, const Round& round, TensorScratch* scratch,
                                 std::uint64_t most) {
    return {.work = {.tile = unit.tile,
                     .fabric = *this,
                     .full_bits = options_.full_bits,
                     .tap = options_.tap,
                     .word_tags = options_.tap != nullptr && options_.tap->tags_words(),
                     .scratch = scratch,
                     .round = round.of_mesh,
                     .witness = witness(0, unit.tile.number)},
            .most = most};
}

// Anew, where it speaks of another round.
void Machine::Turns::begin(std::uint32_t round) {
    if (report.round == round) return;
    if (report.again) notified_again.fill(0);
    report = {.round = round};
}

void Machine::Turns::notify(unsigned tile) {
    const std::uint32_t bit = 1U << tile;
    if ((report.notified & bit) != 0) {
        report.again = true;
        ++notified_again[tile];
    }
    report.notified |= bit;
}

void Machine::take_turn_of(unsigned tile, const Round& round, Turns& turns) {
    TileUnit& unit = *units_[tile];
    Purse purse = purse_of(unit, round, &turns.scratch, round.most_steps);
    count_produced(unit, round);
    unit.awaits = 0;
    Report& report = turns.report;
    report.moved |= advance_inside(unit, round, purse, turns);
    report.spent += static_cast<std::uint32_t>(purse.spent);
    report.reached |= purse.work.reached;
    report.sending |= (unit.busy >> kind::RING_PRODUCER_ & 1U) << tile;
    for (unsigned ring = 0; ring < report.awaiting.size(); ++ring)
        report.awaiting[ring] |= (unit.awaits >> ring & 1U) << tile;
    if (purse.error == nullptr || (report.failed && turns.faulty < tile)) return;
    report.failed = true;
    turns.faulty = tile;
    turns.error = std::move(purse.error);
}

void Machine::take_turns_of(std::uint32_t tiles, const Round& round, Turns& turns) {
    turns.begin(round.number);
    turns.tiles = tiles;
    for (; tiles != 0; tiles &= tiles - 1)
        take_turn_of(static_cast<unsigned>(std::countr_zero(tiles)), round, turns);
}

std::chrono::nanoseconds steady_time() {
    return std::chrono::steady_clock::now().time_since_epoch();
}

// What the caller does for a thread that is late is nobody's time.
void Machine::TileTurns::operator()(unsigned owner, unsigned part, unsigned worker,
                                    const Round& round) const {
    Turns& turns = machine->turns_[worker];
    Report& report = turns.report;
    const std::uint32_t some = shares.part_of(round.tiles, owner, part);
    const bool is_own = owner == worker;
    const auto now = machine->options_.tile_clock;
    const bool is_noted = is_own && round.is_timed;
    if (is_noted && report.round != round.number) turns.begun = now();
    machine->take_turns_of(some, round, turns);
    if (!is_noted) return;
    const auto end = now();
    report.taken += static_cast<std::uint32_t>((end - turns.begun).count());
    report.done += static_cast<unsigned>(std::popcount(some));
    turns.begun = end;
}

// Null where the worker did nothing in this round.
const Machine::Report* Machine::report_of(unsigned worker) const {
    const Report& report = turns_[worker].report;
    return report.round == round_.number ? &report : nullptr;
}

void Machine::settle_shares(std::uint32_t tiles) {
    for (unsigned worker = 0; worker < turns_.size(); ++worker)
        if (const Report* report = report_of(worker))
            tile_turns_.shares.note(worker, report->done, report->taken);
    tile_turns_.shares.settle(tiles);
}

void Machine::take_notifications(const Report& report, const Turns& turns) {
    for (std::uint32_t left = report.notified; left != 0; left &= left - 1)
        ++notifications_[static_cast<unsigned>(std::countr_zero(left))];
    if (!report.again) return;
    for (unsigned tile = 0; tile < tile_count; ++tile)
        notifications_[tile] += turns.notified_again[tile];
}

// Behind a link's words, its receiver may go on, behind room its sender: in the next round. Where
// nothing was sent there is none, and steps bound their number.
void Machine::end_mesh_round(std::uint32_t reached) {
    if (reached == 0) return;
    awake_ |= reached;
    ++round_.of_mesh;
}

// The first error is that of the lowest tile, whoever did it.
Result<bool> Machine::take_stock(std::uint32_t tiles) {
    bool moved = false;
    std::uint32_t reached = 0;
    std::unique_ptr<Error> error;
    unsigned faulty = tile_count;
    sending_ &= ~tiles;
    for (std::uint32_t& awaiting : awaiting_) awaiting &= ~tiles;
    for (unsigned worker = 0; worker < turns_.size(); ++worker) {
        const Report* report = report_of(worker);
        if (report == nullptr) continue;
        Turns& turns = turns_[worker];
        moved |= report->moved;
        reached |= report->reached;
        awake_ |= report->unfinished;
        sending_ |= report->sending;
        for (unsigned ring = 0; ring < awaiting_.size(); ++ring)
            awaiting_[ring] |= report->awaiting[ring];
        take_notifications(*report, turns);
        spend(report->spent);
        if (!report->failed) continue;
        auto of_turns = std::move(turns.error);
        if (turns.faulty > faulty) continue;
        faulty = turns.faulty;
        error = std::move(of_turns);
    }
    end_mesh_round(reached);
    if (error != nullptr) return std::unexpected(std::move(*error));
    return moved;
}

// Messages to other tiles.
Result<bool> Machine::advance_producers() {
    bool moved = false;
    for (std::uint32_t left = sending_; left != 0; left &= left - 1) {
        const auto tile = static_cast<unsigned>(std::countr_zero(left));
        TileUnit& unit = *units_[tile];
        count_produced(unit, round_);
        if (!may_move(unit, round_, kind::RING_PRODUCER_)) continue;
        Purse purse = purse_of(unit, round_, nullptr, turn_steps());
        sender_ = &unit;
        if (advance_engine(unit, kind::RING_PRODUCER_, purse)) {
            moved = true;
            wake(tile);
        }
        sender_ = nullptr;
        if (purse.error) return std::unexpected(std::move(*purse.error));
        spend(purse.spent);
    }
    return moved;
}

void Machine::begin_tiles() {
    ++round_.number;
    round_.issued = issued_.data();
    round_.issued_count = static_cast<std::uint32_t>(issued_.size());
    round_.most_steps = static_cast<std::uint32_t>(turn_steps());
}

// One after the other or side by side: the bytes, the counters and the errors are the same.
Result<bool> Machine::advance_tiles() {
    const std::uint32_t tiles = std::exchange(awake_, 0);
    begin_tiles();
    round_.tiles = static_cast<std::uint16_t>(tiles);
    const bool are_few = std::popcount(tiles) <= few_tiles;
    const bool are_shared =
        side_by_side() && std::popcount(tiles) > 1 && (!are_few || steps_of_few_ >= few_steps);
    if (are_shared) round_.is_timed = tile_turns_.shares.times_next_round();
    const unsigned owners = are_shared ? tile_turns_.shares.owners(tiles) : 1;
    if (owners > 1)
        team_.each(owners, TileShares::parts, ThreadTeam::Help::late, round_, tile_turns_);
    else
        take_turns_of(tiles, round_, turns_.front());
    if (are_shared && round_.is_timed) settle_shares(tiles);
    const std::uint64_t before = steps_left_;
    auto moved = take_stock(tiles);
    if (are_few) steps_of_few_ = before - steps_left_;
    return moved;
}

// Every engine has a turn or, in random order, may have one.
Result<bool> Machine::advance_tiles_by_turns() {
    begin_tiles();
    bool moved = false;
    Turns& turns = turns_.front();
    turns.begin(round_.number);
    for (auto* unit : units_) {
        Purse purse = purse_of(*unit, round_, &turns.scratch, turn_steps());
        moved |= dispatch(*unit, round_, turns);
        auto order = consumers_first;
        if (options_.random_seed) std::ranges::shuffle(order, random_);
        for (const unsigned number : order) {
            if (!may_move(*unit, round_, number)) continue;
            if (options_.random_seed && random_() % 2 == 0) continue;
            moved |= advance_engine(*unit, number, purse);
            if (purse.error) return std::unexpected(std::move(*purse.error));
            end_mesh_round(std::exchange(purse.work.reached, 0));
            purse.work.round = round_.of_mesh;
        }
        spend(purse.spent);
    }
    take_notifications(turns.report, turns);
    return moved;
}

}  // namespace reef::edgetpu::sim
