// Ring buses and mesh links: what carries data between the units.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "memory.h"

namespace reef::edgetpu::sim {

/// A wide row's valid bytes on their way.
struct Message {
    std::array<std::uint8_t, row_bytes> bytes;
    std::uint16_t size = 0;

    void assign(std::span<const std::uint8_t> data) {
        size = static_cast<std::uint16_t>(data.size());
        std::memcpy(bytes.data(), data.data(), data.size());
    }
};

/// Messages that reached a ring's receiver and wait there. A sender waits while any receiver is
/// full. The depth is an assumption; no known program depends on it.
class RingQueue {
  public:
    static constexpr unsigned depth = spec::ring_depth;

    [[nodiscard]] bool full() const { return count_ == depth; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] unsigned size() const { return count_; }
    [[nodiscard]] Message& push() { return messages_[(first_ + count_++) % depth]; }
    [[nodiscard]] const Message& front() const { return messages_[first_]; }
    void pop() {
        first_ = (first_ + 1) % depth;
        --count_;
    }

  private:
    std::array<Message, depth> messages_{};
    unsigned first_ = 0;
    unsigned count_ = 0;
};

/// Words from one neighbour that were sent and not yet taken. The depth is an assumption.
class MeshLink {
  public:
    static constexpr unsigned depth = spec::mesh_depth;

    [[nodiscard]] bool full() const { return count_ == depth; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] unsigned size() const { return count_; }
    [[nodiscard]] unsigned room() const { return depth - count_; }
    void push(std::uint32_t word) { words_[(first_ + count_++) % depth] = word; }
    std::uint32_t pop() {
        const auto word = words_[first_];
        first_ = (first_ + 1) % depth;
        --count_;
        return word;
    }

  private:
    std::array<std::uint32_t, depth> words_{};
    unsigned first_ = 0;
    unsigned count_ = 0;
};

}  // namespace reef::edgetpu::sim
