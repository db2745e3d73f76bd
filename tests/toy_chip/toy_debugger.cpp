#include "toy_chip/toy_debugger.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "toy_chip/toy_program.h"

namespace reef::toy {
namespace {

using namespace chip;

constexpr std::size_t memory_bytes = 256;

std::unexpected<Error> no_register(std::string_view name) {
    return fail(Cause::not_found, fmt::format("no register '{}'", name), {}, "a toy has a0");
}

/// The core does everything; its only register a0 counts what was added.
class ToyDebugger final : public Debugger {
  public:
    ToyDebugger(const DebugTables& tables, SharedBytes stream, std::vector<Instruction> program,
                std::vector<std::byte> input, std::size_t output_bytes)
        : tables_(tables),
          stream_(std::move(stream)),
          program_(std::move(program)),
          input_(std::move(input)),
          output_(output_bytes) {}

    [[nodiscard]] const DebugTables& tables() const override { return tables_; }
    [[nodiscard]] bool shows_memories() const override { return true; }
    [[nodiscard]] std::vector<StreamView> streams() const override {
        return {{{0, 0, 0}, "TOY", stream_.view()}};
    }
    [[nodiscard]] std::vector<ProgramLayer> layers() const override {
        return {{.instructions = {{0, 0, 1}}}};
    }

    [[nodiscard]] Result<RunStop> run(RunUntil until, std::uint64_t count) override;
    void interrupt() override { interrupted_ = true; }
    [[nodiscard]] Status halt() override { return {}; }
    [[nodiscard]] Status restart() override {
        next_ = 0;
        added_ = 0;
        memory_.clear();
        return {};
    }

    [[nodiscard]] Result<unsigned> add_breakpoint(const BreakCondition& when) override {
        if (const auto* word = std::get_if<WordBreak>(&when); word != nullptr && !exists(word->at))
            return fail(Cause::bad_argument, "no instruction begins there");
        breakpoints_.push_back({++last_number_, when});
        return last_number_;
    }
    [[nodiscard]] Status delete_breakpoint(unsigned number) override {
        if (std::erase_if(breakpoints_, [&](const auto& one) { return one.number == number; }) == 0)
            return fail(Cause::bad_argument, fmt::format("no breakpoint {}", number));
        return {};
    }
    [[nodiscard]] std::span<const Breakpoint> breakpoints() const override { return breakpoints_; }

    [[nodiscard]] Result<CoreState> core() override {
        CoreState state;
        state.program_counter = next_;
        state.registers = {{added_}};
        if (next_ == program_.size()) return state;
        state.at = ProgramWord{0, 0, next_};
        state.instruction = name_of(next_);
        return state;
    }
    [[nodiscard]] Result<std::vector<EngineState>> engines() override {
        return std::vector<EngineState>{};
    }
    [[nodiscard]] Result<std::vector<CounterState>> counters() override {
        return std::vector<CounterState>{{{}, "instructions", next_}};
    }
    [[nodiscard]] Result<std::vector<QueueState>> queues() override {
        return std::vector<QueueState>{};
    }
    [[nodiscard]] Result<std::vector<std::byte>> read_memory(const MemoryRange& range) override {
        std::vector<std::byte> bytes = memory_;
        bytes.resize(memory_bytes);
        return std::vector<std::byte>(bytes.begin() + range.first, bytes.begin() + range.last + 1);
    }
    [[nodiscard]] Result<std::uint64_t> read_register(std::string_view name) override {
        if (name != "a0") return no_register(name);
        return added_;
    }
    [[nodiscard]] Status write_register(std::string_view name, std::uint64_t value) override {
        if (name != "a0") return no_register(name);
        added_ = value;
        return {};
    }
    [[nodiscard]] Result<std::vector<std::vector<std::byte>>> outputs() override {
        if (next_ < program_.size()) return fail(Cause::bad_argument, "the program has not ended");
        return std::vector<std::vector<std::byte>>{output_};
    }

