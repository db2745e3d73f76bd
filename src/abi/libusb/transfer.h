// A transfer: libusb's public struct with what the library knows of it in front.
#pragma once

#include <libusb-1.0/libusb.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace reef::abi::libusb {

using Clock = std::chrono::steady_clock;

struct Transfer;

/// An open device, as what its transfers go through.
class TransferMover {
  public:
    TransferMover() = default;
    TransferMover(const TransferMover&) = delete;
    TransferMover& operator=(const TransferMover&) = delete;
    virtual ~TransferMover() = default;
    /// The device has left the bus, or is another one now.
    [[nodiscard]] virtual bool is_gone() const = 0;
    // Queued; with the context's lock held.
    virtual void start(Transfer& transfer) = 0;
    virtual void stop(Transfer& transfer) = 0;
};

/// In memory right before its libusb_transfer. The context's lock guards what changes while the
/// transfer is under way.
struct alignas(std::max_align_t) Transfer {
    libusb_context* context = nullptr;  ///< of the device it was submitted to
    TransferMover* mover = nullptr;     ///< the open device; null after that was closed
    bool under_way = false;             ///< until right before its callback
    bool cancelling = false;
    bool timed_out = false;
    std::optional<Clock::time_point> deadline;
    libusb_transfer_status status = LIBUSB_TRANSFER_COMPLETED;  ///< once the device is done
    int moved = 0;                                              ///< bytes

    [[nodiscard]] libusb_transfer& open() {
        return *reinterpret_cast<libusb_transfer*>(reinterpret_cast<std::byte*>(this) +
                                                   sizeof(Transfer));
    }
    [[nodiscard]] static Transfer& of(libusb_transfer* transfer) {
        return *reinterpret_cast<Transfer*>(reinterpret_cast<std::byte*>(transfer) -
                                            sizeof(Transfer));
    }
};

/// Bytes that the transfer is to move.
[[nodiscard]] inline int payload_bytes(const libusb_transfer& transfer) {
    const bool control = transfer.type == LIBUSB_TRANSFER_TYPE_CONTROL;
    return transfer.length - (control ? static_cast<int>(LIBUSB_CONTROL_SETUP_SIZE) : 0);
}

}  // namespace reef::abi::libusb
