#include "reef/edgetpu/usb/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>

#include "edgetpu/package/resident_parameters.h"
#include "edgetpu/usb/link.h"
#include "edgetpu/usb/opening.h"
#include "edgetpu/usb/runner.h"
#include "reef/base/log.h"

namespace reef::edgetpu::usb {
namespace {

/// An error as part of another.
std::string brief(const Error& error) {
    return error.place.empty() ? error.what : fmt::format("{}: {}", error.place, error.what);
}

/// The remarks that tell a recording what a program sends.
void describe(Connection& connection, const Executable& executable, std::size_t number) {
    connection.note(fmt::format(
        "executable {} type={} (0 standalone,1 parameter-caching,2 execution-only) token={:016x} "
        "chip={} instr_chunks={} params={}",
        number, static_cast<int>(executable.type), executable.parameter_caching_token,
        executable.chip, executable.bitstreams.size(), executable.parameters.size()));
    for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
        const auto& bitstream = executable.bitstreams[i];
        std::string text = fmt::format("  chunk {} size={} patches(bit:desc:pos)", i,
                                       bitstream.instructions.size());
        for (const FieldOffset& field : bitstream.field_offsets) {
            text += fmt::format(" {}:{}:{}", field.offset_bit, static_cast<int>(field.meta.base),
                                static_cast<int>(field.meta.half));
        }
        connection.note(text);
    }
}

}  // namespace

/// Callers take turns. Who watches his run does not wait for another's for longer than he likes.
class Device::Turns {
  public:
    Status take(const RunWatch* watch) {
        constexpr Milliseconds look(20);
        std::unique_lock lock(mutex_);
        while (taken_) {
            if (watch == nullptr) {
                given_.wait(lock);
                continue;
            }
            REEF_CHECK(watch->may_go_on());
            given_.wait_for(lock, look);
        }
        taken_ = true;
        return {};
    }
    void give() {
        {
            const std::lock_guard lock(mutex_);
            taken_ = false;
        }
        given_.notify_one();
    }

  private:
    std::mutex mutex_;
    std::condition_variable given_;
    bool taken_ = false;
};

/// A turn that was taken, or is waited for as long as it takes.
class Device::Turn {
  public:
    enum class Taken : std::uint8_t { already };
    explicit Turn(Turns& turns) : turns_(turns) {
        // Without a watch nothing ends the wait.
        static_cast<void>(turns_.take(nullptr));
    }
    Turn(Turns& turns, Taken) : turns_(turns) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { turns_.give(); }

  private:
    Turns& turns_;
};

namespace {

/// Written by who has the turn, read by everybody.
struct AtomicCounters {
    std::atomic<std::uint64_t> runs = 0, parameter_loads = 0, evictions = 0, recoveries = 0;
};

}  // namespace

struct Device::State {
    /// Of `connection` as a pointer, for who interrupts it without a turn.
    std::mutex connection_mutex;
    std::unique_ptr<Connection> connection;
    std::unique_ptr<Runner> runner;
    bool seen = false;     ///< the stick was on the bus when it was looked for last
    bool claimed = false;  ///< of the chip, which then takes registers
    bool started = false;
    bool reports_descriptors = false;  ///< the chip does, for a program that asks
    std::optional<Error> broken;       ///< why the next run restarts
    std::size_t lost = 0;              ///< inferences that were under way when it broke
    ResidentParameters<std::shared_ptr<const Program>> parameters;
    std::vector<std::weak_ptr<const Program>> described;
    std::size_t executables_described = 0;
    AtomicCounters counters;

    void connect(std::unique_ptr<Connection> to) {
        const std::lock_guard lock(connection_mutex);
        connection = std::move(to);
    }
};

Device::Device(std::shared_ptr<Bus> bus, const DeviceOptions& options)
    : bus_(std::move(bus)),
      options_(options),
      port_(options.port),
      turns_(std::make_unique<Turns>()),
      state_(std::make_unique<State>()) {}

std::string Device::place() const {
    if (!options_.place.empty()) return options_.place;
    return port_.empty() ? "edgetpu:usb" : fmt::format("edgetpu:usb:{}", port_);
}

Device::~Device() {
    stop();
}

Result<std::unique_ptr<Device>> Device::open(std::shared_ptr<Bus> bus,
                                             const DeviceOptions& options) {
    std::unique_ptr<Device> device(new Device(std::move(bus), options));
    auto started = device->bring_up(Milliseconds(0));
    if (!started && device->may_recover(started.error())) {
        const Error first = std::move(started.error());
        started = device->climb(first, "the first start failed with", options.start_deadline);
    }
    if (started) return device;
    device->state_->started = false;
    return std::unexpected(std::move(started.error()).in(device->place()));
}

/// Not what a stick that is not there, rights or a missing firmware explain.
bool Device::may_recover(const Error& error) const {
    return error.cause == Cause::device_failed ||
           (error.cause == Cause::device_missing && state_->seen);
}

