#include "reef/edgetpu/usb/stick_debugger.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>

#include "edgetpu/usb/register_map.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::usb {
namespace {

/// As scalar_counter of the instruction set.
constexpr const RegisterInfo* core_counters[] = {
    register_named("AvdataPopSyncFlag", "SyncCounter_AVDATA_POP"),
    register_named("ParameterPopSyncFlag", "SyncCounter_PARAMETER_POP"),
    register_named("AvdataInfeedSyncFlag", "SyncCounter_AVDATA_INFEED"),
    register_named("ParameterInfeedSyncFlag", "SyncCounter_PARAMETER_INFEED"),
    register_named("ScalarInfeedSyncFlag", "SyncCounter_SCALAR_INFEED"),
    register_named("ProducerASyncFlag", "SyncCounter_PRODUCER_A"),
    register_named("ProducerBSyncFlag", "SyncCounter_PRODUCER_B"),
    register_named("RingOutfeedSyncFlag", "SyncCounter_RING_OUTFEED"),
    register_named("ScalarPipelineSyncFlag", "SyncCounter_SCALAR_PIPELINE")};
constexpr std::string_view counter_prefix = "SyncCounter_";

std::unexpected<Error> not_on_a_stick(std::string_view what) {
    return fail(Cause::unsupported, fmt::format("a stick's registers do not show {}", what), {},
                "reef debug FILE --device edgetpu:sim does");
}

/// A register by its name, with the element of a register file behind it.
struct Named {
    const RegisterInfo* info = nullptr;
    unsigned element = 0;
};

std::optional<unsigned> whole_number(std::string_view text) {
    unsigned value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end) return std::nullopt;
    return value;
}

/// "s4" and "p1" are elements of the scalar core's files.
Result<Named> register_of(std::string_view name) {
    Named out;
    std::string_view base = name;
    std::optional<unsigned> element;
    if (name.size() > 1 && (name[0] == 's' || name[0] == 'p'))
        element = whole_number(name.substr(1));
    if (element) {
        out.info = name[0] == 's' ? csr::scalar_register_file : csr::predicate_register_file;
    } else {
        if (const auto open = name.find('[');
            open != std::string_view::npos && name.ends_with(']')) {
            element = whole_number(name.substr(open + 1, name.size() - open - 2));
            base = element ? name.substr(0, open) : name;
        }
        out.info = find_register(base);
    }
    if (out.info == nullptr)
        return fail(Cause::not_found, fmt::format("no register '{}'", name), {},
                    "docs/edgetpu-registers.md lists them; s0 to s31, p0 to p7");
    if (element.value_or(0) >= out.info->count)
        return fail(Cause::not_found,
                    fmt::format("{} has {} elements", out.info->name, out.info->count));
    if (!element && out.info->count > 1)
        return fail(Cause::not_found,
                    fmt::format("{} is a file of {} registers", name, out.info->count), {},
                    fmt::format("{}[0] is its first", name));
    out.element = element.value_or(0);
    return out;
}

class StickDebugger final : public Debugger {
  public:
    StickDebugger(std::unique_ptr<Device> device, std::shared_ptr<Bus> bus, const Package* package)
        : device_(std::move(device)), bus_(std::move(bus)) {
        if (package != nullptr) executables_ = package->executables;
    }

    [[nodiscard]] std::vector<StreamView> streams() const override {
        std::vector<StreamView> views;
        for (std::size_t e = 0; e < executables_.size(); ++e)
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
    [[nodiscard]] Status restart() override {
        return fail(Cause::unsupported, "a stick does not go back to before a program", {},
                    "reef run starts a program on it");
    }
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
        const Named named = REEF_TRY(register_of(name));
        return device_->read_register(element_of(*named.info, named.element));
    }
    [[nodiscard]] Status write_register(std::string_view name, std::uint64_t value) override {
        const Named named = REEF_TRY(register_of(name));
        if (named.info->bits == 32 && value > 0xffffffffU)
            return fail(Cause::bad_argument,
                        fmt::format("{} cannot hold {:#x}: it has 32 bits", name, value));
        return device_->write_register(element_of(*named.info, named.element), value);
    }
    [[nodiscard]] Result<std::vector<std::vector<std::byte>>> outputs() override {
        return not_on_a_stick("a program's outputs");
    }

  private:
    [[nodiscard]] Status command(std::uint64_t value) {
        return device_->write_register(*csr::scalar_core_run_control, value);
    }
    [[nodiscard]] Result<RunStop> wait_for_breakpoint();

    std::unique_ptr<Device> device_;
    std::shared_ptr<Bus> bus_;
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
    if (until == RunUntil::breakpoint) {
        REEF_CHECK(command(csr::run));
        return wait_for_breakpoint();
    }
    for (std::uint64_t i = 0; i < count && !interrupted_; ++i, ++steps_)
        REEF_CHECK(command(csr::single_step));
    return RunStop{RunStop::Reason::stepped, {}, steps_};
}

// What tells that a breakpoint holds the core is not known: the program counter that stands there.
Result<RunStop> StickDebugger::wait_for_breakpoint() {
    constexpr Milliseconds patience{1000};
    const TimePoint end = bus_->now() + patience;
    while (breakpoint_ && !interrupted_ && bus_->now() < end) {
        const std::uint64_t at = REEF_TRY(device_->read_register(*csr::current_pc));
        const ProgramWord& word = std::get<WordBreak>(breakpoint_->when).at;
        if (at == word.word) {
            ++breakpoint_->hits;
            return RunStop{
                RunStop::Reason::breakpoint,
                {{DebugEvent::Kind::comes_to, {{}, "core"}, word, {}, {}, breakpoint_->number}},
                steps_};
        }
        bus_->sleep(Milliseconds(1));
    }
    return RunStop{RunStop::Reason::running, {}, steps_};
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

Result<CoreState> StickDebugger::core() {
    CoreState state;
    state.program_counter = REEF_TRY(device_->read_register(*csr::current_pc));
    for (unsigned i = 0; i < state.registers.size(); ++i)
        state.registers[i] = static_cast<std::uint32_t>(
            REEF_TRY(device_->read_register(element_of(*csr::scalar_register_file, i))));
    for (unsigned i = 0; i < state.predicates.size(); ++i)
        state.predicates[i] =
            (REEF_TRY(device_->read_register(element_of(*csr::predicate_register_file, i))) & 1U) !=
            0;
    return state;
}

Result<std::vector<CounterState>> StickDebugger::counters() {
    std::vector<CounterState> states;
    for (const auto* counter : core_counters)
        states.push_back({{},
                          counter->name.substr(counter_prefix.size()),
                          REEF_TRY(device_->read_register(*counter))});
    return states;
}

}  // namespace

Result<std::unique_ptr<Debugger>> stick_debugger(std::shared_ptr<Bus> bus,
                                                 const DeviceOptions& options,
                                                 const Package* package) {
    auto device = REEF_TRY(Device::open(bus, options));
    return std::make_unique<StickDebugger>(std::move(device), std::move(bus), package);
}

}  // namespace reef::edgetpu::usb
