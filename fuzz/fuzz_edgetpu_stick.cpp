// A hostile host on a simulated stick with the simulated chip in it: registers, transfers and
// instruction streams of any kind. The stick answers all of them, and the same twice.
#include <algorithm>
#include <cstring>
#include <deque>

#include "check.h"
#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/register_map.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "stick_script.h"

namespace reef::fuzz {
namespace {

using namespace edgetpu;
using namespace edgetpu::usb;

constexpr std::size_t most_bytes = 1 << 14;
constexpr unsigned most_actions = 400;
constexpr const char* port = "1-1";

/// Reads the script; zeros behind its end.
class Script {
  public:
    explicit Script(Bytes bytes) : bytes_(bytes) {}
    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    template <typename Number>
    Number number() {
        Number value = 0;
        const Bytes part = take(sizeof value);
        if (!part.empty()) std::memcpy(&value, part.data(), part.size());
        return value;
    }
    Bytes take(std::size_t size) {
        const Bytes part = bytes_.first(std::min(size, bytes_.size()));
        bytes_ = bytes_.subspan(part.size());
        return part;
    }

  private:
    Bytes bytes_;
};

class Host {
  public:
    explicit Host(std::uint8_t flags) {
        SimulatorOptions chip{.most_steps = 5'000};
        chip.engine = (flags & fast_engines) != 0 ? EngineKind::fast : EngineKind::plain;
        if ((flags & random_order) != 0) chip.random_seed = flags;
        StickOptions stick{.port = port, .has_firmware = true, .faults = {}};
        if ((flags & slow_bus) != 0) stick.speed = Speed::high;
        bus_.plug(stick, std::make_unique<SimulatorCore>(chip));
        open();
        if ((flags & not_started) == 0) start();
    }

    void act(Script& script) {
        switch (static_cast<HostAction>(script.number<std::uint8_t>() % host_actions)) {
            case HostAction::write_register: {
                const auto offset = script.number<std::uint32_t>();
                return write(offset, script.number<std::uint64_t>());
            }
            case HostAction::read_register:
                return read(script.number<std::uint32_t>());
            case HostAction::bulk_out:
                return send(script.take(script.number<std::uint16_t>()));
            case HostAction::stream_out: {
                const auto tag = script.number<std::uint8_t>();
                const Bytes bytes = script.take(script.number<std::uint16_t>());
                return stream(tag, bytes);
            }
            case HostAction::bulk_in: {
                constexpr std::uint8_t endpoints[] = {output_endpoint, event_endpoint,
                                                      interrupt_endpoint};
                const auto endpoint = endpoints[script.number<std::uint8_t>() % 3];
                return receive(endpoint, script.number<std::uint16_t>());
            }
            case HostAction::clear_halt: {
                constexpr std::uint8_t endpoints[] = {out_endpoint, output_endpoint,
                                                      event_endpoint};
                return note(connection_->clear_halt(endpoints[script.number<std::uint8_t>() % 3]));
            }
            case HostAction::bus_reset:
                note(connection_->reset());
                return open();
            case HostAction::cancel_all:
                return connection_->cancel_all();
        }
    }

    /// Takes what has completed.
    void collect() {
        while (true) {
            const auto completion = connection_->wait(Milliseconds(0));
            if (!completion) return note(Io<void>(std::unexpected(completion.error())));
            if (!*completion) return;
            add((*completion)->id, (*completion)->endpoint, (*completion)->size,
                (*completion)->fault.has_value());
            const auto room = std::ranges::find(rooms_, (*completion)->id, &Room::id);
            if (room == rooms_.end()) continue;
            check((*completion)->size <= room->bytes.size(), "no more bytes than room");
            if (!(*completion)->fault) add_bytes(Bytes(room->bytes).first((*completion)->size));
            rooms_.erase(room);
        }
    }

    void look_at_standstill() {
        const std::string why = bus_.standstill(port);
        add_bytes(as_bytes(why));
    }
    std::vector<std::byte> answers() && { return std::move(answers_); }

  private:
    struct Room {
        std::uint32_t id = 0;
        std::vector<std::byte> bytes;
    };

    void open() {
        const auto sticks = bus_.list();
        check(sticks && sticks->size() == 1, "a stick stays plugged in");
        auto connection = bus_.open(sticks->front());
        check(connection.has_value(), "a stick can be opened");
        connection_ = std::move(*connection);
        rooms_.clear();
    }
    void start() {
        for (const auto* control : csr::core_run_controls) write(control->offset, csr::run);
        for (const auto* control : csr::tile_run_controls) write(control->offset, csr::run);
        write(csr::descr_ep->offset, 0xff);
        write(csr::outfeed_chunk_length->offset, 0x20);
    }
    [[nodiscard]] static Setup setup_of(std::uint32_t offset, std::uint8_t type) {
        const RegisterInfo* info = find_register(offset);
        const std::uint16_t bytes = info == nullptr || info->bits == 32 ? 4 : 8;
        return {.request_type = type,
                .request = bytes == 4 ? register_32_bits : register_64_bits,
                .value = static_cast<std::uint16_t>(offset & 0xffff),
                .index = static_cast<std::uint16_t>(offset >> 16),
                .length = bytes};
    }
    void write(std::uint32_t offset, std::uint64_t value) {
        const Setup setup = setup_of(offset, register_write);
        note(connection_->control(setup,
                                  std::as_writable_bytes(std::span(&value, 1)).first(setup.length),
                                  Milliseconds(100)));
    }
    void read(std::uint32_t offset) {
        std::uint64_t value = 0;
        const Setup setup = setup_of(offset, register_read);
        note(connection_->control(setup,
                                  std::as_writable_bytes(std::span(&value, 1)).first(setup.length),
                                  Milliseconds(100)));
        add(value);
    }
    void send(Bytes bytes) { note(connection_->submit_out(out_endpoint, bytes)); }
    void stream(std::uint8_t tag, Bytes bytes) {
        const std::uint32_t header[2] = {static_cast<std::uint32_t>(bytes.size()), tag};
        headers_.push_back({});
        std::memcpy(headers_.back().data(), header, sizeof header);
        send(headers_.back());
        send(bytes);
    }
    void receive(std::uint8_t endpoint, std::size_t room) {
        rooms_.push_back({.id = 0, .bytes = std::vector<std::byte>(room)});
        const auto type =
            endpoint == interrupt_endpoint ? EndpointType::interrupt : EndpointType::bulk;
        const auto id = connection_->submit_in(endpoint, type, rooms_.back().bytes);
        note(id);
        if (id)
            rooms_.back().id = *id;
        else
            rooms_.pop_back();
    }

    template <typename T>
    void note(const Io<T>& result) {
        add(result.has_value());
        if (!result) check(!result.error().what.empty(), "a failure says what failed");
    }
    void add_bytes(Bytes bytes) { answers_.insert(answers_.end(), bytes.begin(), bytes.end()); }
    template <typename... Numbers>
    void add(Numbers... numbers) {
        const std::uint64_t all[] = {static_cast<std::uint64_t>(numbers)...};
        add_bytes(std::as_bytes(std::span(all)));
    }

    SimulatedBus bus_;
    std::unique_ptr<Connection> connection_;
    std::deque<Room> rooms_;
    std::deque<std::array<std::byte, header_bytes>> headers_;
    std::vector<std::byte> answers_;  ///< of everything that was asked
};

std::vector<std::byte> play(Bytes bytes) {
    Script script(bytes);
    Host host(script.number<std::uint8_t>());
    for (unsigned actions = 0; !script.empty() && actions < most_actions; ++actions) {
        host.act(script);
        host.collect();
    }
    host.look_at_standstill();
    return std::move(host).answers();
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    if (size == 0 || size > fuzz::most_bytes) return 0;
    const Bytes bytes = std::as_bytes(std::span(data, size));
    fuzz::check(fuzz::play(bytes) == fuzz::play(bytes), "the same twice gives the same answers");
    return 0;
}
