#include "machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>

#include "engine_turn.h"

namespace reef::edgetpu::sim {
namespace {

/// Scalar instructions in one turn: endless loops of the scalar core must not stop the rest.
constexpr unsigned most_scalar_steps = 4096;
/// Instructions in a queue. Those of the chip are finite; how long they are is not known, and no
/// known program fills these.
constexpr std::size_t most_waiting = 1U << 16U;
/// In random order, rounds in which nothing moves before nothing ever will: an engine that could
/// move is left out of so many with a chance of 2^-40.
constexpr unsigned most_idle_rounds = 40;

}  // namespace

Machine::Machine(MachineOptions options)
    : options_(options),
      team_(static_cast<unsigned>(std::clamp(options.threads, 1, int{tile_count}))),
      turns_(team_.threads()),
      random_(options.random_seed.value_or(0)) {
    scalar_.memory = core_.memory();
    scalar_.arrived.connect(to_core_, messages_.messages(), 0);
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
        for (const unsigned ring : {0U, 1U})
            units_[t]->tile.rings[ring].connect(to_tiles_[ring], messages_.messages(), t);
    }
}

void Machine::started(Actor actor, const ProgramInstruction& instruction) {
    if (monitor_) monitor_->started(actor, instruction);
    if (options_.steps != nullptr) options_.steps->started(actor, instruction);
}

void Machine::finished(Actor actor, const ProgramInstruction& instruction) {
    if (monitor_) monitor_->finished(actor);
    if (options_.steps != nullptr) options_.steps->finished(actor, instruction);
}

std::uint64_t Machine::budget(std::uint64_t most, std::uint64_t spent) {
    if (options_.steps != nullptr) return 0;
    const std::uint64_t left = most - std::min(most, spent);
    if (!options_.random_seed) return left;
    return std::min(1 + random_() % 64, left);
}

// What an engine's turn cost: a turn without a visit costs a step.
void Machine::spend(std::uint64_t given, std::uint64_t left) {
    spend(std::max<std::uint64_t>(given - left, 1));
}
void Machine::spend(std::uint64_t steps) {
    steps_left_ -= std::min(steps_left_, steps);
}

// A monitor remembers when each instruction began, on each tile.
std::uint64_t Machine::most_scalar_instructions() const {
    constexpr std::uint64_t most_watched = 1U << 20U;
    return monitor_ ? std::min(options_.most_scalar_instructions, most_watched)
                    : options_.most_scalar_instructions;
}

Status Machine::check_steps() const {
    if (scalar_instructions_left_ == 0)
        return fail(
            Cause::bad_input,
            fmt::format("the scalar core did not end within {} instructions",
                        most_scalar_instructions()),
            fmt::format("word {:#06x}", core_.program_counter()),
            "its loop is endless or longer than those of any known program; reef disasm FILE "
            "shows it");
    if (steps_left_ > 0) return {};
    return fail(Cause::bad_input,
                fmt::format("the program did not end within {} steps", options_.most_steps), {},
                "its loops are endless or longer than those of any known program");
}

bool Machine::may_issue(const ProgramInstruction& instruction) {
    if (most_issued_ < most_waiting) return true;
    std::size_t of_scalar = 0;
    for (const auto& engine : scalar_engines_)
        of_scalar = std::max(of_scalar, engine.queue.size() - engine.next);
    std::size_t of_tiles = 0;
    for (const auto* unit : units_) of_tiles = std::max(of_tiles, waiting_to_dispatch(*unit));
    most_issued_ = std::max(of_scalar, of_tiles);
    const bool scalar = instruction.source.info->space == Space::scalar;
    return (scalar ? of_scalar : of_tiles) < most_waiting;
}

void Machine::issue_to_tiles(const ProgramInstruction& instruction, const TileIssue& issue) {
    if (issue.tiles == 0) return;
    // In its place: a copy would wait for the stores of its parts.
    issued_.emplace_back(&instruction, issue.source_base.value_or(Issued::own_base),
                         instruction.lines, instruction.engine, issue.tiles);
    if (monitor_) issued_after_.push_back(monitor_->release(core_actor));
    awake_ |= issue.tiles;
}

// Instructions whose own bits say everything, from the first on, as many as may go on without a
// look at anything else; how many. One at least is left behind them, in the loop's body, too.
std::size_t Machine::issue_fixed(const Stream& stream, std::size_t first, std::size_t most) {
    const std::span<const Dispatch> all(stream.dispatches);
    std::size_t end = all.size();
    if (const auto word = core_.end_of_body()) {
        if (*word >= stream.at_word.size() || stream.at_word[*word] >= end) return 0;
        end = stream.at_word[*word];
    }
    if (end <= first + 1 || most_issued_ >= most_waiting) return 0;
    most = std::min({most, end - first - 1, most_waiting - most_issued_});
    std::size_t count = 0;
    for (; count < most && all[first + count].fixed; ++count) {
        const Dispatch& at = all[first + count];
        if (at.tiles == 0) continue;
        issued_.emplace_back(&stream.instructions[first + count], Issued::own_base, at.lines,
                             at.engine, at.tiles);
        awake_ |= at.tiles;
    }
    if (count == 0) return 0;
    core_.pass_up_to(stream.instructions[first + count - 1].source, count);
    most_issued_ += count;
    spend(count);
    scalar_instructions_left_ -= count;
    return count;
}

