#include "machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace reef::edgetpu::sim {
namespace {

/// Scalar instructions in one turn: endless loops of the scalar core must not stop the rest.
constexpr unsigned most_scalar_steps = 4096;
/// In random order, rounds in which nothing moves before nothing ever will: an engine that could
/// move is left out of so many with a chance of 2^-40.
constexpr unsigned most_idle_rounds = 40;

/// Cases of a variant, one lambda each.
template <typename... Case>
struct Cases : Case... {
    using Case::operator()...;
};

// Consumers come before what feeds them: data are taken as soon as they are there, as on the chip,
// where an engine starts in the cycle after its wait is met.
constexpr std::array<unsigned, tile_engine_count> consumers_first = {
    spec::value::tile_engine::OP_,
    spec::value::tile_engine::WIDE_TO_NARROW_,
    spec::value::tile_engine::MESH_0_,
    spec::value::tile_engine::MESH_1_,
    spec::value::tile_engine::MESH_2_,
    spec::value::tile_engine::MESH_3_,
    spec::value::tile_engine::RING_PRODUCER_,
    spec::value::tile_engine::NARROW_TO_WIDE_,
    spec::value::tile_engine::RING_CONSUMER_0_,
    spec::value::tile_engine::RING_CONSUMER_1_};

/// One turn of the engine's instruction; nothing to do is done.
template <typename Activity, typename AnyWork>
Outcome take_turn(Activity& activity, AnyWork& work) {
    return std::visit(
        [&](auto& engine) -> Outcome {
            if constexpr (requires { engine.advance(work); })
                return engine.advance(work);
            else
                return Outcome::done;
        },
        activity);
}

std::unexpected<Error> stopped(const Fault& fault, std::string place) {
    constexpr std::string_view usual =
        "no known program does this; reef disasm --check FILE looks for what is wrong with it";
    return fail(Cause::bad_input, fault.what, std::move(place),
                fault.hint.empty() ? std::string(usual) : fault.hint);
}

// A counter that starts anew takes the marks of its buffers with it.
void reset(Tile& tile, const Fence& fence) {
    namespace counter = spec::value::tile_counter;
    tile.counters.reset(fence.reset_counters, fence.reset_value);
    const auto forget = [&](unsigned which, RowOwner owner) {
        if ((fence.reset_counters >> which & 1U) == 0) return;
        // Without a branch: vectors of rows.
        for (RowOwner& row : tile.memory.full) row = row == owner ? RowOwner::none : row;
    };
    forget(counter::RING_READ_A_, RowOwner::ring_a);
    forget(counter::RING_READ_B_, RowOwner::ring_b);
    forget(counter::NARROW_TO_WIDE_, RowOwner::narrow_to_wide);
}

}  // namespace

Machine::Machine(MachineOptions options)
    : options_(options), random_(options.random_seed.value_or(0)) {
    scalar_.memory = core_.memory();
    unit_memory_ = std::make_unique<TileUnit[]>(tile_count);
    if (options_.strict) {
        monitor_ = std::make_unique<Monitor>(MonitorOptions{options_.full_bits});
        watcher_ = monitor_.get();
    }
    if (options_.steps != nullptr) watcher_ = options_.steps;
    if (watcher_ != nullptr) options_.engine = EngineKind::plain;  // which tells of every access
    for (unsigned t = 0; t < tile_count; ++t) {
        units_[t] = &unit_memory_[t];
        units_[t]->tile.number = t;
    }
}

bool Machine::ring_has_room(Ring ring, std::uint16_t tiles, bool scalar) const {
    const auto r = static_cast<unsigned>(ring);
    if (scalar && scalar_.arrived.full()) return false;
    for (unsigned t = 0; t < tile_count; ++t)
        if ((tiles >> t & 1U) != 0 && units_[t]->tile.rings[r].full()) return false;
    return true;
}

