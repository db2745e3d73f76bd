// The asynchronous part of the driver: requests that wait for the chip's bytes, and one run.
#pragma once

#include <array>

#include "edgetpu/usb/protocol.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {

/// Keeps the in endpoints supplied with requests as long as the connection lives. Used by one
/// thread at a time.
class Runner {
  public:
    Runner(Bus& bus, Connection& connection, std::size_t request_bytes);
    ~Runner();

    /// One or two executables in a row; the first only loads parameters.
    [[nodiscard]] Status run(const Program& program, bool load_parameters,
                             std::span<const Bytes> inputs, std::span<const MutableBytes> outputs,
                             Milliseconds deadline);

    /// Cancels every request and waits until they are back.
    void cancel();

  private:
    struct Step {
        const Program::Part* part = nullptr;
        const Transfer* transfer = nullptr;
    };
    /// Where the next output bytes go.
    struct Target {
        MutableBytes room;
    };
    struct Request {
        std::uint32_t id = 0;
        bool waiting = false;
        MutableBytes room;
    };

    [[nodiscard]] Status prepare(const Program& program, bool load_parameters,
                                 std::span<const Bytes> inputs);
    [[nodiscard]] Status add_part(const Program::Part& part);
    [[nodiscard]] Status supply();
    [[nodiscard]] Status send(const Step& step);
    [[nodiscard]] Status submit(Bytes bytes);
    [[nodiscard]] Status drain();
    [[nodiscard]] Status next_completion();
    [[nodiscard]] Status take(const Completion& completion);
    [[nodiscard]] Status take_output(Bytes bytes);
    [[nodiscard]] Status take_event(Bytes bytes);
    [[nodiscard]] std::string waiting_for() const;
    [[nodiscard]] bool done() const;

    Bus& bus_;
    Connection& connection_;
    std::vector<std::byte> room_;  ///< of all requests
    std::vector<Request> output_requests_;
    Request event_request_, interrupt_request_;
    std::array<std::byte, event_bytes> event_room_{};
    std::array<std::byte, interrupt_bytes> interrupt_room_{};

    // Of the current run.
    TimePoint end_{};
    std::vector<Step> steps_;
    std::vector<std::array<std::byte, header_bytes>> headers_;
    std::size_t next_header_ = 0;
    std::vector<std::vector<std::byte>> packed_, layers_;
    std::vector<Target> targets_;
    std::size_t target_ = 0;       ///< that takes the next bytes
    std::size_t targets_due_ = 0;  ///< that the steps so far wait for
    std::array<int, 4> interrupts_due_{};
    std::size_t out_under_way_ = 0;  ///< transfers
    std::size_t out_bytes_under_way_ = 0;
    std::vector<std::pair<std::uint32_t, std::size_t>> out_sizes_;  ///< by id
};

}  // namespace reef::edgetpu::usb