  private:
    [[nodiscard]] bool exists(const ProgramWord& at) const {
        return at.executable == 0 && at.stream == 0 && at.word < program_.size();
    }
    [[nodiscard]] std::string_view name_of(std::size_t word) const {
        const auto opcode = static_cast<unsigned>(program_[word].opcode);
        return instruction_set().find(hw::Space{}, opcode)->name;
    }
    [[nodiscard]] DebugEvent event(DebugEvent::Kind kind, std::size_t word) const {
        return {.kind = kind,
                .unit = {{}, "core"},
                .at = {0, 0, word},
                .instruction = name_of(word),
                .memory = {},
                .breakpoint = {}};
    }
    void step() {
        const Instruction& one = program_[next_++];
        if (one.opcode == Opcode::add) added_ += one.operand;
        execute(one, 0, input_, memory_, output_);
    }
    /// The first that is hit when the instruction is come to, or was executed.
    std::optional<unsigned> hit(std::size_t word, bool done) {
        for (Breakpoint& one : breakpoints_) {
            const auto* at = std::get_if<WordBreak>(&one.when);
            const bool writes = at == nullptr && done && program_[word].opcode != Opcode::give;
            if (!writes && (at == nullptr || at->at.word != word || at->when_done != done))
                continue;
            ++one.hits;
            return one.number;
        }
        return std::nullopt;
    }

    const DebugTables& tables_;
    SharedBytes stream_;
    std::vector<Instruction> program_;
    std::vector<std::byte> input_, memory_, output_;
    std::size_t next_ = 0;
    std::uint64_t added_ = 0;
    std::vector<Breakpoint> breakpoints_;
    unsigned last_number_ = 0;
    std::atomic<bool> interrupted_ = false;
};

Result<RunStop> ToyDebugger::run(RunUntil until, std::uint64_t count) {
    if (next_ == program_.size()) return fail(Cause::bad_argument, "the program has ended");
    RunStop stop;
    interrupted_ = false;
    while (next_ < program_.size()) {
        const std::size_t word = next_;
        step();
        auto number = hit(word, true);
        stop.rounds = next_;
        if (number) {
            stop.events.push_back(event(DebugEvent::Kind::finishes, word));
        } else if (next_ < program_.size() && (number = hit(next_, false))) {
            stop.events.push_back(event(DebugEvent::Kind::comes_to, next_));
        }
        if (number) {
            stop.reason = RunStop::Reason::breakpoint;
            stop.events.back().breakpoint = number;
            return stop;
        }
        if (interrupted_) {
            stop.reason = RunStop::Reason::interrupted;
            return stop;
        }
        const bool counts = until == RunUntil::instruction || until == RunUntil::round ||
                            (until == RunUntil::layer && next_ == 1);
        if (next_ < program_.size() && counts && --count == 0) {
            stop.events.push_back(event(DebugEvent::Kind::comes_to, next_));
            return stop;
        }
    }
    stop.reason = RunStop::Reason::ended;
    return stop;
}

}  // namespace

const DebugTables& DebuggerOpener::tables() const {
    static constexpr MemoryInfo memories[] = {{"bytes", "byte", 1, memory_bytes, false}};
    static constexpr RegisterFile files[] = {{"added", "a", "what was added up to now", 1, 32}};
    static constexpr DebugTables tables{.tile = "part",
                                        .tile_hint = "a toy is in one piece",
                                        .memories = memories,
                                        .registers = files,
                                        .register_names = "a0",
                                        .memory_names = "its bytes",
                                        .word_bytes = 8};
    return tables;
}

Result<DebugTarget> DebuggerOpener::open(const DebugRequest& request) const {
    const model::Subgraph& graph = request.model->subgraphs.front();
    const auto op = std::ranges::find_if(graph.operators, toy::is_compiled);
    if (op == graph.operators.end() || graph.operators.size() != 1)
        return fail(Cause::bad_input, "no model of one toy operator", request.place);
    if (request.op.value_or(0) != 0)
        return fail(Cause::bad_argument, fmt::format("operator {} holds no program", *request.op),
                    {}, "that which does: 0");
    auto program = REEF_TRY(in_place(decode(op->custom_options.view()), request.place));
    auto inputs = REEF_TRY(request.inputs(graph));
    const auto& in = graph.tensors[static_cast<std::size_t>(op->inputs[0])];
    const auto& out = graph.tensors[static_cast<std::size_t>(op->outputs[0])];
    const auto size = static_cast<std::size_t>(out.byte_count().value_or(0));
    DebugTarget target;
    target.debugger = std::make_unique<ToyDebugger>(tables(), op->custom_options,
                                                    std::move(program), std::move(inputs[0]), size);
    target.inputs.push_back({in.name, fmt::format("{} bytes", in.byte_count().value_or(0))});
    target.outputs.push_back({out.name, fmt::format("{} bytes", size)});
    target.output_arrays.push_back({ElementType::uint8, {static_cast<std::int64_t>(size)}, {}});
    return target;
}

}  // namespace reef::toy