Status Machine::issue(const ProgramInstruction& instruction) {
    ++most_issued_;
    if (instruction.fixed) {
        issue_to_tiles(instruction, {.tiles = instruction.tiles});
        return {};
    }
    if (instruction.source.info->space == Space::tile) {
        const TileIssue issue = REEF_TRY(core_.issue(instruction.source));
        if (issue.issued) issue_to_tiles(instruction, issue);
        return {};
    }
    const auto queue = [&](ScalarEngine number) {
        auto& engine = scalar_engines_[number];
        engine.queue.push_back({&instruction});
        if (monitor_) engine.after.push_back(monitor_->release(core_actor));
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
    if (!effect.fired) return {};
    auto status = host_->fire(*effect.fired);
    return status ? status : in_place(std::move(status), place_of(at));
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
    const bool nobody_looks_on =
        options_.steps == nullptr && options_.hold == nullptr && monitor_ == nullptr;
    for (unsigned steps = 0; !halted_ && steps < most; ++steps) {
        if (!REEF_TRY(give_word())) return moved;
        const std::size_t word = core_.program_counter();
        if (word >= stream.at_word.size() || stream.at_word[word] == Stream::no_instruction)
            return fail(Cause::bad_input, "no instruction to go on with",
                        fmt::format("word {:#06x}", word));
        if (options_.hold != nullptr && options_.hold->stops(word)) return moved;
        const std::size_t number = stream.at_word[word];
        if (nobody_looks_on && stream.dispatches[number].fixed) {
            const std::size_t most_now = std::min<std::uint64_t>(
                {most - steps, steps_left_ - 1, scalar_instructions_left_ - 1});
            if (const std::size_t count = issue_fixed(stream, number, most_now); count > 0) {
                moved = true;
                steps += static_cast<unsigned>(count) - 1;
                continue;
            }
        }
        const auto& at = stream.instructions[number];
        const bool executes = !at.fixed && ScalarCore::executes(at.source);
        if (!executes && !may_issue(at)) return moved;
        moved = true;
        spend(1, 0);
        if (steps_left_ == 0 || --scalar_instructions_left_ == 0) return moved;
        if (executes) {
            REEF_CHECK(execute(at));
            if (options_.hold != nullptr) options_.hold->moved();
            continue;
        }
        if (!at.fixed && !core_.gate_open(at.source)) {
            pass(at);
            continue;
        }
        if (const auto* sync = at.fixed ? nullptr : std::get_if<Sync>(&at.operation)) {
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

// What an engine waits for is looked at here before the engine itself.
bool Machine::still_blocked(const Engine<ScalarActivity>& engine) const {
    if (engine.current == nullptr) return false;
    switch (engine.blocked.on) {
        case Blocked::On::counter:
            return !scalar_.counters.reached(engine.blocked.unmet.counter,
                                             engine.blocked.unmet.needed);
        case Blocked::On::ring_empty:
            return scalar_.arrived.empty();
        default:
            return false;
    }
}

Result<bool> Machine::advance_scalar_engines() {
    bool progress = false;
    for (unsigned number = 0; number < scalar_engine_count; ++number) {
        auto& engine = scalar_engines_[number];
        while (!engine.idle() && !still_blocked(engine)) {
            if (engine.current == nullptr) {
                if (monitor_) monitor_->join(scalar_actor(number), engine.after[engine.next]);
                engine.current = engine.queue[engine.next++].instruction;
                engine.blocked = {};
                started(scalar_actor(number), *engine.current);
                const auto& op = engine.current->operation;
                if (const auto* in = std::get_if<Infeed>(&op))
                    engine.activity.emplace<InfeedEngine>(*in);
                else if (const auto* out = std::get_if<RingPush>(&op))
                    engine.activity.emplace<RingPushEngine>(*out);
                else
                    engine.activity.emplace<RingPopEngine>(std::get<RingPop>(op));
                if (options_.steps != nullptr) {
                    progress = true;
                    break;
                }
            }
            const std::uint64_t given = budget(turn_steps());
            engine.blocked.on = Blocked::On::nothing;
            ScalarEngineWork work{scalar_,
                                  *this,
                                  *host_,
                                  given,
                                  engine.blocked,
                                  {},
                                  witness(scalar_actor(number), 0)};
            const Outcome outcome = take_turn(engine.activity, work);
            if (work.fault) return stopped(*work.fault, place_of(*engine.current));
            if (outcome != Outcome::waiting) {
                progress = true;
                spend(given, work.budget);
            }
            if (outcome != Outcome::done) break;
            finished(scalar_actor(number), *engine.current);
            engine.current = nullptr;
            if (engine.next == engine.queue.size()) engine.empty_queue();
            if (options_.steps != nullptr) break;
        }
    }
    return progress;
}

bool Machine::all_idle() const {
    for (const auto& engine : scalar_engines_)
        if (!engine.idle()) return false;
    for (const auto& unit : units_) {
        if (unit->busy != 0 || waiting_to_dispatch(*unit) != 0) return false;
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

// What sends messages, until all of it waits for what tiles or the scalar core do next. A relay, in
// which a tile, the scalar core and the tile again take turns, is not a round for each of them.
Result<bool> Machine::feed_rings() {
    bool moved = false;
    const std::uint64_t before = steps_left_;
    const std::uint64_t most = turn_steps();
    while (before - steps_left_ < most) {
        const bool by_core = REEF_TRY(advance_scalar_engines());
        if (!REEF_TRY(advance_producers()) && !by_core) break;
        moved = true;
    }
    return moved;
}

Result<bool> Machine::round() {
    forget_dispatched();
    bool moved = REEF_TRY(advance_scalar());
    if (in_any_order()) {
        moved |= REEF_TRY(advance_scalar_engines());
        return REEF_TRY(advance_tiles_by_turns()) || moved;
    }
    moved |= REEF_TRY(feed_rings());
    moved |= REEF_TRY(advance_tiles());
    if (moved) return true;
    // A deadlock is one only when no tile can move, whether something has happened to it or not.
    wake_all();
    bool unseen = REEF_TRY(advance_tiles());
    unseen |= REEF_TRY(feed_rings());
    assert(!unseen);
    return unseen;
}

bool Machine::waits_for_host() const {
    return word_to_host_ || std::ranges::any_of(scalar_engines_, [](const auto& engine) {
               return engine.current != nullptr && (engine.blocked.on == Blocked::On::host_empty ||
                                                    engine.blocked.on == Blocked::On::host_full);
           });
}

Result<Progress> Machine::advance() {
    if (stream_ == program_->streams.size()) return Progress{.ended = true};
    if (run_watch_ != nullptr) REEF_CHECK(run_watch_->may_go_on());
    const bool moved = REEF_TRY(round());
    REEF_CHECK(check_steps());
    if (stream_ended()) {
        if (auto ended = host_->end_stream(); !ended)
            return in_place(Result<Progress>(std::unexpected(std::move(ended).error())),
                            fmt::format("stream {}", stream_));
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
        for (Turns& turns : turns_) turns.scratch.reserve(program.scratch);
    for (auto& unit : units_)
        unit->tensor.reserve(program.most_live_positions, fast ? program.most_parts : 0);
    reserve_queues(program.queues);
}

void Machine::reserve_queues(const QueueSizes& sizes) {
    constexpr std::size_t most = 1U << 14U;
    issued_.reserve(std::min(sizes.of_tiles, most));
    for (auto& unit : units_)
        for (unsigned e = 0; e < tile_engine_count; ++e)
            unit->engines[e].queue.reserve(std::min(sizes.of_engine[e], most));
    for (auto& engine : scalar_engines_) engine.queue.reserve(std::min(sizes.of_scalar, most));
}

// What a stopped program left is not the next one's.
void Machine::empty_buses() {
    scalar_.arrived.clear();
    word_to_host_.reset();
    most_issued_ = issued_kept_ = 0;
    notifications_.fill(0);
    // Of a program: steps bound their number.
    round_.number = 0;
    for (Turns& turns : turns_) {
        turns.report = {};
        turns.notified_again.fill(0);
    }
    issued_.clear();
    issued_after_.clear();
    const auto clear = [](auto& engine) {
        engine.empty_queue();
        engine.current = nullptr;
    };
    for (auto& places : to_tiles_) places.level();
    round_.of_mesh = MeshLink::no_round + 1;
    for (auto& unit : units_) {
        for (auto& ring : unit->tile.rings) ring.clear();
        for (auto& link : unit->tile.arrived)
            link.clear(short_queues() ? MeshLink::depth : MeshLink::capacity);
        unit->next = 0;
        unit->busy = 0;
        unit->held_for = 0;
        unit->held_until = {};
        unit->awaits = 0;
        unit->at_fence = false;
        std::ranges::for_each(unit->engines, clear);
    }
    std::ranges::for_each(scalar_engines_, clear);
}

void Machine::begin(const Program& program, HostPort& host) {
    program_ = &program;
    host_ = &host;
    reserve(program);
    steps_left_ = options_.most_steps;
    scalar_instructions_left_ = most_scalar_instructions();
    if (monitor_) monitor_->begin_program(program.narrow_bound);
    empty_buses();
    wake_all();
    stream_ = 0;
    begin_stream();
}

Status Machine::run(const Program& program, HostPort& host) {
    begin(program, host);
    while (true) {
        const Progress progress = REEF_TRY(advance());
        if (progress.ended) return {};
        if (progress.starved) return std::unexpected(deadlock());
    }
}

}  // namespace reef::edgetpu::sim
