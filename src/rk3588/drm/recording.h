// What this process and a kernel's driver say to each other: written down, and done again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rk3588/drm/port.h"

namespace reef::rk3588::drm {

/// A call, with all bytes that it carries. Addresses and times of this process are 0 in them.
struct RecordedCall {
    std::uint32_t request = 0;  ///< of an ioctl, or one of `pseudo`
    std::int32_t result = 0;
    std::vector<std::byte> given;     ///< the struct, and what it points to
    std::vector<std::byte> got;       ///< the struct behind the call, or what it pointed to
    std::vector<std::byte> sent;      ///< bytes of buffers that become the NPU's
    std::vector<std::byte> received;  ///< those that become this process's
    [[nodiscard]] std::size_t bytes() const {
        return given.size() + got.size() + sent.size() + received.size();
    }
};

/// Calls that are no ioctls.
namespace pseudo {
inline constexpr std::uint32_t nodes = 1, open = 2, lock = 3;
}  // namespace pseudo

struct Recording {
    std::string device;  ///< URI
    std::vector<RecordedCall> calls;
};

/// "SUBMIT: 104 bytes given, ...": a line that is the same for the same call.
[[nodiscard]] std::string text_of(const RecordedCall& call);
/// Buffers, submissions or their waiting: more than opening and closing.
[[nodiscard]] bool is_work(const RecordedCall& call);

/// PATH with a line for each call and PATH.bin with their bytes.
[[nodiscard]] Status write_recording(const std::string& path, const Recording& recording);
/// Errors: not_found; bad_input for what is no such recording, by line.
[[nodiscard]] Result<Recording> read_recording(const std::string& path);
/// The same from both files' contents.
[[nodiscard]] Result<Recording> parse_recording(Bytes text, Bytes data);

/// Passes everything on and writes it to `recording`, which outlives it.
[[nodiscard]] std::shared_ptr<Kernel> recording_kernel(std::shared_ptr<Kernel> kernel,
                                                       Recording& recording);

/// Answers as the recorded one did, as long as it is asked what the recorded one was. Then every
/// call fails.
class ReplayingKernel : public Kernel {
  public:
    /// The first call that was another one, with both; empty: none so far.
    [[nodiscard]] virtual const std::string& difference() const = 0;
    /// Calls that were answered.
    [[nodiscard]] virtual std::size_t answered() const = 0;
};
/// `recording` outlives it.
[[nodiscard]] std::shared_ptr<ReplayingKernel> replaying_kernel(const Recording& recording);

}  // namespace reef::rk3588::drm