void Machine::ring_send(Ring ring, std::uint16_t tiles, bool scalar,
                        std::span<const std::uint8_t> data) {
    const auto r = static_cast<unsigned>(ring);
    if (scalar) scalar_.arrived.push().assign(data);
    for (unsigned t = 0; t < tile_count; ++t)
        if ((tiles >> t & 1U) != 0) units_[t]->tile.rings[r].push().assign(data);
}

void Machine::count_producer(Ring ring) {
    namespace tile = spec::value::tile_counter;
    namespace scalar = spec::value::scalar_counter;
    for (auto& unit : units_)
        unit->tile.counters.count(ring == Ring::a ? tile::RING_PRODUCER_A_
                                                  : tile::RING_PRODUCER_B_);
    scalar_.counters.count(ring == Ring::a ? scalar::PRODUCER_A_ : scalar::PRODUCER_B_);
}

MeshLink* Machine::link_from(unsigned tile, Direction4 to) {
    const unsigned row = tile / grid_side;
    const unsigned column = tile % grid_side;
    constexpr unsigned last = grid_side - 1;
    if ((to == Direction4::south && row == last) || (to == Direction4::north && row == 0) ||
        (to == Direction4::east && column == last) || (to == Direction4::west && column == 0))
        return nullptr;
    return &units_[neighbour(tile, to)]->tile.arrived[static_cast<unsigned>(to)];
}

void Machine::started(Actor actor, const ProgramInstruction& instruction) {
    if (monitor_) monitor_->started(actor, instruction);
    if (options_.steps != nullptr) options_.steps->started(actor, instruction);
}

void Machine::finished(Actor actor, const ProgramInstruction& instruction) {
    if (monitor_) monitor_->finished(actor);
    if (options_.steps != nullptr) options_.steps->finished(actor, instruction);
}

std::uint64_t Machine::budget() {
    if (options_.steps != nullptr) return 0;
    if (!options_.random_seed) return steps_left_;
    return std::min(1 + random_() % 64, steps_left_);
}

// What an engine's turn cost: a turn without a visit costs a step.
void Machine::spend(std::uint64_t given, std::uint64_t left) {
    steps_left_ -= std::min(steps_left_, std::max<std::uint64_t>(given - left, 1));
}

Status Machine::check_steps() const {
    if (steps_left_ > 0) return {};
    return fail(Cause::bad_input,
                fmt::format("the program did not end within {} steps", options_.most_steps), {},
                "its loops are endless or longer than those of any known program");
}

// The queues of the chip are finite; how long they are is not known, and no known program fills
// these.
bool Machine::may_issue(const ProgramInstruction& instruction) const {
    constexpr std::size_t most_waiting = 1U << 16U;
    if (instruction.source.info->space == Space::scalar)
        return std::ranges::all_of(scalar_engines_, [](const auto& engine) {
            return engine.queue.size() - engine.next < most_waiting;
        });
    return std::ranges::all_of(
        units_, [](const auto& unit) { return unit->dispatch.size() - unit->next < most_waiting; });
}

Status Machine::issue(const ProgramInstruction& instruction) {
    if (instruction.source.info->space == Space::tile) {
        const TileIssue issue = REEF_TRY(core_.issue(instruction.source));
        const Release after = monitor_ ? monitor_->release(core_actor) : Release{};
        for (unsigned t = 0; t < tile_count; ++t)
            if (issue.issued && (issue.tiles >> t & 1U) != 0)
                units_[t]->dispatch.push_back({&instruction, issue.source_base, after});
        return {};
    }
    const auto queue = [&](ScalarEngine engine) {
        scalar_engines_[engine].queue.push_back(
            {&instruction, {}, monitor_ ? monitor_->release(core_actor) : Release{}});
    };
    std::visit(Cases{[&](const Infeed&) { queue(infeed); }, [&](const RingPush&) { queue(push); },
                     [&](const RingPop&) { queue(pop); }, [](const auto&) {}},
               instruction.operation);
    return {};
}

