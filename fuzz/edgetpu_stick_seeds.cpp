#include <cstring>

#include "edgetpu/sim/copy_program.h"
#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/recording_items.h"
#include "edgetpu/usb/register_map.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "seeds.h"
#include "stick_script.h"

namespace reef::fuzz {
namespace {

using namespace edgetpu;
using namespace edgetpu::usb;

class Script {
  public:
    explicit Script(std::uint8_t flags) { bytes_.push_back(std::byte{flags}); }
    template <typename... Numbers>
    Script& add(HostAction action, Numbers... numbers) {
        bytes_.push_back(static_cast<std::byte>(action));
        (append(std::as_bytes(std::span(&numbers, 1))), ...);
        return *this;
    }
    Script& out(Bytes bytes) {
        add(HostAction::bulk_out, static_cast<std::uint16_t>(bytes.size()));
        append(bytes);
        return *this;
    }
    Script& stream(Tag tag, Bytes bytes) {
        add(HostAction::stream_out, static_cast<std::uint8_t>(tag),
            static_cast<std::uint16_t>(bytes.size()));
        append(bytes);
        return *this;
    }
    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    void append(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    std::vector<std::byte> bytes_;
};

/// A program with its data, and requests for all that comes back.
Script& run(Script& script, const std::string& text) {
    const Package package = sim::copy_package(text);
    const Executable& executable = package.executables[0];
    const std::vector<std::byte> input(sim::copied_bytes, std::byte{7});
    for (std::uint8_t endpoint = 0; endpoint < 2; ++endpoint)
        script.add(HostAction::bulk_in, endpoint, std::uint16_t{1024});
    script.stream(Tag::instructions, executable.bitstreams[0].instructions.view());
    script.stream(Tag::parameters, executable.parameters.view());
    script.stream(Tag::input_activations, input);
    for (int i = 0; i < 4; ++i) script.add(HostAction::bulk_in, std::uint8_t{1}, std::uint16_t{16});
    return script;
}

/// What the driver does, from before it opens the stick until it has closed it.
Result<Script> session(Speed speed) {
    const auto stick = std::make_shared<SimulatedBus>();
    stick->plug({.speed = speed, .has_firmware = true, .faults = {}},
                std::make_unique<SimulatorCore>());
    const auto bus = std::make_shared<RecordingBus>(stick);
    {
        const auto program =
            REEF_TRY(Program::prepare(sim::hinted_copy_package(sim::interrupting_copy_program())));
        const auto device = REEF_TRY(Device::open(bus, {}));
        const std::vector<std::byte> input(sim::copied_bytes, std::byte{9});
        std::vector<std::byte> output(sim::copied_bytes);
        const Bytes inputs[] = {input};
        const MutableBytes outputs[] = {output};
        for (int i = 0; i < 2; ++i) REEF_CHECK(device->run(program, inputs, outputs));
    }
    const Recording recording = bus->recording();
    const RecordedItems items = REEF_TRY(parse_recording(recording));
    Script script(speed == Speed::super ? not_started : not_started | slow_bus);
    for (const RecordedItem& item : items.items) {
        using Kind = RecordedItem::Kind;
        const auto offset = std::uint32_t{item.setup.index} << 16 | item.setup.value;
        std::uint64_t value = 0;
        if (item.kind == Kind::control && item.setup.request_type == register_write) {
            std::memcpy(&value, item.data.data(), item.data.size());
            script.add(HostAction::write_register, offset, value);
        }
        if (item.kind == Kind::control && item.setup.request_type == register_read)
            script.add(HostAction::read_register, offset);
        if (item.kind == Kind::out) script.out(item.data);
        if (item.kind == Kind::in)
            script.add(HostAction::bulk_in,
                       static_cast<std::uint8_t>(item.endpoint - output_endpoint),
                       static_cast<std::uint16_t>(item.asked));
        if (item.kind == Kind::reset) script.add(HostAction::bus_reset);
    }
    return script;
}

}  // namespace

Result<Seeds> edgetpu_stick_seeds() {
    Seeds seeds;
    seeds.emplace_back("driver", REEF_TRY(session(Speed::super)).bytes());
    seeds.emplace_back("driver-usb2", REEF_TRY(session(Speed::high)).bytes());
    const std::string text = sim::interrupting_copy_program();
    for (std::uint8_t flags = 0; flags < 4; ++flags) {
        Script script(flags);
        seeds.emplace_back("copy" + std::to_string(flags), run(run(script, text), text).bytes());
    }
    // A program that hangs, and the ways out.
    const std::string hung = sim::with(text, "message=63 to_host=1", "message=63");
    Script slept(0), reset(fast_engines);
    run(slept, hung);
    for (const std::uint64_t force : {csr::sleep, csr::wake})
        slept.add(HostAction::write_register, csr::scu_ctrl_3->offset,
                  csr::force_sleep.set(0, force));
    for (const auto* control : csr::core_run_controls)
        slept.add(HostAction::write_register, control->offset, csr::run);
    seeds.emplace_back("sleep", run(slept, text).bytes());
    run(reset, hung).add(HostAction::cancel_all).add(HostAction::clear_halt, std::uint8_t{0});
    seeds.emplace_back("reset", run(reset.add(HostAction::bus_reset), text).bytes());
    // The debugger's registers while a program runs.
    Script debugged(0);
    debugged.add(HostAction::write_register, csr::scalar_core_break_point->offset,
                 std::uint64_t{8});
    run(debugged, text);
    for (const std::uint64_t command : {csr::single_step, csr::halt, csr::run}) {
        for (const auto* info :
             {csr::current_pc, csr::scalar_register_file, csr::predicate_register_file})
            debugged.add(HostAction::read_register, info->offset);
        debugged.add(HostAction::write_register, csr::scalar_core_run_control->offset, command);
    }
    seeds.emplace_back("debugged", debugged.bytes());
    return seeds;
}

}  // namespace reef::fuzz
