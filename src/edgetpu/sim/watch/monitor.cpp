#include "monitor.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::edgetpu::sim {
namespace {

/// Findings of different places that are kept; the rest is counted in the last one.
constexpr std::size_t most_findings = 2000;

constexpr std::string_view memory_names[] = {
    "narrow memory", "wide memory", "scaling memory", "the parameter FIFO", "the activation FIFO",
    "scalar memory", "ring"};
constexpr std::size_t memory_sizes[] = {narrow_bytes / narrow_word_bytes + 1,
                                        wide_rows,
                                        scaling_words,
                                        parameter_fifo_units,
                                        activation_fifo_units,
                                        spec::scalar_memory_words,
                                        0};
constexpr std::uint32_t address_units[] = {narrow_word_bytes, 1, 1, 1, 1, 1, 1};

bool is_tile_actor(Actor actor) {
    return actor < scalar_actor(0);
}

unsigned slot_of(Actor actor) {
    return is_tile_actor(actor) ? actor % tile_engine_count : actor - scalar_actor(0);
}

Actor actor_of(unsigned slot, unsigned tile, bool of_tile) {
    return of_tile ? tile_actor(tile, slot) : scalar_actor(slot);
}

bool in_tile(Watched memory) {
    return memory <= Watched::scaling;
}

bool is_fifo(Watched memory) {
    return memory == Watched::parameter_fifo || memory == Watched::activation_fifo;
}

}  // namespace

Monitor::Monitor(MonitorOptions options) : options_(options) {}

const Monitor::Memory& Monitor::memory(Watched watched, unsigned tile) const {
    const auto n = static_cast<std::size_t>(watched);
    return in_tile(watched) ? tiles_[tile][n] : scalar_[n - 3];
}

Monitor::Memory& Monitor::cells(Watched watched, unsigned tile) {
    auto& cells = const_cast<Memory&>(memory(watched, tile));
    if (cells.empty()) cells.resize(memory_sizes[static_cast<std::size_t>(watched)]);
    return cells;
}

void Monitor::begin_program(std::uint64_t narrow_bound) {
    narrow_bound_ = narrow_bound;
    ++run_;
    for (auto& starts : starts_) starts.clear();
    known_.clear();
    begin_stream();
}

void Monitor::begin_stream() {
    order_.barrier();
    const auto forget = [](Events& events) {
        events.start = static_cast<std::uint16_t>(events.start + events.counted.size());
        events.counted.clear();
        events.set = {};
    };
    for (auto& tile : events_) std::ranges::for_each(tile, forget);
    std::ranges::for_each(scalar_events_, forget);
}

void Monitor::end_program() {
    for (unsigned t = 0; t < tile_count; ++t) {
        for (unsigned r = 0; r < 2; ++r)
            report_left(fmt::format("messages of ring {}", "ab"[r]), t, rings_[t][r].size());
        for (auto& link : links_[t]) report_left("words of a mesh link", t, link.size());
        report_left("notifications", t, notifications_[t].size());
    }
    report_left("messages of the rings", tile_count, scalar_ring_.size());
    for (const auto fifo : {Watched::parameter_fifo, Watched::activation_fifo})
        report_left(
            fmt::format("units of {}", memory_names[static_cast<unsigned>(fifo)]), tile_count,
            static_cast<std::size_t>(std::ranges::count_if(
                cells(fifo, 0), [](Cell& cell) { return std::exchange(cell.unread, false); })));
}

void Monitor::report_unread_rows(std::uint32_t run) {
    for (unsigned t = 0; t < tile_count; ++t) {
        const auto& rows = memory(Watched::wide, t);
        for (std::uint32_t row = 0; row < rows.size(); ++row)
            if (rows[row].unread && rows[row].run == run)
                report(FindingKind::row_never_read, Watched::wide, t, row, nullptr, nullptr);
    }
}

void Monitor::clear() {
    findings_.clear();
    known_.clear();
}

void Monitor::started(Actor actor, const ProgramInstruction& instruction) {
    starts_[actor].push_back({order_.now(actor), &instruction});
}

void Monitor::finished(Actor actor) {
    static_cast<void>(order_.release(actor));
}

void Monitor::counted(Actor actor, unsigned tile, unsigned counter) {
    events_[tile][counter].count(order_.release(actor));
}

// Every tile has its own counter of the same events.
void Monitor::ring_counted(Actor actor, Ring ring) {
    namespace tile_counter = spec::value::tile_counter;
    namespace scalar_counter = spec::value::scalar_counter;
    auto& all = ring_events_[static_cast<unsigned>(ring)];
    all = order_.release_after(all, actor);
    const bool a = ring == Ring::a;
    for (auto& tile : events_)
        tile[a ? tile_counter::RING_PRODUCER_A_ : tile_counter::RING_PRODUCER_B_].count(all);
    scalar_events_[a ? scalar_counter::PRODUCER_A_ : scalar_counter::PRODUCER_B_].count(all);
}

