#include "simulated_debugger.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {

Result<std::unique_ptr<SimulatedDebugger>> SimulatedDebugger::create(
    const Package& package, std::span<const Bytes> inputs) {
    REEF_CHECK(check_chip(package));
    const Executable* computing = REEF_TRY(computing_executable(package));
    std::unique_ptr<SimulatedDebugger> out(new SimulatedDebugger());
    for (const auto* executable : {package.find(ExecutableType::parameter_caching), computing}) {
        if (executable == nullptr) continue;
        const auto number = static_cast<std::size_t>(executable - package.executables.data());
        out->parts_.push_back({number, REEF_TRY(prepare(*executable))});
    }
    if (inputs.size() != computing->inputs.size())
        return fail(Cause::bad_argument, fmt::format("{} inputs, the package has {}", inputs.size(),
                                                     computing->inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
        REEF_CHECK(
            pack_input(computing->inputs[i], inputs[i], out->parts_.back().loaded.host->input(i)));
    for (const auto& layer : computing->outputs)
        out->unpackers_.push_back(REEF_TRY(in_place(OutputUnpacker::prepare(layer), layer.name)));
    out->find_layers();
    REEF_CHECK(out->restart());
    return out;
}

void SimulatedDebugger::find_layers() {
    const Part& computing = parts_.back();
    bool begins = true;
    for (std::size_t s = 0; s < computing.loaded.program.streams.size(); ++s)
        for (const auto& at : computing.loaded.program.streams[s].instructions) {
            const auto* fence = std::get_if<Fence>(&at.operation);
            begins |=
                fence != nullptr && (fence->engines >> spec::value::tile_engine::OP_ & 1U) != 0;
            if (!std::holds_alternative<TensorOp>(at.operation)) continue;
            if (std::exchange(begins, false)) layers_.emplace_back();
            layers_.back().instructions.push_back({computing.number, s, at.source.word});
            layer_of_[at.number] = layers_.size() - 1;
        }
}

Status SimulatedDebugger::restart() {
    machine_.emplace(MachineOptions{.steps = this});
    rounds_ = 0;
    stopped_.reset();
    begin_part(0);
    return {};
}

void SimulatedDebugger::begin_part(std::size_t part) {
    part_ = part;
    progress_.clear();
    current_.fill(nullptr);
    layer_.reset();
    came_ = false;
    if (ended()) return;
    parts_[part].loaded.host->begin_run();
    machine_->begin(parts_[part].loaded.program, *parts_[part].loaded.host);
}

ProgramWord SimulatedDebugger::word_of(const ProgramInstruction& instruction) const {
    const Part& part = parts_[part_];
    const auto& streams = part.loaded.program.streams;
    std::size_t stream = 0;
    while (stream + 1 < streams.size() &&
           streams[stream + 1].instructions.front().number <= instruction.number)
        ++stream;
    return {part.number, stream, instruction.source.word};
}

const ProgramInstruction* SimulatedDebugger::instruction_at(const ProgramWord& at) const {
    const auto part = std::ranges::find(parts_, at.executable, &Part::number);
    if (part == parts_.end()) return nullptr;
    const auto& streams = part->loaded.program.streams;
    if (at.stream >= streams.size()) return nullptr;
    const Stream& stream = streams[at.stream];
    if (at.word >= stream.at_word.size() || stream.at_word[at.word] == Stream::no_instruction)
        return nullptr;
    return &stream.instructions[stream.at_word[at.word]];
}

std::vector<StreamView> SimulatedDebugger::streams() const {
    std::vector<StreamView> views;
    for (const Part& part : parts_)
        for (std::size_t s = 0; s < part.loaded.streams.size(); ++s)
            views.push_back({{part.number, s, 0},
                             to_string(part.loaded.executable.type),
                             Bytes(part.loaded.streams[s])});
    return views;
}

Status SimulatedDebugger::check_word(const ProgramWord& at) const {
    if (instruction_at(at) != nullptr) return {};
    constexpr std::size_t longest = hw::most_instruction_bytes / word_bytes;
    for (std::size_t before = at.word; before > 0 && at.word - before < longest; --before) {
        const auto* found = instruction_at({at.executable, at.stream, before - 1});
        if (found == nullptr) continue;
        if (at.word >= before - 1 + found->source.info->words) break;
        return fail(Cause::bad_argument,
                    fmt::format("no instruction begins at word {:#06x}", at.word), {},
                    fmt::format("{} contains it", place_of(*found)));
    }
    return fail(Cause::bad_argument,
                fmt::format("there is no word {}:{}:{:#06x}", at.executable, at.stream, at.word),
                {}, "`info` lists the executables and the lengths of their streams");
}

Result<unsigned> SimulatedDebugger::add_breakpoint(const BreakCondition& when) {
    if (const auto* word = std::get_if<WordBreak>(&when)) {
        REEF_CHECK(check_word(word->at));
        const ProgramInstruction& at = *instruction_at(word->at);
        if (word->tile && at.source.info->space == Space::scalar)
            return fail(Cause::bad_argument, fmt::format("{} runs on no tile", place_of(at)), {},
                        "leave the tile out");
        if (word->tile && at.tiles != 0 && (at.tiles >> word->tile->value & 1U) == 0)
            return fail(Cause::bad_argument,
                        fmt::format("{} does not run on tile {}", place_of(at), word->tile->value));
    } else {
        const MemoryRange& where = std::get<WriteBreak>(when).where;
        const MemoryInfo& info = info_of(where.memory);
        if (where.last < where.first || where.last >= info.units)
            return fail(Cause::bad_argument,
                        fmt::format("{} memory has no {}s {:#x} to {:#x}", info.name, info.unit,
                                    where.first, where.last));
        if (where.tile && (!info.of_tile || where.tile->value >= tile_count))
            return fail(Cause::bad_argument,
                        fmt::format("no tile {} with {} memory", where.tile->value, info.name));
    }
    return breakpoints_.add(when);
}

Status SimulatedDebugger::delete_breakpoint(unsigned number) {
    if (breakpoints_.remove(number)) return {};
    return fail(Cause::not_found, fmt::format("no breakpoint {}", number), {},
                "`breakpoints` lists them");
}

void SimulatedDebugger::note(DebugEvent::Kind kind, Actor actor,
                             const ProgramInstruction& instruction,
                             std::optional<unsigned> breakpoint,
                             std::optional<MemoryRange> memory) {
    DebugEvent event{kind,   unit_of(actor), word_of(instruction), name_of(instruction),
                     memory, breakpoint};
    (breakpoint ? hits_ : step_events_).push_back(std::move(event));
}

bool SimulatedDebugger::layer_begins(const ProgramInstruction& instruction) {
    if (part_ + 1 != parts_.size()) return false;
    const auto found = layer_of_.find(instruction.number);
    if (found == layer_of_.end() || layer_ == found->second) return false;
    layer_ = found->second;
    return true;
}

void SimulatedDebugger::started(Actor actor, const ProgramInstruction& instruction) {
    current_[actor] = &instruction;
    if (actor == core_actor) {  // come_to_next() has told
        came_ = false;
        return;
    }
    const ChipUnit unit = unit_of(actor);
    const bool first = !unit.tile || progress_.begin(instruction.number, unit.tile->value);
    const auto hit = breakpoints_.at_word(word_of(instruction), false, unit, first);
    const bool layer = layer_begins(instruction);
    const bool step = until_ == RunUntil::layer ? layer : until_ == RunUntil::instruction && first;
    steps_ += step ? 1 : 0;
    if (step || hit) note(DebugEvent::Kind::starts, actor, instruction, hit);
}

void SimulatedDebugger::finished(Actor actor, const ProgramInstruction& instruction) {
    const ChipUnit unit = unit_of(actor);
    const bool last =
        !unit.tile || progress_.end(instruction.number, unit.tile->value, instruction.tiles);
    if (const auto hit = breakpoints_.at_word(word_of(instruction), true, unit, last))
        note(DebugEvent::Kind::finishes, actor, instruction, hit);
    current_[actor] = nullptr;
}

void SimulatedDebugger::write(Actor actor, Watched watched, unsigned tile, std::uint32_t at,
                              bool /*parameter*/) {
    if (watched == Watched::ring) return;
    constexpr MemoryNumber memories[] = {ChipMemory::narrow,          ChipMemory::wide,
                                         ChipMemory::scaling,         ChipMemory::parameter_fifo,
                                         ChipMemory::activation_fifo, ChipMemory::scalar};
    const MemoryNumber memory = memories[static_cast<std::size_t>(watched)];
    const auto hit = breakpoints_.at_write(memory, tile, at);
    if (!hit) return;
    const std::uint32_t scale = memory == ChipMemory::narrow ? narrow_word_bytes : 1;
    MemoryRange where{memory, {}, at * scale, at * scale + scale - 1};
    if (info_of(memory).of_tile) where.tile = TileNumber{tile};
    note(DebugEvent::Kind::writes, actor, *current_[actor], hit, where);
}

// The scalar core is about to execute an instruction, or to hand it on.
void SimulatedDebugger::come_to_next() {
    const ProgramInstruction* at = machine_->next_of_core();
    if (at == nullptr || std::exchange(came_, true)) return;
    std::optional<unsigned> hit;
    if (of_core(*at)) hit = breakpoints_.at_word(word_of(*at), false, unit_of(core_actor), true);
    const bool step = until_ == RunUntil::instruction;
    steps_ += step ? 1 : 0;
    if (step || hit) note(DebugEvent::Kind::comes_to, core_actor, *at, hit);
}

Status SimulatedDebugger::round() {
    const ProgramInstruction* before = machine_->next_of_core();
    const bool sync = before != nullptr && std::holds_alternative<Sync>(before->operation) &&
                      machine_->core().gate_open(before->source);
    step_events_.clear();
    const Progress progress = REEF_TRY(machine_->advance());
    ++rounds_;
    // Of instructions that the core passes on, and of syncs, the machine does not tell.
    if (progress.ended || machine_->next_of_core() != before) {
        came_ = false;
        if (sync)
            if (const auto hit =
                    breakpoints_.at_word(word_of(*before), true, unit_of(core_actor), true))
                note(DebugEvent::Kind::finishes, core_actor, *before, hit);
    }
    if (progress.starved)
        return fail(Cause::bad_input, "the program waits for bytes that the host does not have");
    if (!progress.ended) return {};
    begin_part(part_ + 1);
    return {};
}

Result<RunStop> SimulatedDebugger::run(RunUntil until, std::uint64_t count) {
    if (stopped_) return std::unexpected(*stopped_);
    if (ended())
        return fail(Cause::bad_argument, "the program has ended", {},
                    "`restart` goes back to its first instruction");
    until_ = until;
    steps_ = 0;
    hits_.clear();
    interrupted_ = false;
    std::optional<RunStop::Reason> reason;
    while (!reason) {
        if (auto done = round(); !done) {
            stopped_ = done.error();
            return std::unexpected(std::move(done.error()));
        }
        if (!ended()) come_to_next();
        if (until == RunUntil::round) ++steps_;
        reason = why_stop(count);
    }
    return RunStop{*reason, std::move(hits_.empty() ? step_events_ : hits_), rounds_};
}

std::optional<RunStop::Reason> SimulatedDebugger::why_stop(std::uint64_t count) const {
    if (!hits_.empty()) return RunStop::Reason::breakpoint;
    if (ended()) return RunStop::Reason::ended;
    if (interrupted_) return RunStop::Reason::interrupted;
    if (until_ != RunUntil::breakpoint && steps_ >= count) return RunStop::Reason::stepped;
    return std::nullopt;
}

Result<std::vector<std::vector<std::byte>>> SimulatedDebugger::outputs() {
    if (stopped_)
        return fail(Cause::bad_argument, "the program has failed and gave no outputs", {},
                    "`restart` goes back to its first instruction");
    if (!ended())
        return fail(Cause::bad_argument, "the program has not ended", {}, "`continue` runs it on");
    std::vector<std::vector<std::byte>> tensors;
    const HostMemory& host = *parts_.back().loaded.host;
    for (std::size_t i = 0; i < unpackers_.size(); ++i) {
        tensors.emplace_back(unpackers_[i].tensor_bytes());
        unpackers_[i].run(host.output(i), tensors.back());
    }
    return tensors;
}

}  // namespace reef::edgetpu::sim

namespace reef::edgetpu {

Result<std::unique_ptr<Debugger>> simulated_debugger(const Package& package,
                                                     std::span<const Bytes> inputs) {
    return REEF_TRY(sim::SimulatedDebugger::create(package, inputs));
}

}  // namespace reef::edgetpu