Status Device::bring_up(Milliseconds patience) {
    State& state = *state_;
    state.runner.reset();
    state.connect(nullptr);
    state.claimed = false;
    state.started = false;
    state.parameters.forget();
    state.reports_descriptors = false;
    state.described.clear();
    Opening opening(*bus_, options_, port_);
    auto connection = opening.run(patience);
    state.seen = opening.seen();
    state.connect(REEF_TRY(std::move(connection)));
    state.claimed = true;
    REEF_CHECK(start_engines());
    return {};
}

Status Device::start_engines() {
    State& state = *state_;
    const Speed speed = state.connection->speed();
    Link link(*bus_, *state.connection, options_.start_deadline);
    REEF_CHECK(start_chip(link, speed, options_.performance, options_.endpoints));
    state.runner = std::make_unique<Runner>(*bus_, *state.connection, output_request_bytes(speed),
                                            options_.endpoints);
    state.started = true;
    state.broken.reset();
    return {};
}

/// The chip's registers over the open connection.
Status Device::restart_chip() {
    State& state = *state_;
    state.runner.reset();
    for (const std::uint8_t endpoint : {out_endpoint, output_endpoint, event_endpoint}) {
        REEF_CHECK(checked(state.connection->clear_halt(endpoint), "clear halt"));
    }
    // A start begins with a chip reset; only what ran has something to stop before.
    if (state.started) {
        Link link(*bus_, *state.connection, options_.start_deadline);
        REEF_CHECK(stop_chip(link));
        state.started = false;
    }
    return start_engines();
}

/// Two rungs: the chip's registers, then everything from the bus reset on.
Status Device::climb(const Error& reason, std::string_view before, Milliseconds patience) {
    State& state = *state_;
    ++state.counters.recoveries;
    state.parameters.forget();
    state.reports_descriptors = false;
    std::string tried;
    if (state.connection && state.claimed && reason.cause != Cause::device_missing) {
        const Status done = restart_chip();
        if (done) return {};
        tried = fmt::format("clear halt and chip reset ({}), ", brief(done.error()));
    }
    auto started = bring_up(patience);
    if (started) return {};
    Error error = std::move(started.error());
    error.what +=
        fmt::format("; tried: {}bus reset and start; {}: {}", tried, before, brief(reason));
    if (error.hint.empty()) error.hint = replug_hint;
    return std::unexpected(std::move(error));
}

Status Device::ready() {
    if (!state_->broken) return {};
    const Error reason = *state_->broken;
    return climb(reason, "the run before failed with", Milliseconds(0));
}

void Device::stop() {
    const Turn turn(*turns_);
    State& state = *state_;
    if (!state.connection) return;
    state.runner.reset();
    // A device that does not answer is left alone: nobody waits for its destructor's errors.
    if (state.started && !state.broken) {
        Link link(*bus_, *state.connection, options_.start_deadline);
        if (stop_chip(link)) static_cast<void>(state.connection->release(0));
    }
    state.connect(nullptr);
}

namespace {

/// Each tensor has the bytes that the program says.
template <class Span, class Expected>
Status check_sizes(std::string_view kind, Span tensors, std::size_t count, Expected&& expected) {
    if (tensors.size() != count) {
        return fail(Cause::bad_argument,
                    fmt::format("{} {}s given, the program has {}", tensors.size(), kind, count));
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (tensors[i].size() == expected(i)) continue;
        return fail(Cause::bad_argument, fmt::format("{} {}: {} bytes given, the tensor has {}",
                                                     kind, i, tensors[i].size(), expected(i)));
    }
    return {};
}

}  // namespace

Status Device::run(const std::shared_ptr<const Program>& program, std::span<const Bytes> inputs,
                   std::span<const MutableBytes> outputs, const RunLimits& limits) {
    REEF_CHECK(check_sizes("output", outputs, program->unpackers_.size(),
                           [&](std::size_t i) { return program->unpackers_[i].tensor_bytes(); }));
    if (auto taken = turns_->take(limits.watch); !taken) return in_place(std::move(taken), "run");
    const Turn turn(*turns_, Turn::Taken::already);
    if (state_->runner && state_->runner->under_way() != 0) {
        return fail(Cause::bad_argument, "an inference that was started is not finished");
    }
    state_->lost = 0;
    auto done = start_locked(program, inputs, limits);
    if (done) done = finish_locked(outputs);
    if (state_->runner) state_->runner->watch(nullptr);
    return done;
}

void Device::interrupt() {
    const std::lock_guard lock(state_->connection_mutex);
    if (state_->connection != nullptr) state_->connection->interrupt();
}

Status Device::start(const std::shared_ptr<const Program>& program, std::span<const Bytes> inputs) {
    const Turn turn(*turns_);
    return start_locked(program, inputs, {});
}

Status Device::finish(std::span<const MutableBytes> outputs) {
    const Turn turn(*turns_);
    State& state = *state_;
    if (state.lost != 0) {
        --state.lost;
        return std::unexpected(Error(*state.broken).in("lost with another inference"));
    }
    if (!state.runner || state.runner->under_way() == 0) {
        return fail(Cause::bad_argument, "no inference is under way");
    }
    const Program& program = state.runner->oldest();
    REEF_CHECK(check_sizes("output", outputs, program.unpackers_.size(),
                           [&](std::size_t i) { return program.unpackers_[i].tensor_bytes(); }));
    return finish_locked(outputs);
}