void Monitor::scalar_counted(Actor actor, unsigned counter) {
    scalar_events_[counter].count(order_.release(actor));
}

void Monitor::counters_set(unsigned tile, std::uint32_t mask, std::uint16_t value) {
    const Release release = order_.release(dispatch_actor(tile));
    for (unsigned c = 0; c < events_[tile].size(); ++c)
        if ((mask >> c & 1U) != 0) events_[tile][c] = {value, release, {}};
}

void Monitor::scalar_counters_set(std::uint32_t mask, std::uint16_t value) {
    const Release release = order_.release(core_actor);
    for (unsigned c = 0; c < scalar_events_.size(); ++c)
        if ((mask >> c & 1U) != 0) scalar_events_[c] = {value, release, {}};
}

void Monitor::wait(Actor actor, const Events& events, const Wait* wait, std::uint16_t needed) {
    if (wait != nullptr && wait == weakened_) --needed;
    order_.join(actor, events.that_reached(needed));
}

void Monitor::waited(Actor actor, unsigned tile, const Wait& wait, std::uint16_t needed) {
    this->wait(actor, events_[tile][wait.counter], &wait, needed);
}

void Monitor::scalar_waited(Actor actor, const Wait* wait, unsigned counter, std::uint16_t needed) {
    this->wait(actor, scalar_events_[counter], wait, needed);
}

void Monitor::notified(unsigned tile) {
    notifications_[tile].push_back(order_.release(dispatch_actor(tile)));
}

void Monitor::awaited(unsigned tile, unsigned notifications) {
    for (; notifications > 0 && !notifications_[tile].empty(); --notifications) {
        order_.join(core_actor, notifications_[tile].front());
        notifications_[tile].pop_front();
    }
}

// Which of two messages arrives first must not depend on the schedule.
void Monitor::check_sent(Sent& last, Actor actor, unsigned tile, unsigned ring) {
    if (last.time != 0 && !order_.knows(actor, last.actor, last.time))
        report(FindingKind::hazard, Watched::ring, tile, ring, starts_[actor].back().instruction,
               instruction_at(last.actor, last.time));
    last = {actor, order_.now(actor)};
}

void Monitor::sent(Actor actor, Ring ring, std::uint16_t tiles, bool scalar) {
    const auto r = static_cast<unsigned>(ring);
    for (unsigned t = 0; t < tile_count; ++t)
        if ((tiles >> t & 1U) != 0) check_sent(last_sent_[t][r], actor, t, r);
    if (scalar) check_sent(last_sent_to_core_, actor, tile_count, r);
    const Release release = order_.release(actor);
    for (unsigned t = 0; t < tile_count; ++t)
        if ((tiles >> t & 1U) != 0) rings_[t][static_cast<unsigned>(ring)].push_back(release);
    if (scalar) scalar_ring_.push_back(release);
}

void Monitor::received(Actor actor, unsigned tile, Ring ring) {
    auto& queue = rings_[tile][static_cast<unsigned>(ring)];
    order_.join(actor, queue.front());
    queue.pop_front();
}

void Monitor::scalar_received(Actor actor) {
    order_.join(actor, scalar_ring_.front());
    scalar_ring_.pop_front();
}

void Monitor::mesh_sent(Actor actor, unsigned tile, Direction to) {
    links_[tile][static_cast<unsigned>(to)].push_back(order_.release(actor));
}

void Monitor::mesh_received(Actor actor, unsigned tile, Direction to) {
    auto& link = links_[tile][static_cast<unsigned>(to)];
    order_.join(actor, link.front());
    link.pop_front();
}

void Monitor::row_emptied(Actor actor, unsigned tile, std::uint32_t row) {
    if (!options_.full_bits) return;
    auto& rows = emptied_[tile];
    if (rows.empty()) rows.resize(wide_rows);
    rows[row] = order_.release(actor);
}

void Monitor::row_filled(Actor actor, unsigned tile, std::uint32_t row) {
    if (!emptied_[tile].empty()) order_.join(actor, emptied_[tile][row]);
}

bool Monitor::suspicious(Actor actor, Watched watched, unsigned tile, std::uint32_t at) const {
    const Memory& cells = memory(watched, tile);
    if (cells.empty()) return true;
    const Cell& cell = cells[at];
    return cell.written == 0 || !order_.knows(actor, cell.writer, cell.written) ||
           (watched == Watched::narrow && narrow_bound_ != 0 &&
            std::uint64_t{at} * narrow_word_bytes >= narrow_bound_);
}

