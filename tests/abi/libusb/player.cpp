// usb_player drive|simulate|pair|vendor SCENARIO, usb_player watch: a program that knows nothing of
// simulated sticks but the name libusb-1.0. With `drive` and `simulate` Reef's driver plays a
// scenario of the reference recordings over libusb; its outputs must be those that it gets from a
// simulated bus without libusb between, around a null core or around the simulated chip. `pair`
// does that on two sticks at once. With `vendor` the calls that the vendor's driver made are made
// again, one by one, from the recording; the device must answer as the recorded one did. `watch`
// sees a stick leave and come back, and prints what the bus was told.
#include <libusb-1.0/libusb.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/recording_items.h"
#include "edgetpu/usb/scenarios.h"
#include "reef/edgetpu/usb/simulator_core.h"

namespace reef::edgetpu::usb {
namespace {

int failed(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    return 1;
}

std::shared_ptr<Bus> simulated_stick(const test::Scenario& scenario) {
    auto bus = std::make_shared<SimulatedBus>();
    StickOptions options;
    options.speed = scenario.speed;
    options.has_firmware = !scenario.boots;
    bus->plug(options, std::make_unique<SimulatorCore>());
    return bus;
}

int drive(const test::Scenario& scenario, bool null) {
    const auto golden = test::golden(scenario);
    auto bus = libusb_bus();
    if (!bus) return failed(bus.error().message());
    const auto over_libusb = test::play(scenario, golden, *bus);
    if (!over_libusb) return failed(over_libusb.error().message());
    const auto direct = test::play(
        scenario, golden, null ? test::stick_for(scenario, golden) : simulated_stick(scenario));
    if (!direct) return failed(direct.error().message());
    return *over_libusb == *direct ? 0 : failed("the outputs differ");
}

/// Runs the scenario's first model on the stick at `port`; what went wrong, or empty.
std::string run_at(const std::string& port, const test::Scenario& scenario,
                   const test::Golden& golden, Bytes expected) {
    auto bus = libusb_bus();
    if (!bus) return bus.error().message();
    DeviceOptions options;
    options.port = port;
    options.run_deadline = test::no_deadline;
    auto device = Device::open(*bus, options);
    if (!device) return device.error().message();
    const auto program = Program::prepare(test::packages_for(scenario, golden).at(0));
    if (!program) return program.error().message();
    std::vector<std::byte> output(expected.size());
    const MutableBytes outputs[] = {output};
    const Bytes inputs[] = {golden.inputs.at(0)};
    for (int i = 0; i < 20; ++i) {
        if (auto ran = (*device)->run(*program, inputs, outputs); !ran) {
            return ran.error().message();
        }
        if (!std::ranges::equal(output, expected)) return port + ": the output differs";
    }
    return {};
}

/// Two sticks, used by two threads at once.
int drive_pair(const test::Scenario& scenario) {
    const auto golden = test::golden(scenario);
    const auto direct = test::play(scenario, golden, simulated_stick(scenario));
    if (!direct) return failed(direct.error().message());
    const Bytes expected = direct->at(0).at(0);
    std::string wrong[2];
    {
        const std::jthread first([&] { wrong[0] = run_at("2-1", scenario, golden, expected); });
        const std::jthread second([&] { wrong[1] = run_at("2-2", scenario, golden, expected); });
    }
    return wrong[0].empty() && wrong[1].empty() ? 0 : failed(wrong[0] + "\n" + wrong[1]);
}

/// Until as many sticks are there. False: they do not come.
bool await_sticks(Bus& bus, std::size_t count) {
    const TimePoint end = bus.now() + std::chrono::seconds(20);
    while (bus.now() < end) {
        const std::uint64_t seen = bus.changes();
        const auto sticks = bus.list();
        if (sticks && sticks->size() == count) return true;
        bus.wait_for_change(seen, Milliseconds(1000));
    }
    return false;
}

/// Where the bus tells, one wait sees the stick leave and another one sees it come back.
int watch() {
    const auto bus = libusb_bus();
    if (!bus) return failed(bus.error().message());
    const auto sticks = (*bus)->list();
    if (!sticks || sticks->size() != 1) return failed("not one stick");
    const auto connection = (*bus)->open(sticks->front());
    if (!connection) return failed(connection.error().what);
    std::byte bytes[4];
    const Setup read{.request_type = 0xc0, .request = 1, .value = 0, .index = 0, .length = 4};
    for (int i = 0; i < 10; ++i) {
        static_cast<void>((*connection)->control(read, bytes, Milliseconds(1000)));
    }
    if (!await_sticks(**bus, 0)) return failed("the stick does not leave");
    if (!await_sticks(**bus, 1)) return failed("the stick does not come back");
    // What was told of the last change may not be handled yet.
    (*bus)->wait_for_change(1, Milliseconds(1000));
    std::printf("%s, told of %d changes\n", is_boot_loader((*bus)->list()->at(0)) ? "boot" : "chip",
                static_cast<int>((*bus)->changes()));
    return 0;
}

class VendorPlayer {
  public:
    explicit VendorPlayer(const RecordedItems& items) : items_(items.items) {
        if (libusb_init(&context_) != 0) context_ = nullptr;
    }
    ~VendorPlayer() {
        if (handle_ != nullptr) libusb_close(handle_);
        for (auto& [id, flight] : flights_) libusb_free_transfer(flight.transfer);
        if (context_ != nullptr) libusb_exit(context_);
    }
    VendorPlayer(const VendorPlayer&) = delete;
    VendorPlayer& operator=(const VendorPlayer&) = delete;

