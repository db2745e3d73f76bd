// The asynchronous part of the driver: requests that wait for the chip's bytes, and inferences
// under way.
#pragma once

#include <array>
#include <deque>

#include "edgetpu/usb/protocol.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {

/// Keeps the in endpoints supplied with requests as long as the connection lives. Used by one
/// thread at a time.
class Runner {
  public:
    Runner(Bus& bus, Connection& connection, std::size_t request_bytes, Endpoints endpoints);
    ~Runner();

    /// Sends an inference: one or two executables in a row, the first only loads parameters.
    /// Precondition: under_way() < most_under_way.
    [[nodiscard]] Status start(const std::shared_ptr<const Program>& program, bool load_parameters,
                               std::span<const Bytes> inputs, Milliseconds deadline);
    /// Waits until every inference under way is complete; they are still to be finished.
    [[nodiscard]] Status settle();
    /// Waits for the oldest inference. Precondition: under_way() > 0.
    [[nodiscard]] Status finish(std::span<const MutableBytes> outputs);
    /// The oldest inference's. Precondition: under_way() > 0.
    [[nodiscard]] const Program& oldest() const { return *flights_[oldest_].program; }
    [[nodiscard]] std::size_t under_way() const { return count_; }

    /// Takes the next completion, whatever the deadline. False: there is none within that time.
    [[nodiscard]] Result<bool> advance(Milliseconds most);
    // Of the oldest inference. Precondition: under_way() > 0.
    [[nodiscard]] bool complete() const { return flight(0).done(); }
    [[nodiscard]] int interrupts() const;
    /// Who may end what is under way from now on; null: nobody.
    void watch(const RunWatch* watch) {
        watch_ = watch;
        connection_.watch(watch);
        stopped_ = false;
    }
    /// The watch has ended what was under way.
    [[nodiscard]] bool was_stopped() const { return stopped_; }
    /// Cancels every request, waits until they are back and forgets the inferences.
    void cancel();

    static constexpr std::size_t most_under_way = 2;

  private:
    struct Step {
        const Program::Part* part = nullptr;
        const Transfer* transfer = nullptr;
    };
    /// Where the next output bytes go.
    struct Target {
        MutableBytes room;
    };
    /// A transfer that the chip asked for, of bytes that earlier output may still change.
    struct Asked {
        Tag tag{};
        Bytes bytes;
        std::size_t behind = 0;  ///< targets that must be filled before
    };
    /// One inference, from its first transfer to its last output byte.
    struct Flight {
        std::shared_ptr<const Program> program;
        std::vector<Step> steps;
        std::deque<std::array<std::byte, header_bytes>> headers;
        std::size_t next_header = 0;
        std::vector<std::vector<std::byte>> packed, layers;
        std::vector<Target> targets;
        std::size_t target = 0;                ///< that takes the next bytes
        std::size_t targets_due = 0;           ///< that the steps so far wait for
        std::array<int, 4> interrupts{};       ///< of all steps
        std::array<int, 4> interrupts_left{};  ///< of them
        std::array<int, 4> interrupts_due{};   ///< of the steps so far
        std::size_t out_under_way = 0;         ///< transfers

        // Of a program whose chip asks for what the hints leave out.
        std::array<std::size_t, 4> next_hint{};  ///< by tag: the step that its next event may be
        std::deque<Asked> asked;
        std::vector<std::byte> scratch;
        std::vector<std::byte> early;  ///< output bytes that came before their event
        [[nodiscard]] bool done() const;
    };
    struct Sent {
        std::uint32_t id = 0;
        std::size_t size = 0;
        Flight* flight = nullptr;
    };
    struct Request {
        std::uint32_t id = 0;
        bool waiting = false;
        MutableBytes room;
    };

    [[nodiscard]] static Status prepare(Flight& flight, bool load_parameters,
                                        std::span<const Bytes> inputs);
    static void add_part(Flight& flight, const Program::Part& part);
    [[nodiscard]] Status supply();
    [[nodiscard]] Status send(Flight& flight, const Step& step);
    [[nodiscard]] Status send(Flight& flight, Tag tag, Bytes bytes);
    [[nodiscard]] Status send_header(Flight& flight, Tag tag, std::size_t size);
    [[nodiscard]] Status await(Flight& flight);
    [[nodiscard]] Result<bool> send_asked(Flight& flight);
    [[nodiscard]] Status take_descriptor(Tag tag, std::uint64_t address, std::uint32_t size);
    [[nodiscard]] static bool is_hinted(Flight& flight, Tag tag, const AddressPlace& place,
                                        std::size_t size);
    static void fill_targets(Flight& flight, Bytes& bytes);
    [[nodiscard]] Status submit(Flight& flight, std::uint8_t endpoint, Bytes bytes);
    [[nodiscard]] Status may_go_on();
    [[nodiscard]] Status next_completion();
    [[nodiscard]] Status take(const Completion& completion);
    /// The transfer has ended, whatever came of it: cancel() does not wait for it.
    void forget(const Completion& completion);
    [[nodiscard]] Status take_output(Bytes bytes);
    [[nodiscard]] Status take_event(Bytes bytes);
    [[nodiscard]] std::string waiting_for() const;
    /// With what was still awaited.
    [[nodiscard]] Error lost_transfer(const Failure& failure, std::string_view place) const;
    /// The inferences under way, oldest first.
    [[nodiscard]] Flight& flight(std::size_t position) {
        return flights_[(oldest_ + position) % most_under_way];
    }
    [[nodiscard]] const Flight& flight(std::size_t position) const {
        return flights_[(oldest_ + position) % most_under_way];
    }

    Bus& bus_;
    Connection& connection_;
    Endpoints endpoints_;
    std::vector<std::byte> room_;  ///< of all requests
    std::vector<Request> output_requests_;
    Request event_request_, interrupt_request_;
    std::array<std::byte, event_bytes> event_room_{};
    std::array<std::byte, interrupt_bytes> interrupt_room_{};

    const RunWatch* watch_ = nullptr;
    bool stopped_ = false;
    TimePoint end_{};  ///< the deadline of what is under way
    std::array<Flight, most_under_way> flights_;
    std::size_t oldest_ = 0, count_ = 0;
    std::vector<Sent> sent_;  ///< out transfers under way
    std::size_t out_bytes_under_way_ = 0;
};

}  // namespace reef::edgetpu::usb
