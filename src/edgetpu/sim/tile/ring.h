// Ring buses and mesh links: what carries data between the units.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "edgetpu/sim/program/memory.h"

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

    [[nodiscard]] bool full() const { return size() == depth; }
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] unsigned size() const { return pushed_ - popped_; }
    void push(const Message& message) { messages_[pushed_++ % depth] = &message; }
    [[nodiscard]] const Message& front() const { return *messages_[popped_ % depth]; }
    void pop() { ++popped_; }
    void each(auto&& tell) const {
        for (unsigned at = popped_; at != pushed_; ++at) tell(*messages_[at % depth]);
    }

  private:
    static_assert(std::has_single_bit(depth));  // numbers of messages wrap around
    // Written by senders, and by the receiver, which may be another core.
    alignas(64) std::array<const Message*, depth> messages_{};  ///< in a MessageStore
    unsigned pushed_ = 0;
    alignas(64) unsigned popped_ = 0;
};

/// The messages on both rings. A message to many receivers is kept once: each receiver copies it
/// straight to its row, and cores that share the tiles' work fetch it once.
class MessageStore {
  public:
    /// For so many queues.
    explicit MessageStore(unsigned queues)
        : messages_(RingQueue::depth * queues + 1), used_(messages_.size()) {
        free_.reserve(messages_.size());
    }
    /// A message that no queue holds. `each_queue` calls what it is given with every queue.
    [[nodiscard]] Message& take(auto&& each_queue) {
        if (free_.empty()) collect(each_queue);
        Message& message = messages_[free_.back()];
        free_.pop_back();
        return message;
    }

  private:
    /// How many are collected at most: few, so that they stay in the caches.
    static constexpr std::size_t most_collected = 64;

    void collect(auto&& each_queue) {
        std::ranges::fill(used_, std::uint8_t{0});
        each_queue([&](const RingQueue& queue) {
            queue.each([&](const Message& message) {
                used_[static_cast<std::size_t>(&message - messages_.data())] = 1;
            });
        });
        for (std::size_t i = 0; i < used_.size() && free_.size() < most_collected; ++i)
            if (used_[i] == 0) free_.push_back(static_cast<std::uint16_t>(i));
    }

    std::vector<Message> messages_;
    std::vector<std::uint8_t> used_;
    std::vector<std::uint16_t> free_;
};

/// Words from one neighbour that were sent and not yet taken. The depth is an assumption.
///
/// Sender and receiver may work side by side: neither sees what the other does before settle().
class MeshLink {
  public:
    static constexpr unsigned depth = spec::mesh_depth;

    // The sender's side.
    [[nodiscard]] unsigned room() const { return depth - count_ - pushed_; }
    [[nodiscard]] bool full() const { return room() == 0; }
    /// Words that are `step` bytes apart in memory. At most room().
    void push(const std::uint8_t* from, std::ptrdiff_t step, unsigned words) {
        unsigned at = (first_ + count_ + pushed_) % depth;
        pushed_ += words;
        for (; words > 0; --words, from += step, at = (at + 1) % depth)
            std::memcpy(&words_[at], from, sizeof words_[at]);
    }

    // The receiver's side.
    [[nodiscard]] unsigned size() const { return count_ - popped_; }
    [[nodiscard]] bool empty() const { return size() == 0; }
    /// At most size().
    void pop(std::uint8_t* to, std::ptrdiff_t step, unsigned words) {
        unsigned at = (first_ + popped_) % depth;
        popped_ += words;
        for (; words > 0; --words, to += step, at = (at + 1) % depth)
            std::memcpy(to, &words_[at], sizeof words_[at]);
    }

    // Neither side is at work.
    [[nodiscard]] bool any_pushed() const { return pushed_ != 0; }
    [[nodiscard]] bool any_popped() const { return popped_ != 0; }
    void settle() {
        first_ = (first_ + popped_) % depth;
        count_ += pushed_ - popped_;
        pushed_ = popped_ = 0;
    }

  private:
    std::array<std::uint32_t, depth> words_{};
    unsigned first_ = 0;
    unsigned count_ = 0;  ///< that both sides know of
    alignas(64) unsigned pushed_ = 0;
    alignas(64) unsigned popped_ = 0;
};

}  // namespace reef::edgetpu::sim