    /// What went wrong; empty when nothing did.
    std::string play() {
        if (context_ == nullptr) return "libusb_init";
        for (at_ = 0; at_ < items_.size(); ++at_) {
            const RecordedItem& item = items_[at_];
            if (const std::string wrong = step(item); !wrong.empty()) {
                return "line " + std::to_string(item.line) + ": " + std::string(item.text) + ": " +
                       wrong;
            }
        }
        return {};
    }

  private:
    using Kind = RecordedItem::Kind;
    struct Flight {
        libusb_transfer* transfer = nullptr;
        std::vector<unsigned char> buffer;
        int done = 0;
        bool* refused = nullptr;
    };

    static std::string expect(int got, int wanted, const char* call) {
        if (got == wanted) return {};
        return std::string(call) + " gives " + libusb_error_name(got) + " (" + std::to_string(got) +
               "), not " + std::to_string(wanted);
    }

    std::string step(const RecordedItem& item) {
        switch (item.kind) {
            case Kind::open:
                return open(item);
            case Kind::close:
                libusb_close(handle_);
                handle_ = nullptr;
                return {};
            case Kind::reset:
                return expect(libusb_reset_device(handle_), reset_result(), "reset");
            case Kind::claim:
                return expect(libusb_claim_interface(handle_, static_cast<int>(item.interface)), 0,
                              "claim");
            case Kind::release:
                return expect(libusb_release_interface(handle_, static_cast<int>(item.interface)),
                              0, "release");
            case Kind::clear:
                return expect(libusb_clear_halt(handle_, item.endpoint), 0, "clear");
            case Kind::control:
                return control(item);
            case Kind::out:
            case Kind::in:
                return submit(item);
            case Kind::completed:
                return await(item, LIBUSB_TRANSFER_COMPLETED);
            case Kind::sent:
            case Kind::waited:
                return {};
            case Kind::failed:
                libusb_cancel_transfer(flights_[item.id].transfer);
                return await(item, LIBUSB_TRANSFER_CANCELLED);
        }
        return "an item of no kind";
    }

    /// A device that is opened as another one next came back as that.
    int reset_result() const {
        const auto next =
            std::find_if(items_.begin() + static_cast<std::ptrdiff_t>(at_), items_.end(),
                         [](const RecordedItem& item) { return item.kind == Kind::open; });
        const bool same = next == items_.end() || next->product == product_;
        return same ? LIBUSB_SUCCESS : LIBUSB_ERROR_NOT_FOUND;
    }

    std::string open(const RecordedItem& item) {
        product_ = item.product;
        handle_ = libusb_open_device_with_vid_pid(context_, item.vendor, item.product);
        return handle_ == nullptr ? "no such device" : "";
    }

    /// Where the reference's recorder, which made its answers up, differs from real sticks.
    static bool answers_as_a_stick(const Setup& setup, Bytes data) {
        struct Answer {
            std::uint8_t type;
            std::uint16_t value, index;
            const char* bytes;
        };
        static constexpr Answer answers[] = {
            {0xc0, 0xa30c, 1, "59000f00"},
            {0xc0, 0xa314, 1, "00001100"},
            {0xc0, 0xa000, 1, "9a081902"},
            {0xc0, 0xa318, 1, "04008500"},
            {0xc0, 0xa318, 1, "0c008500"},
            {0xc0, 0xa318, 1, "04008550"},
            {0xc0, 0xa318, 1, "0c008550"},
            {0xa1, 0, 0, "000100000500"},
            {0xa1, 0, 0, "000100000200"},
            {0x80, 0x0100, 0, "1201100200000040d1180293000100000001"},
        };
        return std::any_of(std::begin(answers), std::end(answers), [&](const Answer& answer) {
            return setup.request_type == answer.type && setup.value == answer.value &&
                   setup.index == answer.index && to_hex(data) == answer.bytes;
        });
    }