Status Machine::execute(const ProgramInstruction& at) {
    started(core_actor, at);
    const Effect effect = REEF_TRY(core_.execute(at.source));
    halted_ = effect.halted;
    const Witness core = witness(core_actor, 0);
    if (effect.read) core.reads(Watched::scalar_memory, effect.read->word);
    if (effect.written) core.writes(Watched::scalar_memory, effect.written->address.word);
    finished(core_actor, at);
    word_to_host_ = effect.to_host;
    return effect.fired ? in_place(host_->fire(*effect.fired), place_of(at)) : Status{};
}

// False while the host has no room for it.
Result<bool> Machine::give_word() {
    if (!word_to_host_) return true;
    std::array<std::uint8_t, sizeof *word_to_host_> word;
    if (!host_->has_room(word.size())) return false;
    std::memcpy(word.data(), &*word_to_host_, word.size());
    REEF_CHECK(host_->give(word));
    word_to_host_.reset();
    return true;
}

void Machine::pass(const ProgramInstruction& at) {
    core_.pass(at.source);
    if (options_.hold != nullptr) options_.hold->moved();
}

// Runs ahead until a sync holds it.
Result<bool> Machine::advance_scalar() {
    const Stream& stream = program_->streams[stream_];
    bool moved = false;
    const unsigned most = options_.steps != nullptr ? 1 : most_scalar_steps;
    for (unsigned steps = 0; !halted_ && steps < most; ++steps) {
        if (!REEF_TRY(give_word())) return moved;
        const std::size_t word = core_.program_counter();
        if (word >= stream.at_word.size() || stream.at_word[word] == Stream::no_instruction)
            return fail(Cause::bad_input, "no instruction to go on with",
                        fmt::format("word {:#06x}", word));
        if (options_.hold != nullptr && options_.hold->stops(word)) return moved;
        const auto& at = stream.instructions[stream.at_word[word]];
        if (!ScalarCore::executes(at.source) && !may_issue(at)) return moved;
        moved = true;
        spend(1, 0);
        if (steps_left_ == 0) return moved;
        if (ScalarCore::executes(at.source)) {
            REEF_CHECK(execute(at));
            if (options_.hold != nullptr) options_.hold->moved();
            continue;
        }
        if (!core_.gate_open(at.source)) {
            pass(at);
            continue;
        }
        if (const auto* sync = std::get_if<Sync>(&at.operation)) {
            if (!sync_ready(*sync)) {
                waiting_sync_ = &at;
                return steps > 0;
            }
            finish_sync(*sync);
            waiting_sync_ = nullptr;
        } else {
            REEF_CHECK(issue(at));
        }
        pass(at);
    }
    return moved;
}

Result<bool> Machine::advance_scalar_engines() {
    bool progress = false;
    for (unsigned number = 0; number < scalar_engine_count; ++number) {
        auto& engine = scalar_engines_[number];
        while (true) {
            if (engine.current == nullptr) {
                if (engine.next == engine.queue.size()) {
                    engine.queue.clear();
                    engine.next = 0;
                    break;
                }
                const Issued& issued = engine.queue[engine.next++];
                engine.current = issued.instruction;
                engine.blocked = {};
                if (monitor_) monitor_->join(scalar_actor(number), issued.after);
                started(scalar_actor(number), *engine.current);
                const auto& op = engine.current->operation;
                if (const auto* in = std::get_if<Infeed>(&op))
                    engine.activity = InfeedEngine(*in);
                else if (const auto* out = std::get_if<RingPush>(&op))
                    engine.activity = RingPushEngine(*out);
                else
                    engine.activity = RingPopEngine(std::get<RingPop>(op));
                if (options_.steps != nullptr) {
                    progress = true;
                    break;
                }
            }
            const std::uint64_t given = budget();
            ScalarEngineWork work{
                scalar_, *this, *host_, given, {}, {}, witness(scalar_actor(number), 0)};
            const Outcome outcome = take_turn(engine.activity, work);
            engine.blocked = work.blocked;
            if (work.fault) return stopped(*work.fault, place_of(*engine.current));
            if (outcome != Outcome::waiting) {
                progress = true;
                spend(given, work.budget);
            }
            if (outcome != Outcome::done) break;
            finished(scalar_actor(number), *engine.current);
            engine.current = nullptr;
            if (options_.steps != nullptr) break;
        }
    }
    return progress;
}

