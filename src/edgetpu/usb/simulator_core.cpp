#include "reef/edgetpu/usb/simulator_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "edgetpu/usb/register_map.h"
#include "edgetpu/usb/stream_port.h"
#include "edgetpu/usb/stream_reader.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t most_streams = 256;

sim::MachineOptions machine_options(const SimulatorOptions& options) {
    return {.engine = options.engine,
            .random_seed = options.random_seed,
            .most_steps = options.most_steps,
            .most_scalar_instructions = options.most_scalar_instructions,
            .threads = options.threads};
}

}  // namespace

struct SimulatorCore::Chip {
    explicit Chip(const SimulatorOptions& chosen) : options(machine_options(chosen)) {
        options.hold = &hold;
    }
    Chip(const Chip&) = delete;
    Chip& operator=(const Chip&) = delete;

    /// Its memories take a while to make: once something needs them.
    [[nodiscard]] sim::Machine& the_machine() {
        if (!machine) machine.emplace(options).watch(run_watch);
        return *machine;
    }
    [[nodiscard]] Status receive(Tag tag, Bytes bytes);
    [[nodiscard]] Status advance();
    [[nodiscard]] std::uint64_t run_status() const;
    Status stop_on_error(Status&& status) {
        if (!status) error = status.error();
        return std::move(status);
    }

    sim::MachineOptions options;
    std::optional<sim::Machine> machine;  ///< once something needs it
    sim::CoreHold hold;
    bool commanded = false;  ///< the scalar core's run control was written
    StreamReader reader;
    StreamPort port;
    std::deque<std::shared_ptr<const TranslatedStream>> streams;  ///< the first one runs
    bool running = false;
    std::optional<Error> error;  ///< why the chip takes nothing any more
    const RunWatch* run_watch = nullptr;
};

SimulatorCore::SimulatorCore(const SimulatorOptions& options)
    : chip_(std::make_unique<Chip>(options)) {}
SimulatorCore::~SimulatorCore() = default;

void SimulatorCore::reset() {
    chip_->machine.reset();
    chip_->reader.clear();
    chip_->port.clear();
    chip_->streams.clear();
    chip_->hold = {};
    chip_->running = chip_->commanded = false;
    chip_->error.reset();
}

Status SimulatorCore::Chip::receive(Tag tag, Bytes bytes) {
    if (tag > Tag::parameters)
        return fail(Cause::bad_input, fmt::format("{} bytes of {}", bytes.size(), to_string(tag)));
    if (tag != Tag::instructions) return port.receive(tag, bytes);
    while (!bytes.empty()) {
        if (auto stream = REEF_TRY(reader.take(bytes))) streams.push_back(std::move(stream));
        if (streams.size() > most_streams)
            return fail(Cause::bad_input,
                        fmt::format("more than {} programs wait for their data", most_streams));
    }
    return {};
}

// As far as the bytes that are there reach.
Status SimulatorCore::Chip::advance() {
    while (!streams.empty()) {
        if (!running) {
            the_machine().begin(streams.front()->program, port);
            running = true;
        }
        const sim::Progress progress = REEF_TRY(machine->advance());
        if (progress.starved || progress.held) return {};
        if (!progress.ended) continue;
        running = false;
        streams.pop_front();
    }
    return {};
}

Status SimulatorCore::receive(Tag tag, Bytes bytes) {
    if (chip_->error) return std::unexpected(*chip_->error);
    REEF_CHECK(chip_->stop_on_error(chip_->receive(tag, bytes)));
    return chip_->stop_on_error(chip_->advance());
}

std::size_t SimulatorCore::take_output(MutableBytes room) {
    if (chip_->error) return 0;
    const std::size_t taken = chip_->port.take_output(room);
    // There is room again. What goes wrong is told by standstill().
    if (taken != 0 && chip_->running) static_cast<void>(chip_->stop_on_error(chip_->advance()));
    return taken;
}

std::optional<ChipEvent> SimulatorCore::take_event() {
    if (chip_->error) return std::nullopt;
    return chip_->port.take_event();
}

namespace {

/// The element of a register file at that offset.
std::optional<std::size_t> element_at(const RegisterInfo* file, std::uint32_t offset) {
    const std::uint32_t apart = element_of(*file, 1).offset - file->offset;
    if (offset < file->offset || (offset - file->offset) % apart != 0) return std::nullopt;
    const std::size_t element = (offset - file->offset) / apart;
    return element < file->count ? std::optional(element) : std::nullopt;
}

}  // namespace

std::uint64_t SimulatorCore::Chip::run_status() const {
    if (hold.held()) return csr::is_halted;
    if (hold.steps()) return csr::is_stepping;
    return commanded ? csr::is_running : csr::is_idle;
}

std::optional<std::uint64_t> SimulatorCore::read_register(std::uint32_t offset) const {
    if (offset == csr::scalar_core_run_status->offset) return chip_->run_status();
    const auto counter = std::ranges::find(csr::core_counters, offset, &RegisterInfo::offset);
    const auto scalar = element_at(csr::scalar_register_file, offset);
    const auto predicate = element_at(csr::predicate_register_file, offset);
    const bool counts = counter != std::end(csr::core_counters);
    if (!counts && !scalar && !predicate && offset != csr::current_pc->offset) return std::nullopt;
    if (!chip_->machine) return 0;
    sim::Machine& machine = *chip_->machine;
    if (counts)
        return machine.scalar().counters[static_cast<unsigned>(counter - csr::core_counters)];
    if (scalar) return machine.core().registers()[*scalar];
    if (predicate) return machine.core().predicates()[*predicate] ? 1 : 0;
    return machine.core().program_counter();
}

void SimulatorCore::write_register(std::uint32_t offset, std::uint64_t value) {
    if (offset == csr::scalar_core_run_control->offset) {
        if (value == csr::run) chip_->hold.run();
        if (value == csr::halt) chip_->hold.halt();
        if (value == csr::single_step) chip_->hold.step();
        chip_->commanded = value != 0;
    } else if (offset == csr::scalar_core_break_point->offset) {
        chip_->hold.break_at(value == 0 ? std::nullopt : std::optional<std::size_t>(value));
    } else if (const auto scalar = element_at(csr::scalar_register_file, offset)) {
        chip_->the_machine().core().set_register(*scalar, static_cast<std::uint32_t>(value));
    } else if (const auto predicate = element_at(csr::predicate_register_file, offset)) {
        chip_->the_machine().core().set_predicate(*predicate, (value & 1U) != 0);
    } else {
        return;
    }
    // What goes wrong is told by standstill().
    if (!chip_->error) static_cast<void>(chip_->stop_on_error(chip_->advance()));
}

void SimulatorCore::watch(const RunWatch* watch) {
    chip_->run_watch = watch;
    if (chip_->machine) chip_->machine->watch(watch);
}

bool SimulatorCore::idle() const {
    return chip_->streams.empty();
}

std::string SimulatorCore::standstill() const {
    if (chip_->error) return chip_->error->message();
    if (chip_->running && chip_->hold.held())
        return fmt::format("the scalar core is held at word {:#06x}",
                           chip_->machine->core().program_counter());
    if (chip_->running) return chip_->machine->deadlock().message();
    const std::uint64_t output = chip_->port.output_before_event();
    if (output == 0) return {};
    return fmt::format("{} output bytes wait for the host; the event comes when {} are left",
                       output, spec::usb_output_ahead_bytes);
}

std::uint64_t SimulatorCore::translations() const {
    return chip_->reader.translations();
}

}  // namespace reef::edgetpu::usb