    std::string control(const RecordedItem& item) {
        std::vector<unsigned char> data(item.setup.length);
        const bool in = item.setup.to_host();
        if (!in && !data.empty()) std::memcpy(data.data(), item.data.data(), data.size());
        const int got = libusb_control_transfer(
            handle_, item.setup.request_type, item.setup.request, item.setup.value,
            item.setup.index, data.data(), item.setup.length, 6000);
        if (got != item.result) return expect(got, item.result, "control");
        const auto* recorded = reinterpret_cast<const unsigned char*>(item.data.data());
        if (in && !std::equal(recorded, recorded + item.data.size(), data.begin()) &&
            !answers_as_a_stick(item.setup, std::as_bytes(std::span(data)))) {
            return "answers " + to_hex(std::as_bytes(std::span(data)));
        }
        return {};
    }

    static void LIBUSB_CALL mark_done(libusb_transfer* transfer) {
        auto& flight = *static_cast<Flight*>(transfer->user_data);
        flight.done = 1;
        if (transfer->status == LIBUSB_TRANSFER_STALL) *flight.refused = true;
    }

    std::string submit(const RecordedItem& item) {
        Flight& flight = flights_[item.id];
        libusb_free_transfer(flight.transfer);
        const bool in = item.kind == Kind::in;
        flight.buffer.assign(in ? item.asked : item.data.size(), 0);
        if (!in) std::memcpy(flight.buffer.data(), item.data.data(), item.data.size());
        flight.done = 0;
        flight.refused = &refused_;
        flight.transfer = libusb_alloc_transfer(0);
        libusb_fill_bulk_transfer(flight.transfer, handle_, item.endpoint, flight.buffer.data(),
                                  static_cast<int>(flight.buffer.size()), mark_done, &flight, 6000);
        if (item.text.starts_with("INTR")) {
            flight.transfer->type = LIBUSB_TRANSFER_TYPE_INTERRUPT;
        }
        if (!in) flight.transfer->flags = LIBUSB_TRANSFER_SHORT_NOT_OK;
        return expect(libusb_submit_transfer(flight.transfer), 0, "submit");
    }

    std::string await(const RecordedItem& item, libusb_transfer_status status) {
        Flight& flight = flights_[item.id];
        while (flight.done == 0) {
            const int code = libusb_handle_events_completed(context_, &flight.done);
            if (code < 0) return expect(code, 0, "events");
            if (refused_) return "an endpoint stalls";
        }
        if (flight.transfer->status != status) {
            return "status " + std::to_string(flight.transfer->status);
        }
        if (item.kind != Kind::completed) return {};
        const auto got = std::as_bytes(std::span(flight.buffer))
                             .first(static_cast<std::size_t>(flight.transfer->actual_length));
        return std::ranges::equal(got, item.data) ? "" : "arrived: " + to_hex(got);
    }

    const std::vector<RecordedItem>& items_;
    std::size_t at_ = 0;
    libusb_context* context_ = nullptr;
    libusb_device_handle* handle_ = nullptr;
    std::uint16_t product_ = 0;
    bool refused_ = false;  ///< any transfer
    std::map<std::uint32_t, Flight> flights_;
};

int play_vendor(const test::Scenario& scenario) {
    const auto golden = test::golden(scenario);
    const auto items = parse_recording(golden.recording);
    if (!items) return failed(items.error().message());
    VendorPlayer player(*items);
    const std::string wrong = player.play();
    return wrong.empty() ? 0 : failed(wrong);
}

int run(const std::string& mode, const std::string& name) {
    for (const test::Scenario& scenario : test::scenarios()) {
        if (scenario.name != name) continue;
        if (mode == "drive") return drive(scenario, true);
        if (mode == "simulate") return drive(scenario, false);
        if (mode == "pair") return drive_pair(scenario);
        if (mode == "vendor") return play_vendor(scenario);
    }
    return failed("usage: usb_player drive|simulate|pair|vendor SCENARIO, usb_player watch");
}

}  // namespace
}  // namespace reef::edgetpu::usb

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "watch") return reef::edgetpu::usb::watch();
    if (argc != 3) return 2;
    return reef::edgetpu::usb::run(argv[1], argv[2]);
}