void Machine::witness_fence(const TileUnit& unit, const Fence& fence) {
    const unsigned tile = unit.tile.number;
    for (unsigned e = 0; e < tile_engine_count; ++e)
        if ((fence.engines >> e & 1U) != 0)
            monitor_->join(dispatch_actor(tile), monitor_->release(tile_actor(tile, e)));
    monitor_->counters_set(tile, fence.reset_counters,
                           static_cast<std::uint16_t>(fence.reset_value));
    if (fence.notify) monitor_->notified(tile);
}

// Hands instructions to their engines in order; a fence holds back those after it.
bool Machine::dispatch(TileUnit& unit) {
    if ((unit.held_for & unit.busy) != 0) return false;
    bool moved = false;
    while (unit.next < unit.dispatch.size()) {
        const Issued& issued = unit.dispatch[unit.next];
        const ProgramInstruction& at = *issued.instruction;
        const Actor actor = dispatch_actor(unit.tile.number);
        if (monitor_) monitor_->join(actor, issued.after);
        if (const auto* fence = std::get_if<Fence>(&at.operation)) {
            if (options_.steps != nullptr && !std::exchange(unit.at_fence, true)) {
                started(actor, at);
                return true;
            }
            unit.held_for = fence->engines;
            if ((unit.held_for & unit.busy) != 0) return moved;
            unit.held_for = 0;
            reset(unit.tile, *fence);
            if (fence->notify) ++unit.notifications;
            if (monitor_) witness_fence(unit, *fence);
            if (options_.steps != nullptr) {
                options_.steps->finished(actor, at);
                unit.at_fence = false;
            }
        } else {
            const unsigned engine = engine_of(at.operation);
            unit.engines[engine].queue.push_back(issued);
            if (monitor_) unit.engines[engine].queue.back().after = monitor_->release(actor);
            unit.busy |= 1U << engine;
        }
        ++unit.next;
        moved = true;
    }
    unit.dispatch.clear();
    unit.next = 0;
    return moved;
}

void Machine::start_tensor(TileUnit& unit, Engine<TileActivity>& engine, const TensorOp& op) {
    const std::uint32_t number = engine.current->number;
    const TensorShape& shape = program_->shapes[number];
    const TensorPlan& plan = program_->plans[program_->plan_at[number]];
    const bool watched =
        options_.tap != nullptr && options_.tap->begin(unit.tile.number, *engine.current);
    const bool fast = options_.engine == EngineKind::fast && !watched;
    if (options_.tags != nullptr)
        engine.activity.emplace<TensorEngine>(op, shape, unit.tensor.sums,
                                              options_.tags->at(number), tensor_tag(number));
    else if (fast && plan.fast && tensor_kernels() != nullptr)
        engine.activity.emplace<FastTensorEngine>(op, shape, plan, unit.tensor, scratch_);
    else
        engine.activity.emplace<TensorEngine>(op, shape, unit.tensor.sums, watched);
}

void Machine::start(TileUnit& unit, Engine<TileActivity>& engine) {
    const Issued issued = engine.queue[engine.next++];
    engine.current = issued.instruction;
    engine.blocked = {};
    const auto number = static_cast<unsigned>(&engine - unit.engines.data());
    const Actor actor = tile_actor(unit.tile.number, number);
    if (monitor_) monitor_->join(actor, issued.after);
    started(actor, *issued.instruction);
    auto& activity = engine.activity;
    std::visit(
        Cases{
            [&](const TensorOp& op) { start_tensor(unit, engine, op); },
            [&](const Table& table) { activity = TableEngine(table); },
            [&](const RingSend& op) { activity = RingSendEngine(op); },
            [&](const RingReceive& op) { activity = RingReceiveEngine(op); },
            [&](const NarrowToWide& op) { activity = NarrowToWideEngine(op, issued.source_base); },
            [&](const WideToNarrow& op) { activity = WideToNarrowEngine(op); },
            [&](const MeshTransfer& op) { activity = MeshEngine(op); }, [](const auto&) {}},
        engine.current->operation);
}