Result<Device::Progress> Device::advance(Milliseconds most) {
    const Turn turn(*turns_);
    State& state = *state_;
    if (!state.runner || state.runner->under_way() == 0) {
        return fail(Cause::bad_argument, "no inference is under way");
    }
    auto moved = state.runner->advance(most);
    if (!moved) return std::unexpected(lost(std::unexpected(moved.error())).error());
    return Progress{.moved = *moved,
                    .complete = state.runner->complete(),
                    .interrupts = state.runner->interrupts()};
}

/// The device stops with what is under way; the next run recovers it.
Status Device::lost(Status&& failed) {
    State& state = *state_;
    state.parameters.forget();
    Error error = std::move(failed.error()).in("run");
    state.broken = error;
    // The failing call reports one of them.
    state.lost = state.runner->under_way() == 0 ? 0 : state.runner->under_way() - 1;
    state.runner->cancel();
    const bool ended = state.runner->was_stopped();
    if (!ended) error.what += "; no recovery was tried yet";
    if (error.cause == Cause::device_failed) {
        error.hint = fmt::format(
            "the next run restarts the device: clear halt, chip reset, bus reset{}",
            options_.place.empty() ? fmt::format("; if it fails, too, {}", replug_hint) : "");
    }
    return std::unexpected(std::move(error).in(place()));
}

Status Device::start_locked(const std::shared_ptr<const Program>& program,
                            std::span<const Bytes> inputs, const RunLimits& limits) {
    REEF_CHECK(check_sizes("input", inputs, program->tensor_bytes_.size(),
                           [&](std::size_t i) { return program->tensor_bytes_[i]; }));
    State& state = *state_;
    if (state.lost != 0) {
        return fail(Cause::bad_argument, "inferences that a fault lost are not finished");
    }
    if (auto usable = ready(); !usable) {
        return in_place(std::move(usable), place());
    }
    if (state.runner->under_way() == Runner::most_under_way) {
        return fail(Cause::bad_argument,
                    fmt::format("{} inferences are under way", Runner::most_under_way), {},
                    "finish one first");
    }
    describe_once(program);
    state.runner->watch(limits.watch);

    const auto need = state.parameters.make_room(
        program->token_, program->caching_.has_value(), program->cached_rows_,
        [&](const auto& each) { return program->caches_as(*each); });
    if (need.evicted) {
        ++state.counters.evictions;
        state.connection->note(fmt::format("parameters of token {:016x} evicted by {:016x}",
                                           *need.evicted, program->token_));
    }
    auto sent = report_descriptors_for(*program);
    if (sent)
        sent = state.runner->start(program, need.load, inputs,
                                   limits.deadline.value_or(options_.run_deadline));
    if (!sent) return lost(std::move(sent));
    if (need.load) {
        ++state.counters.parameter_loads;
        state.parameters.add(program, program->cached_rows_);
    }
    return {};
}

/// A program whose chip asks for transfers has the chip alone until it is complete.
Status Device::report_descriptors_for(const Program& program) {
    State& state = *state_;
    if (!program.asks() && !state.reports_descriptors) return {};
    REEF_CHECK(state.runner->settle());
    if (program.asks() == state.reports_descriptors) return {};
    Link link(*bus_, *state.connection, options_.start_deadline);
    link.phase("events");
    REEF_CHECK(report_descriptors(link, program.asks()));
    state.reports_descriptors = program.asks();
    return {};
}

Status Device::finish_locked(std::span<const MutableBytes> outputs) {
    State& state = *state_;
    if (auto done = state.runner->finish(outputs); !done) return lost(std::move(done));
    ++state.counters.runs;
    return {};
}

/// For recordings: what the program sends.
void Device::describe_once(const std::shared_ptr<const Program>& program) {
    State& state = *state_;
    const bool known = std::ranges::any_of(state.described, [&](const auto& each) {
        return !each.owner_before(program) && !program.owner_before(each);
    });
    if (known) return;
    std::erase_if(state.described, [](const auto& each) { return each.expired(); });
    state.described.push_back(program);
    describe(*state.connection, program->main_.executable, state.executables_described++);
    if (program->caching_) {
        describe(*state.connection, program->caching_->executable, state.executables_described++);
    }
}

Result<std::uint64_t> Device::read_register(const RegisterInfo& info) {
    const Turn turn(*turns_);
    REEF_CHECK(ready());
    Link link(*bus_, *state_->connection, options_.start_deadline);
    link.phase("register");
    return link.read(&info);
}

Status Device::write_register(const RegisterInfo& info, std::uint64_t value) {
    const Turn turn(*turns_);
    REEF_CHECK(ready());
    Link link(*bus_, *state_->connection, options_.start_deadline);
    link.phase("register");
    return link.write(&info, value);
}

DeviceCounters Device::counters() const {
    const AtomicCounters& now = state_->counters;
    return {.runs = now.runs,
            .parameter_loads = now.parameter_loads,
            .evictions = now.evictions,
            .recoveries = now.recoveries};
}

}  // namespace reef::edgetpu::usb
