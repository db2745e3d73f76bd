// Bytes that wait, first in, first out.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "reef/base/bytes.h"

namespace reef::edgetpu::usb {

/// Allocates nothing once it has held as much as it will.
class ByteQueue {
  public:
    [[nodiscard]] std::size_t size() const { return bytes_.size() - at_; }
    [[nodiscard]] Bytes view() const { return Bytes(bytes_).subspan(at_); }

    void push(Bytes bytes) {
        // Behind what was taken long ago, the rest moves to the front.
        if (at_ > bytes_.size() / 2) {
            bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
            at_ = 0;
        }
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    /// Precondition: room.size() <= size().
    void take(MutableBytes room) {
        if (!room.empty()) std::memcpy(room.data(), bytes_.data() + at_, room.size());
        drop(room.size());
    }
    /// Precondition: count <= size().
    void drop(std::size_t count) {
        at_ += count;
        if (at_ == bytes_.size()) clear();
    }
    void clear() {
        bytes_.clear();
        at_ = 0;
    }

  private:
    std::vector<std::byte> bytes_;
    std::size_t at_ = 0;
};

}  // namespace reef::edgetpu::usb