Result<bool> Machine::advance_engine(TileUnit& unit, unsigned number) {
    auto& engine = unit.engines[number];
    bool progress = false;
    while (true) {
        if (engine.current == nullptr) {
            if (engine.queue.empty()) break;
            start(unit, engine);
            progress = true;
            if (options_.steps != nullptr) break;
        }
        const bool receives = number == spec::value::tile_engine::RING_CONSUMER_0_ ||
                              number == spec::value::tile_engine::RING_CONSUMER_1_;
        const std::uint64_t given = receives ? 0 : budget();
        const Actor actor = tile_actor(unit.tile.number, number);
        Work work{unit.tile,
                  *this,
                  given,
                  options_.full_bits,
                  {},
                  {},
                  witness(actor, unit.tile.number),
                  options_.tap,
                  options_.tags != nullptr};
        const Outcome outcome = take_turn(engine.activity, work);
        engine.blocked = work.blocked;
        if (work.fault)
            return stopped(*work.fault, fmt::format("{} on tile {}", place_of(*engine.current),
                                                    unit.tile.number));
        if (outcome != Outcome::waiting) {
            progress = true;
            spend(given, work.budget);
        }
        if (outcome != Outcome::done) break;
        finished(actor, *engine.current);
        if (observer_ != nullptr) observer_->finished(unit.tile, *engine.current);
        engine.current = nullptr;
        if (engine.next == engine.queue.size()) {
            unit.busy &= ~(1U << number);
            engine.queue.clear();
            engine.next = 0;
        }
        if (receives || options_.random_seed || options_.steps != nullptr) break;
    }
    return progress;
}

// What an engine waits for is looked at here before the engine itself. Those of the mesh can wait
// on both sides.
bool Machine::still_blocked(const TileUnit& unit, unsigned number) {
    namespace kind = spec::value::tile_engine;
    const auto& engine = unit.engines[number];
    if (engine.current == nullptr) return false;
    if (engine.blocked.on == Blocked::On::counter)
        return (number < kind::MESH_0_ || number > kind::MESH_3_) &&
               !unit.tile.counters.reached(engine.blocked.unmet.counter,
                                           engine.blocked.unmet.needed);
    if (engine.blocked.on == Blocked::On::ring_empty)
        return unit.tile.rings[number == kind::RING_CONSUMER_0_ ? 0 : 1].empty();
    return false;
}

Result<bool> Machine::advance_tile(TileUnit& unit) {
    bool progress = dispatch(unit);
    auto order = consumers_first;
    if (options_.random_seed) std::ranges::shuffle(order, random_);
    for (const unsigned number : order) {
        if ((unit.busy >> number & 1U) == 0 || still_blocked(unit, number)) continue;
        if (options_.random_seed && random_() % 2 == 0) continue;
        progress |= REEF_TRY(advance_engine(unit, number));
    }
    return progress;
}

bool Machine::all_idle() const {
    for (const auto& engine : scalar_engines_)
        if (!engine.idle()) return false;
    for (const auto& unit : units_) {
        if (unit->busy != 0 || unit->next != unit->dispatch.size()) return false;
    }
    return true;
}

void Machine::begin_stream() {
    core_.begin_stream();
    if (monitor_) monitor_->begin_stream();
    halted_ = false;
    waiting_sync_ = nullptr;
    idle_rounds_ = 0;
}

Result<bool> Machine::round() {
    bool moved = REEF_TRY(advance_scalar());
    moved |= REEF_TRY(advance_scalar_engines());
    for (auto& unit : units_) moved |= REEF_TRY(advance_tile(*unit));
    return moved;
}

