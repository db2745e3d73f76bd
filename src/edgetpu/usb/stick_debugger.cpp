#include "reef/edgetpu/usb/stick_debugger.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <numeric>

#include "edgetpu/usb/register_map.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::string_view counter_prefix = "SyncCounter_";

/// With a core that may never stop.
constexpr Milliseconds patience{1000};

std::unexpected<Error> not_on_a_stick(std::string_view what) {
    return fail(Cause::unsupported, fmt::format("a stick's registers do not show {}", what), {},
                "reef debug FILE --device edgetpu:sim does");
}

std::optional<unsigned> whole_number(std::string_view text) {
    unsigned value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end) return std::nullopt;
    return value;
}

/// "0x44018", also where the tables have no register.
Result<RegisterInfo> register_at(std::string_view address) {
    std::uint32_t offset = 0;
    const char* end = address.data() + address.size();
    const auto [rest, error] = std::from_chars(address.data() + 2, end, offset, 16);
    if (error != std::errc() || rest != end || offset % 4 != 0)
        return fail(Cause::bad_argument, fmt::format("'{}' is no register's address", address), {},
                    "like 0x44018, a multiple of 4");
    RegisterInfo out{};
    if (const RegisterInfo* known = find_register(offset)) out = *known;
    // Those of the tensor engine, from 0x40000 on, have 64 bits.
    if (out.name.empty()) {
        out.name = "unknown register";
        out.bits = offset >= 0x40000 ? 64 : 32;
    }
    out.offset = offset;
    out.count = 1;
    return out;
}

/// By name or address. "s4" and "p1" are elements of the scalar core's files.
Result<RegisterInfo> register_of(std::string_view name) {
    if (name.starts_with("0x")) return register_at(name);
    const RegisterInfo* info = nullptr;
    std::string_view base = name;
    std::optional<unsigned> element;
    if (name.size() > 1 && (name[0] == 's' || name[0] == 'p'))
        element = whole_number(name.substr(1));
    if (element) {
        info = name[0] == 's' ? csr::scalar_register_file : csr::predicate_register_file;
    } else {
        if (const auto open = name.find('[');
            open != std::string_view::npos && name.ends_with(']')) {
            element = whole_number(name.substr(open + 1, name.size() - open - 2));
            base = element ? name.substr(0, open) : name;
        }
        info = find_register(base);
    }
    if (info == nullptr)
        return fail(Cause::not_found, fmt::format("no register '{}'", name), {},
                    "docs/edgetpu-registers.md lists them; s0 to s31, p0 to p7, or an address like "
                    "0x44018");
    if (element.value_or(0) >= info->count)
        return fail(Cause::not_found, fmt::format("{} has {} elements", info->name, info->count));
    if (!element && info->count > 1)
        return fail(Cause::not_found,
                    fmt::format("{} is a file of {} registers", name, info->count), {},
                    fmt::format("{}[0] is its first", name));
    return element_of(*info, element.value_or(0));
}

