#include "reef/edgetpu/usb/simulator_core.h"

#include <fmt/format.h>

#include <deque>

#include "edgetpu/usb/stream_port.h"
#include "edgetpu/usb/stream_reader.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t most_streams = 256;

sim::MachineOptions machine_options(const SimulatorOptions& options) {
    sim::MachineOptions out{.engine = options.engine, .random_seed = options.random_seed};
    if (options.most_steps) out.most_steps = *options.most_steps;
    return out;
}

}  // namespace

struct SimulatorCore::Chip {
    explicit Chip(const SimulatorOptions& chosen) : options(machine_options(chosen)) {}

    [[nodiscard]] Status receive(Tag tag, Bytes bytes);
    [[nodiscard]] Status advance();
    Status stop_on_error(Status&& status) {
        if (!status) error = status.error();
        return std::move(status);
    }

    sim::MachineOptions options;
    std::optional<sim::Machine> machine;  ///< once something runs
    StreamReader reader;
    StreamPort port;
    std::deque<std::shared_ptr<const TranslatedStream>> streams;  ///< the first one runs
    bool running = false;
    std::optional<Error> error;  ///< why the chip takes nothing any more
};

SimulatorCore::SimulatorCore(const SimulatorOptions& options)
    : chip_(std::make_unique<Chip>(options)) {}
SimulatorCore::~SimulatorCore() = default;

void SimulatorCore::reset() {
    chip_->machine.reset();
    chip_->reader.clear();
    chip_->port.clear();
    chip_->streams.clear();
    chip_->running = false;
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
            if (!machine) machine.emplace(options);
            machine->begin(streams.front()->program, port);
            running = true;
        }
        const sim::Progress progress = REEF_TRY(machine->advance());
        if (progress.starved) return {};
        if (!progress.ended) continue;
        REEF_CHECK(port.end_program());
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

std::string SimulatorCore::standstill() const {
    if (chip_->error) return chip_->error->message();
    return chip_->running ? chip_->machine->deadlock().what : std::string();
}

std::uint64_t SimulatorCore::translations() const {
    return chip_->reader.translations();
}

}  // namespace reef::edgetpu::usb