bool Machine::waits_for_host() const {
    return word_to_host_ || std::ranges::any_of(scalar_engines_, [](const auto& engine) {
               return engine.current != nullptr && (engine.blocked.on == Blocked::On::host_empty ||
                                                    engine.blocked.on == Blocked::On::host_full);
           });
}

Result<Progress> Machine::advance() {
    if (stream_ == program_->streams.size()) return Progress{.ended = true};
    const bool moved = REEF_TRY(round());
    REEF_CHECK(check_steps());
    if (stream_ended()) {
        if (++stream_ < program_->streams.size()) {
            begin_stream();
            return Progress{.moved = true};
        }
        if (monitor_) monitor_->end_program();
        return Progress{.moved = true, .ended = true};
    }
    idle_rounds_ = moved ? 0 : idle_rounds_ + 1;
    if (idle_rounds_ <= (options_.random_seed ? most_idle_rounds : 0U))
        return Progress{.moved = moved};
    idle_rounds_ = 0;
    const bool held = options_.hold != nullptr && options_.hold->held() && !halted_;
    const Progress waits{.starved = waits_for_host(), .held = held};
    if (!waits.starved && !waits.held) return std::unexpected(deadlock());
    return waits;
}

// Memory that the program's instructions work in: none is taken while it runs.
void Machine::reserve(const Program& program) {
    const bool fast = options_.engine == EngineKind::fast;
    if (fast)
        for (const auto& plan : program.plans)
            if (plan.fast) scratch_.reserve(plan);
    for (auto& unit : units_)
        unit->tensor.reserve(program.most_live_positions, fast ? program.most_parts : 0);
    reserve_queues(program);
}

// As if every instruction waited in its queue; loops of the scalar core can still need more.
void Machine::reserve_queues(const Program& program) {
    constexpr std::size_t most = 1U << 14U;
    std::array<std::size_t, tile_engine_count> of_engine{};
    std::size_t of_scalar = 0;
    for (const auto& stream : program.streams)
        for (const auto& at : stream.instructions) {
            if (at.source.info->space == Space::tile)
                ++of_engine[engine_of(at.operation)];
            else
                ++of_scalar;
        }
    const std::size_t of_tiles = std::accumulate(of_engine.begin(), of_engine.end(), std::size_t{});
    for (auto& unit : units_) {
        unit->dispatch.reserve(std::min(of_tiles, most));
        for (unsigned e = 0; e < tile_engine_count; ++e)
            unit->engines[e].queue.reserve(std::min(of_engine[e], most));
    }
    for (auto& engine : scalar_engines_) engine.queue.reserve(std::min(of_scalar, most));
}

// What a stopped program left is not the next one's.
void Machine::empty_buses() {
    scalar_.arrived = {};
    word_to_host_.reset();
    const auto clear = [](auto& engine) {
        engine.queue.clear();
        engine.next = 0;
        engine.current = nullptr;
    };
    for (auto& unit : units_) {
        unit->tile.rings = {};
        unit->tile.arrived = {};
        unit->notifications = 0;
        unit->dispatch.clear();
        unit->next = 0;
        unit->busy = 0;
        unit->held_for = 0;
        unit->at_fence = false;
        std::ranges::for_each(unit->engines, clear);
    }
    std::ranges::for_each(scalar_engines_, clear);
}

void Machine::begin(const Program& program, HostPort& host, MachineObserver* observer) {
    program_ = &program;
    host_ = &host;
    observer_ = observer;
    reserve(program);
    steps_left_ = options_.most_steps;
    if (monitor_) monitor_->begin_program(program.narrow_bound);
    empty_buses();
    stream_ = 0;
    begin_stream();
}

Status Machine::run(const Program& program, HostPort& host, MachineObserver* observer) {
    begin(program, host, observer);
    while (true) {
        const Progress progress = REEF_TRY(advance());
        if (progress.ended) return {};
        if (progress.starved) return std::unexpected(deadlock());
    }
}

}  // namespace reef::edgetpu::sim