/// The executable that loads parameters comes first.
std::vector<std::size_t> run_order(std::span<const Executable> executables) {
    std::vector<std::size_t> order(executables.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_partition(order, [&](std::size_t e) {
        return executables[e].type == ExecutableType::parameter_caching;
    });
    return order;
}

/// What the debugger sends, and where it is.
struct Inference {
    std::shared_ptr<const Program> program;
    std::vector<std::vector<std::byte>> inputs, outputs;
    /// In the order in which they run; the first only until its parameters are in the chip.
    std::vector<std::size_t> executables;
    bool loaded = false;
    bool under_way = false;
    bool complete = false;
    int interrupts = 0;  ///< since it began
};

class StickDebugger final : public Debugger {
  public:
    StickDebugger(std::unique_ptr<Device> device, std::shared_ptr<Bus> bus, const Package* package,
                  std::optional<Inference> inference)
        : device_(std::move(device)), bus_(std::move(bus)), inference_(std::move(inference)) {
        if (package != nullptr) executables_ = package->executables;
    }

    [[nodiscard]] const chip::DebugTables& tables() const override { return debug_tables(); }
    [[nodiscard]] bool shows_memories() const override { return false; }
    [[nodiscard]] std::vector<StreamView> streams() const override {
        std::vector<StreamView> views;
        for (const std::size_t e : run_order(executables_))
            for (std::size_t s = 0; s < executables_[e].bitstreams.size(); ++s)
                views.push_back({{e, s, 0},
                                 to_string(executables_[e].type),
                                 executables_[e].bitstreams[s].instructions.view()});
        return views;
    }
    [[nodiscard]] std::vector<ProgramLayer> layers() const override { return {}; }
    [[nodiscard]] Result<RunStop> run(RunUntil until, std::uint64_t count) override;
    void interrupt() override { interrupted_ = true; }
    [[nodiscard]] Status halt() override { return command(csr::halt); }
    [[nodiscard]] Status restart() override;
    [[nodiscard]] Result<unsigned> add_breakpoint(const BreakCondition& when) override;
    [[nodiscard]] Status delete_breakpoint(unsigned number) override;
    [[nodiscard]] std::span<const Breakpoint> breakpoints() const override {
        return breakpoint_ ? std::span(&*breakpoint_, 1) : std::span<const Breakpoint>();
    }
    [[nodiscard]] Result<CoreState> core() override;
    [[nodiscard]] Result<std::vector<EngineState>> engines() override {
        return not_on_a_stick("its engines' loop nests");
    }
    [[nodiscard]] Result<std::vector<CounterState>> counters() override;
    [[nodiscard]] Result<std::vector<QueueState>> queues() override {
        return not_on_a_stick("its rings and links");
    }
    [[nodiscard]] Result<std::vector<std::byte>> read_memory(const MemoryRange& range) override {
        return not_on_a_stick(fmt::format("{} memory", info_of(range.memory).name));
    }
    [[nodiscard]] Result<std::uint64_t> read_register(std::string_view name) override {
        return device_->read_register(REEF_TRY(register_of(name)));
    }
    [[nodiscard]] Status write_register(std::string_view name, std::uint64_t value) override {
        const RegisterInfo info = REEF_TRY(register_of(name));
        if (info.bits == 32 && value > 0xffffffffU)
            return fail(Cause::bad_argument,
                        fmt::format("{} cannot hold {:#x}: it has 32 bits", name, value));
        return device_->write_register(info, value);
    }
    [[nodiscard]] Result<std::vector<std::vector<std::byte>>> outputs() override;

  private:
    [[nodiscard]] Status command(std::uint64_t value) {
        return device_->write_register(*csr::scalar_core_run_control, value);
    }
    [[nodiscard]] Status begin();
    [[nodiscard]] Result<bool> move_on();
    [[nodiscard]] std::optional<std::size_t> executable_now() const;
    [[nodiscard]] Result<RunStop> step(std::uint64_t count);
    [[nodiscard]] Result<RunStop> go_on();
    [[nodiscard]] Result<bool> at_breakpoint();
    void locate(std::size_t executable, CoreState& state) const;
    [[nodiscard]] RunStop stop(RunStop::Reason reason) const { return {reason, {}, steps_}; }

    std::unique_ptr<Device> device_;
    std::shared_ptr<Bus> bus_;
    std::optional<Inference> inference_;
    std::vector<Executable> executables_;
    std::optional<Breakpoint> breakpoint_;
    unsigned last_number_ = 0;
    std::uint64_t steps_ = 0;
    std::atomic<bool> interrupted_ = false;
};

Result<RunStop> StickDebugger::run(RunUntil until, std::uint64_t count) {
    interrupted_ = false;
    if (until == RunUntil::layer || until == RunUntil::round)
        return fail(Cause::unsupported, "a stick steps by the scalar core's instructions only", {},
                    "step, or reef debug FILE --device edgetpu:sim");
    if (inference_ && inference_->complete)
        return fail(Cause::bad_argument, "the program has ended", {},
                    "`restart` begins another inference");
    return until == RunUntil::breakpoint ? go_on() : step(count);
}

/// Sends the program to a core that is held or runs, as it was told before.
Status StickDebugger::begin() {
    if (!inference_ || inference_->under_way) return {};
    const std::vector<Bytes> inputs(inference_->inputs.begin(), inference_->inputs.end());
    REEF_CHECK(device_->start(inference_->program, inputs));
    inference_->under_way = true;
    inference_->interrupts = 0;
    return {};
}

/// Moves what there is to move, or waits a moment. True: the program has ended, and its outputs are
/// here.
Result<bool> StickDebugger::move_on() {
    constexpr Milliseconds moment{1};
    if (!inference_ || !inference_->under_way) {
        bus_->sleep(moment);
        return false;
    }
    auto progress = device_->advance(moment);
    while (progress && progress->moved && !progress->complete) progress = device_->advance({});
    inference_->under_way = progress.has_value();
    if (!progress) return std::unexpected(std::move(progress.error()));
    inference_->interrupts = progress->interrupts;
    if (!progress->complete) return false;
    const std::vector<MutableBytes> outputs(inference_->outputs.begin(), inference_->outputs.end());
    inference_->under_way = false;
    REEF_CHECK(device_->finish(outputs));
    inference_->complete = inference_->loaded = true;
    return true;
}

/// By the interrupts that have come: each executable ends with one.
std::optional<std::size_t> StickDebugger::executable_now() const {
    if (!inference_ || !inference_->under_way) return std::nullopt;
    const auto& all = inference_->executables;
    const std::size_t first = inference_->loaded ? all.size() - 1 : 0;
    return all[std::min(first + static_cast<std::size_t>(inference_->interrupts), all.size() - 1)];
}

Result<RunStop> StickDebugger::step(std::uint64_t count) {
    if (inference_ && !inference_->under_way) {
        REEF_CHECK(command(csr::halt));
        REEF_CHECK(begin());
    }
    for (std::uint64_t i = 0; i < count; ++i, ++steps_) {
        REEF_CHECK(command(csr::single_step));
        const TimePoint end = bus_->now() + patience;
        while (true) {
            if (interrupted_) return stop(RunStop::Reason::interrupted);
            if (REEF_TRY(move_on())) return stop(RunStop::Reason::ended);
            const auto status = REEF_TRY(device_->read_register(*csr::scalar_core_run_status));
            if (status == csr::is_halted || status == csr::is_idle) break;
            // A sync that waits for something.
            if (bus_->now() >= end) return stop(RunStop::Reason::running);
        }
    }
    return stop(RunStop::Reason::stepped);
}

Result<RunStop> StickDebugger::go_on() {
    REEF_CHECK(command(csr::run));
    REEF_CHECK(begin());
    const bool watched = breakpoint_ || inference_;
    const TimePoint end = bus_->now() + (inference_ ? DeviceOptions().run_deadline : patience);
    while (watched && !interrupted_ && bus_->now() < end) {
        const bool held = REEF_TRY(at_breakpoint());
        if (REEF_TRY(move_on())) {
            if (held) REEF_CHECK(command(csr::run));
            return stop(RunStop::Reason::ended);
        }
        if (!held) continue;
        const ProgramWord& word = std::get<WordBreak>(breakpoint_->when).at;
        if (executable_now().value_or(word.executable) != word.executable) {
            REEF_CHECK(command(csr::run));
            continue;
        }
        ++breakpoint_->hits;
        return RunStop{
            RunStop::Reason::breakpoint,
            {{DebugEvent::Kind::comes_to, {{}, "core"}, word, {}, {}, breakpoint_->number}},
            steps_};
    }
    return stop(interrupted_ ? RunStop::Reason::interrupted : RunStop::Reason::running);
}

/// In this executable or at a word of the same number in another.
Result<bool> StickDebugger::at_breakpoint() {
    if (!breakpoint_) return false;
    const ProgramWord& word = std::get<WordBreak>(breakpoint_->when).at;
    return REEF_TRY(device_->read_register(*csr::scalar_core_run_status)) == csr::is_halted &&
           REEF_TRY(device_->read_register(*csr::current_pc)) == word.word;
}

Status StickDebugger::restart() {
    if (!inference_ || inference_->under_way)
        return fail(Cause::unsupported, "a stick does not go back to before a program", {},
                    inference_ ? "continue to its end first" : "reef run starts a program on it");
    inference_->complete = false;
    return {};
}

Result<std::vector<std::vector<std::byte>>> StickDebugger::outputs() {
    if (!inference_) return not_on_a_stick("a program's outputs");
    if (!inference_->complete)
        return fail(Cause::bad_argument, "the program has not ended", {}, "`continue` runs it on");
    return inference_->outputs;
}

Result<unsigned> StickDebugger::add_breakpoint(const BreakCondition& when) {
    const auto* word = std::get_if<WordBreak>(&when);
    if (word == nullptr) return not_on_a_stick("writes to its memories");
    if (word->when_done || word->tile)
        return fail(Cause::unsupported,
                    "a stick stops its scalar core before an instruction, not tiles or after it");
    if (breakpoint_)
        return fail(Cause::unsupported, "a stick has one breakpoint", {},
                    fmt::format("delete {} first", breakpoint_->number));
    REEF_CHECK(device_->write_register(*csr::scalar_core_break_point, word->at.word));
    breakpoint_ = Breakpoint{++last_number_, when, 0};
    return last_number_;
}

Status StickDebugger::delete_breakpoint(unsigned number) {
    if (!breakpoint_ || breakpoint_->number != number)
        return fail(Cause::not_found, fmt::format("no breakpoint {}", number), {},
                    "`breakpoints` lists them");
    REEF_CHECK(device_->write_register(*csr::scalar_core_break_point, 0));
    breakpoint_.reset();
    return {};
}

/// Of an executable with several streams, it is not known which one runs.
void StickDebugger::locate(std::size_t executable, CoreState& state) const {
    if (executables_[executable].bitstreams.size() != 1) return;
    const auto word = static_cast<std::size_t>(state.program_counter);
    InstructionCursor cursor(executables_[executable].bitstreams[0].instructions.view());
    while (const auto instruction = cursor.next()) {
        if (instruction->word != word) continue;
        state.at = ProgramWord{executable, 0, word};
        state.instruction = instruction->info->name;
    }
}

Result<CoreState> StickDebugger::core() {
    CoreState state;
    state.program_counter = REEF_TRY(device_->read_register(*csr::current_pc));
    if (const auto executable = executable_now()) locate(*executable, state);
    for (const auto* file : {csr::scalar_register_file, csr::predicate_register_file}) {
        const std::uint64_t held = file == csr::scalar_register_file ? 0xffffffffU : 1U;
        auto& values = state.registers.emplace_back();
        for (unsigned i = 0; i < file->count; ++i)
            values.push_back(REEF_TRY(device_->read_register(element_of(*file, i))) & held);
    }
    return state;
}

Result<std::vector<CounterState>> StickDebugger::counters() {
    std::vector<CounterState> states;
    for (const auto* counter : csr::core_counters)
        states.push_back({{},
                          counter->name.substr(counter_prefix.size()),
                          REEF_TRY(device_->read_register(*counter))});
    return states;
}

Result<Inference> inference_of(const Package& package, std::span<const Bytes> inputs) {
    Inference inference{.program = REEF_TRY(Program::prepare(package)),
                        .inputs = {},
                        .outputs = {},
                        .executables = run_order(package.executables)};
    for (const Bytes input : inputs) inference.inputs.emplace_back(input.begin(), input.end());
    for (const Layer& layer : inference.program->outputs())
        inference.outputs.emplace_back(REEF_TRY(tensor_bytes(layer)));
    return inference;
}

}  // namespace

Result<std::unique_ptr<Debugger>> stick_debugger(std::shared_ptr<Bus> bus,
                                                 const DeviceOptions& options,
                                                 const Package* package,
                                                 std::span<const Bytes> inputs) {
    std::optional<Inference> inference;
    if (package != nullptr && !inputs.empty()) inference = REEF_TRY(inference_of(*package, inputs));
    auto device = REEF_TRY(Device::open(bus, options));
    return std::make_unique<StickDebugger>(std::move(device), std::move(bus), package,
                                           std::move(inference));
}

}  // namespace reef::edgetpu::usb