void Monitor::check_bound(Actor actor, Watched watched, unsigned tile, std::uint32_t at) {
    if (watched != Watched::narrow || narrow_bound_ == 0) return;
    if (std::uint64_t{at} * narrow_word_bytes < narrow_bound_) return;
    report(FindingKind::outside_bound, watched, tile, at, starts_[actor].back().instruction,
           nullptr);
}

void Monitor::read(Actor actor, Watched watched, unsigned tile, std::uint32_t at) {
    Cell& cell = cells(watched, tile)[at];
    check_bound(actor, watched, tile, at);
    if (cell.written == 0)
        report(FindingKind::unwritten_read, watched, tile, at, starts_[actor].back().instruction,
               nullptr);
    else if (!order_.knows(actor, cell.writer, cell.written))
        report(FindingKind::hazard, watched, tile, at, starts_[actor].back().instruction,
               instruction_at(cell.writer, cell.written));
    check_use(cell, actor, watched, tile, at);
    cell.reads[slot_of(actor)] = order_.now(actor);
}

void Monitor::check_use(Cell& cell, Actor actor, Watched watched, unsigned tile, std::uint32_t at) {
    const auto* instruction = starts_[actor].back().instruction;
    if (is_fifo(watched) && !cell.unread)
        report(FindingKind::read_twice, watched, tile, at, instruction, nullptr);
    cell.unread = false;
    if (!cell.resident || cell.run == run_) return;
    const std::uint32_t reader = instruction->number + 1;
    if (cell.reader_run == run_ && cell.reader != reader)
        report(FindingKind::read_twice, watched, tile, at, instruction, nullptr);
    cell.reader = reader;
    cell.reader_run = run_;
}

void Monitor::write(Actor actor, Watched watched, unsigned tile, std::uint32_t at, bool parameter) {
    Cell& cell = cells(watched, tile)[at];
    const auto* instruction = starts_[actor].back().instruction;
    check_bound(actor, watched, tile, at);
    if (cell.written != 0 && !order_.knows(actor, cell.writer, cell.written))
        report(FindingKind::hazard, watched, tile, at, instruction,
               instruction_at(cell.writer, cell.written));
    for (unsigned slot = 0; slot < cell.reads.size(); ++slot) {
        if (cell.reads[slot] == 0) continue;
        const Actor reader = actor_of(slot, tile, in_tile(watched));
        if (!order_.knows(actor, reader, cell.reads[slot]))
            report(FindingKind::hazard, watched, tile, at, instruction,
                   instruction_at(reader, cell.reads[slot]));
    }
    if (cell.unread && cell.run == run_)
        report(FindingKind::overwritten_unread, watched, tile, at, instruction,
               instruction_at(cell.writer, cell.written));
    cell.written = order_.now(actor);
    cell.writer = actor;
    cell.run = run_;
    cell.resident = parameter;
    cell.unread = parameter || is_fifo(watched);
}

// Times of earlier programs are never in question: a barrier lies between.
const ProgramInstruction* Monitor::instruction_at(Actor actor, std::uint32_t time) const {
    const auto& starts = starts_[actor];
    const auto behind = std::ranges::upper_bound(starts, time, {}, &Start::time);
    return behind == starts.begin() ? nullptr : std::prev(behind)->instruction;
}

void Monitor::report(FindingKind kind, Watched watched, unsigned tile, std::uint32_t at,
                     const ProgramInstruction* instruction, const ProgramInstruction* other) {
    const auto [found, fresh] =
        known_.try_emplace(Key{kind, watched, instruction, other}, findings_.size());
    const bool of_tile = in_tile(watched) || (watched == Watched::ring && tile < tile_count);
    const auto mask = of_tile ? static_cast<std::uint16_t>(1U << tile) : std::uint16_t{0};
    if (!fresh) {
        Finding& finding = findings_[found->second];
        finding.tiles |= mask;
        ++finding.times;
        return;
    }
    if (findings_.size() >= most_findings) {
        known_.erase(found);
        ++findings_.back().not_listed;
        return;
    }
    const auto unit = static_cast<unsigned>(watched);
    findings_.push_back({.kind = kind,
                         .memory = std::string(memory_names[unit]),
                         .address = at * address_units[unit],
                         .tiles = mask,
                         .instruction = instruction != nullptr ? place_of(*instruction) : "",
                         .other = other != nullptr ? place_of(*other) : ""});
}

void Monitor::report_left(std::string what, unsigned tile, std::size_t count) {
    if (count == 0 || findings_.size() >= most_findings) return;
    Finding& finding = findings_.emplace_back();
    finding.kind = FindingKind::left_over;
    finding.memory = std::move(what);
    if (tile < tile_count) finding.tiles = static_cast<std::uint16_t>(1U << tile);
    finding.times = count;
}

}  // namespace reef::edgetpu::sim
