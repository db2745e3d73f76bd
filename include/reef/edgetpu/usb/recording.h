// Recordings of USB traffic: made around any bus, replayed as one, compared.
//
// A recording is two files: NAME, lines of text, and NAME.bin with the payloads that the lines
// point to. A line is a number of six digits and one of
//     # TEXT                                                      a remark
//     OPEN vvvv:pppp | CLOSE | RESET | CLAIM n | RELEASE n        n decimal, v and p hexadecimal
//     CLEAR ee                                                    clear halt of endpoint ee
//     CTRL IN|OUT  bmRequestType= bRequest= wValue= wIndex= wLength= timeout= ret= len= off= data=
//     BULK OUT ep= async id= timeout= len= off= data=             submitted; it ends with
//     BULK OUT ep= async id= complete
//     BULK|INTR IN  ep= async id= submit len= timeout=            submitted; it ends with
//     BULK|INTR IN  ep= async id= complete len= off= data=
//     BULK|INTR [OUT|IN ] ep= async id= failed FAULT              how either may end, too, or
//     BULK|INTR     ep= id= cancelled
//     WAIT ms=                                                    for an end that did not come
// where data= shows at most the first 32 bytes. held= behind len= says that only so many of the
// bytes were recorded, the first ones. What fails at once has fault=FAULT: a line of those without
// id, a control transfer (its ret= is then negative), a wait, and a transfer that is refused
// (BULK|INTR OUT|IN  ep= async submit fault= len=, without an id). FAULT is stall, time-out,
// overflow, disconnected, denied, busy or failed. Remarks of the form
//     #   chunk N size=BYTES patches(bit:desc:pos) BIT:D:P ...
// tell which 32-bit fields of instruction transfers of that size hold addresses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reef/edgetpu/usb/transport.h"

namespace reef::edgetpu::usb {

struct Recording {
    std::string text;
    std::vector<std::byte> data;
};

/// Reads PATH and PATH.bin, either of them gzip-compressed under the name with .gz; or a capture of
/// usbmon as text, which is one file.
[[nodiscard]] Result<Recording> read_recording(const std::string& path);
/// Text of usbmon (/sys/kernel/debug/usb/usbmon/Nu), or a packet analyser's export of its captures.
[[nodiscard]] bool is_usbmon(std::string_view text);
/// What a driver did with the Edge TPU in a capture. The text cuts payloads: held= says where.
/// Errors: bad_input with the line, and without an Edge TPU's transfers; unsupported for captures
/// of a firmware download.
[[nodiscard]] Result<Recording> recording_of_usbmon(std::string_view text);

/// Both files or neither, as far as the system allows.
[[nodiscard]] Status write_recording(const std::string& path, const Recording& recording);

/// More than a device that was opened and closed. Errors: bad_input with the line.
[[nodiscard]] Result<bool> holds_transfers(const Recording& recording);

/// The traffic without its timing, one item a line: control transfers and opening in order, the out
/// stream cut by its headers with addresses zeroed (by SHA-256), the input of each endpoint,
/// events. Errors: bad_input with the line.
[[nodiscard]] Result<std::vector<std::string>> wire_view(const Recording& recording);

/// One register transfer: a vendor request.
struct RegisterTransfer {
    std::size_t line = 0;  ///< of the recording, from 1
    bool to_host = false;
    std::uint32_t offset = 0;
    unsigned bits = 0;
    std::uint64_t value = 0;  ///< read or written
    friend bool operator==(const RegisterTransfer&, const RegisterTransfer&) = default;
};
/// In order. Errors: bad_input with the line.
[[nodiscard]] Result<std::vector<RegisterTransfer>> register_transfers(const Recording& recording);
/// The recording without its bulk and interrupt transfers: what opening and closing a stick leaves.
[[nodiscard]] Recording without_data_transfers(const Recording& recording);

/// Passes everything on and writes it down.
class RecordingBus final : public Bus {
  public:
    explicit RecordingBus(std::shared_ptr<Bus> bus);
    ~RecordingBus() override;

    /// What was recorded so far.
    [[nodiscard]] Recording recording() const;

    [[nodiscard]] Io<std::vector<DeviceInfo>> list() override;
    [[nodiscard]] Io<std::unique_ptr<Connection>> open(const DeviceInfo& device) override;
    [[nodiscard]] std::uint64_t changes() const override;
    void wait_for_change(std::uint64_t seen, Milliseconds most) override;
    [[nodiscard]] TimePoint now() override;
    void sleep(Milliseconds time) override;

  private:
    std::shared_ptr<Bus> bus_;
    std::shared_ptr<class RecordingSink> sink_;
};

/// A device that answers as the recorded one did, faults and time-outs included. The host must do
/// what it did in the recording, in the same order; input arrives when everything the host had done
/// before it is done. Bytes of addresses in instructions may differ. The first transaction that
/// differs fails and names both; everything after it fails too. Time is made up.
[[nodiscard]] Result<std::shared_ptr<Bus>> replay_bus(Recording recording);

}  // namespace reef::edgetpu::usb
