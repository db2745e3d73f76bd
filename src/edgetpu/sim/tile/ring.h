// Ring buses and mesh links: what carries data between the units.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "edgetpu/sim/program/memory.h"

namespace reef::edgetpu::sim {

/// Valid bytes of wide rows on their way, by number. Short ones lie densely, and so do the sizes:
/// cores that share the tiles' work fetch few lines.
class Messages {
  public:
    /// An image comes in messages of 16 bytes.
    static constexpr std::size_t short_bytes = 16;

    /// So many numbers of each kind, those of rows first.
    explicit Messages(std::size_t of_each)
        : rows_(of_each), row_bytes_(of_each), shorts_(of_each), sizes_(2 * of_each) {
        for (std::size_t number = 0; number < of_each; ++number)
            row_bytes_[number] = rows_[number].bytes.data();
    }
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;
    [[nodiscard]] std::size_t of_each() const { return rows_.size(); }
    [[nodiscard]] std::span<const std::uint8_t> operator[](std::uint16_t number) const {
        const std::uint8_t* bytes = number < rows_.size()
                                        ? row_bytes_[number]
                                        : shorts_[number - rows_.size()].bytes.data();
        return {bytes, sizes_[number]};
    }
    /// Precondition: no more bytes than the number's kind has.
    void assign(std::uint16_t number, std::span<const std::uint8_t> data) {
        sizes_[number] = static_cast<std::uint16_t>(data.size());
        std::uint8_t* bytes = bytes_of(number);
        // A size that is known makes no call.
        if (data.size() == short_bytes)
            std::memcpy(bytes, data.data(), short_bytes);
        else
            std::memcpy(bytes, data.data(), data.size());
    }
    /// Bytes that stay where they are until everybody has read the message, whose number is one of
    /// those of rows.
    void refer(std::uint16_t number, std::span<const std::uint8_t> data) {
        sizes_[number] = static_cast<std::uint16_t>(data.size());
        row_bytes_[number] = data.data();
    }
    /// So many messages of `size` bytes each, in numbers that follow each other.
    void assign_each(std::uint16_t first, std::uint32_t messages, std::size_t size,
                     const std::uint8_t* data) {
        if (size == short_bytes) {
            std::fill_n(&sizes_[first], messages, std::uint16_t{short_bytes});
            std::memcpy(bytes_of(first), data, messages * size);
            return;
        }
        for (; messages > 0; --messages, data += size) assign(first++, {data, size});
    }

  private:
    [[nodiscard]] std::uint8_t* bytes_of(std::uint16_t number) {
        if (number >= rows_.size()) return shorts_[number - rows_.size()].bytes.data();
        row_bytes_[number] = rows_[number].bytes.data();
        return rows_[number].bytes.data();
    }
    template <std::size_t size, std::size_t alignment>
    struct alignas(alignment) Slot {
        std::array<std::uint8_t, size> bytes;
    };
    std::vector<Slot<row_bytes, 64>> rows_;
    std::vector<const std::uint8_t*> row_bytes_;  ///< in rows_, or where they stay
    std::vector<Slot<short_bytes, short_bytes>> shorts_;
    std::vector<std::uint16_t> sizes_;
};

/// Which messages wait at the receivers of a ring. One to all tiles is written once for them.
class RingPlaces {
  public:
    /// For so many messages at a receiver.
    static constexpr unsigned capacity = 16 * spec::ring_depth;

    /// Whether these are all receivers, which have got equally many.
    [[nodiscard]] bool are_level(std::uint32_t receivers) const {
        std::uint32_t apart = receivers ^ ((1U << tile_count) - 1);
        for (const std::uint32_t pushed : pushed_) apart |= pushed ^ pushed_[0];
        return apart == 0;
    }
    /// Of each receiver, where all are level.
    [[nodiscard]] std::uint32_t pushed() const { return pushed_[0]; }
    /// So many messages to all receivers. Their numbers in the MessageStore are `numbers` and the
    /// place. Precondition: they are level.
    void push_to_all(std::uint32_t messages, std::uint16_t numbers) {
        const std::uint32_t at = pushed();
        for (std::uint32_t to = at; to != at + messages; ++to)
            to_all_[to % capacity] = {to + 1, static_cast<std::uint16_t>(numbers + to % capacity)};
        for (std::uint32_t& pushed : pushed_) pushed += messages;
    }
    /// `message` is its number in the MessageStore, `receivers` are bits.
    void push(std::uint32_t receivers, std::uint16_t message) {
        for (std::uint32_t left = receivers; left != 0; left &= left - 1)
            push_to_one(static_cast<unsigned>(std::countr_zero(left)), message);
    }
    /// Nobody waits for earlier ones any more: all receivers have got equally many.
    void level() { pushed_.fill(std::ranges::max(pushed_)); }

  private:
    friend class RingQueue;
    /// To all receivers, which were level.
    struct ToAll {
        std::uint32_t pushed = 0;  ///< to each, with it
        std::uint16_t message = 0;
    };
    void push_to_one(unsigned receiver, std::uint16_t message) {
        const std::uint32_t at = pushed_[receiver]++;
        // One that all have got, so many messages ago that their number is the same again.
        ToAll& to_all = to_all_[at % capacity];
        if (to_all.pushed == at + 1) --to_all.pushed;
        messages_[at % capacity][receiver] = message;
    }
    [[nodiscard]] std::uint16_t number(unsigned at, unsigned receiver) const {
        const ToAll& to_all = to_all_[at % capacity];
        return to_all.pushed == at + 1 ? to_all.message : messages_[at % capacity][receiver];
    }
    static_assert(std::has_single_bit(capacity));  // numbers of messages wrap around
    alignas(64) std::array<ToAll, capacity> to_all_{};
    alignas(64) std::array<std::array<std::uint16_t, tile_count>, capacity> messages_{};
    alignas(64) std::array<std::uint32_t, tile_count> pushed_{};  ///< by receiver
};

/// Messages that reached a ring's receiver and wait there. A sender waits while any receiver has
/// as many as may wait. The depth is an assumption; no known program depends on it.
class RingQueue {
  public:
    static constexpr unsigned depth = spec::ring_depth;
    static constexpr unsigned capacity = RingPlaces::capacity;

    /// As the receiver of that number.
    void connect(const RingPlaces& places, const Messages& messages, unsigned receiver) {
        places_ = &places;
        messages_ = &messages;
        receiver_ = receiver;
    }
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] unsigned size() const { return places_->pushed_[receiver_] - popped_; }
    [[nodiscard]] std::span<const std::uint8_t> front() const {
        return (*messages_)[number(popped_)];
    }
    void pop() { ++popped_; }
    /// As many messages as `take`, which gets each, says true of, at most so many. Returns how
    /// many.
    unsigned pop_while(unsigned most, auto&& take) {
        const RingPlaces& places = *places_;
        const Messages& messages = *messages_;
        const unsigned first = popped_, receiver = receiver_;
        unsigned taken = 0;
        while (taken < most && take(messages[places.number(first + taken, receiver)])) ++taken;
        popped_ = first + taken;
        return taken;
    }
    void clear() { popped_ = places_->pushed_[receiver_]; }
    /// The messages' numbers.
    void each(auto&& tell) const {
        for (unsigned at = popped_; at != places_->pushed_[receiver_]; ++at) tell(number(at));
    }

  private:
    [[nodiscard]] std::uint16_t number(unsigned at) const { return places_->number(at, receiver_); }

    const RingPlaces* places_ = nullptr;
    const Messages* messages_ = nullptr;
    unsigned receiver_ = 0;
    unsigned popped_ = 0;
};

/// The messages on some rings. A message to many receivers is kept once: each receiver copies it
/// straight to its row, and cores that share the tiles' work fetch it once.
///
/// Every place of a ring has a number of each kind for messages to all tiles, whose receivers have
/// all taken the one before when there is room for the next. What goes to some tiles, or to the
/// scalar core, has a number that no queue holds.
class MessageStore {
  public:
    /// For so many queues, of tiles on so many rings and of others.
    MessageStore(unsigned rings, unsigned queues)
        : of_rings_(RingQueue::capacity * rings),
          messages_(of_rings_ + RingQueue::capacity * queues + 1),
          used_(2 * messages_.of_each()) {
        assert(used_.size() <= std::numeric_limits<std::uint16_t>::max());
        for (auto& free : free_) free.reserve(most_collected);
    }
    [[nodiscard]] const Messages& messages() const { return messages_; }
    /// Number of a ring's first place, for messages of that size to all.
    [[nodiscard]] std::uint16_t to_all(unsigned ring, std::size_t size) const {
        return static_cast<std::uint16_t>(kind_of(size) * messages_.of_each() +
                                          ring * RingQueue::capacity);
    }
    /// So many messages of `size` bytes each, whose places on the ring follow `place`: in their
    /// numbers for all tiles. Precondition: every tile has room for them.
    void put_to_all(unsigned ring, std::uint32_t place, std::uint32_t messages, std::size_t size,
                    const std::uint8_t* data) {
        const std::uint32_t first = place % RingQueue::capacity;
        const std::uint32_t before_end = std::min(messages, RingQueue::capacity - first);
        const std::uint16_t numbers = to_all(ring, size);
        messages_.assign_each(static_cast<std::uint16_t>(numbers + first), before_end, size, data);
        messages_.assign_each(numbers, messages - before_end, size, data + before_end * size);
    }
    /// One whose bytes stay where they are until all tiles have received it. Precondition:
    /// may_refer(), of their size, and room as above.
    void refer_to_all(unsigned ring, std::uint32_t place, std::span<const std::uint8_t> data) {
        const auto number = to_all(ring, data.size()) + place % RingQueue::capacity;
        messages_.refer(static_cast<std::uint16_t>(number), data);
    }
    /// Short ones are not worth it.
    [[nodiscard]] static bool may_refer(std::size_t size) { return kind_of(size) == 0; }
    /// How many other messages of that size can be put before queues are looked at: one at least.
    /// `each_queue` calls what it is given with every queue.
    [[nodiscard]] std::size_t room(std::size_t size, auto&& each_queue) {
        const unsigned kind = kind_of(size);
        if (free_[kind].empty()) collect(kind, each_queue);
        return free_[kind].size();
    }
    /// In a message that no queue holds. Precondition: room() said that there is one.
    [[nodiscard]] std::uint16_t put(std::span<const std::uint8_t> data) {
        auto& free = free_[kind_of(data.size())];
        const std::uint16_t number = free.back();
        free.pop_back();
        messages_.assign(number, data);
        return number;
    }

  private:
    /// How many are collected at most: few, so that they stay in the caches.
    static constexpr std::size_t most_collected = 2 * RingQueue::capacity;

    [[nodiscard]] static unsigned kind_of(std::size_t size) {
        return size <= Messages::short_bytes ? 1 : 0;
    }
    void collect(unsigned kind, auto&& each_queue) {
        std::ranges::fill(used_, std::uint8_t{0});
        each_queue([&](const RingQueue& queue) {
            queue.each([&](std::uint16_t number) { used_[number] = 1; });
        });
        const std::size_t first = kind * messages_.of_each();
        const std::size_t end = first + messages_.of_each();
        for (std::size_t i = first + of_rings_; i < end && free_[kind].size() < most_collected; ++i)
            if (used_[i] == 0) free_[kind].push_back(static_cast<std::uint16_t>(i));
    }

    std::size_t of_rings_;  ///< numbers of places, by kind
    Messages messages_;
    std::vector<std::uint8_t> used_;
    std::array<std::vector<std::uint16_t>, 2> free_;  ///< by kind: rows, short ones
};

/// Words from one neighbour that were sent and not yet taken. The depth is an assumption.
///
/// Sender and receiver may work side by side: in a round, neither sees what the other does in it.
/// Each writes a line of its own, and reads the other's once in a round.
class MeshLink {
  public:
    static constexpr unsigned depth = spec::mesh_depth;
    /// That there is memory for.
    static constexpr unsigned capacity = 16 * depth;
    /// Not the number of any round.
    static constexpr std::uint32_t no_round = 0;

    // The sender's side.
    /// How many words there is room for, `wanted` at most.
    [[nodiscard]] unsigned room(std::uint32_t round, unsigned wanted) {
        const auto room = [&] {
            return most_ - static_cast<std::uint16_t>(sent_.now() - sent_.seen);
        };
        if (room() < wanted) sent_.seen = taken_.before(round);
        return std::min(room(), wanted);
    }
    /// Words that are `step` bytes apart in memory. Precondition: there is room for them.
    void push(std::uint32_t round, const std::uint8_t* from, std::ptrdiff_t step, unsigned words) {
        const unsigned at = sent_.now() % capacity;
        const unsigned before_end = std::min(words, capacity - at);
        copy(&words_[at], word, from, step, before_end);
        copy(words_.data(), word, from + step * before_end, step, words - before_end);
        sent_.count(round, words);
    }

    // The receiver's side.
    /// How many words have come, `wanted` at most.
    [[nodiscard]] unsigned size(std::uint32_t round, unsigned wanted) {
        const auto size = [&] {
            return unsigned{static_cast<std::uint16_t>(taken_.seen - taken_.now())};
        };
        if (size() < wanted) taken_.seen = sent_.before(round);
        return std::min(size(), wanted);
    }
    /// Precondition: so many have come.
    void pop(std::uint32_t round, std::uint8_t* to, std::ptrdiff_t step, unsigned words) {
        const unsigned at = taken_.now() % capacity;
        const unsigned before_end = std::min(words, capacity - at);
        copy(to, step, &words_[at], word, before_end);
        copy(to + step * before_end, step, words_.data(), word, words - before_end);
        taken_.count(round, words);
    }

    // Nobody is at work.
    /// Words that were sent and not yet taken.
    [[nodiscard]] unsigned waiting() const {
        return static_cast<std::uint16_t>(sent_.now() - taken_.now());
    }
    /// Empties it. At most `most` words may wait from now on.
    void clear(unsigned most) {
        most_ = most;
        sent_.clear();
        taken_.clear();
    }

  private:
    static constexpr std::ptrdiff_t word = narrow_word_bytes;
    static_assert(capacity < 1U << 16U && std::has_single_bit(capacity));

    /// Words that one side has counted since the beginning, modulo 2^16: it alone writes it.
    class alignas(64) End {
      public:
        /// What the other side did before its own round, when last looked at.
        std::uint16_t seen = 0;

        [[nodiscard]] std::uint16_t now() const { return now_; }
        /// For the other side: what was counted before that round.
        [[nodiscard]] std::uint16_t before(std::uint32_t round) {
            const std::uint64_t told = std::atomic_ref(told_).load(std::memory_order_acquire);
            return static_cast<std::uint16_t>(
                static_cast<std::uint32_t>(told >> 32U) == round ? told >> 16U : told);
        }
        void count(std::uint32_t round, unsigned words) {
            if (round_ != round) {
                before_ = now_;
                round_ = round;
            }
            now_ = static_cast<std::uint16_t>(now_ + words);
            std::atomic_ref(told_).store(
                std::uint64_t{round_} << 32U | std::uint64_t{before_} << 16U | now_,
                std::memory_order_release);
        }
        void clear() {
            seen = before_ = now_ = 0;
            round_ = no_round;
            told_ = 0;
        }

      private:
        std::uint16_t before_ = 0;  ///< of round_
        std::uint16_t now_ = 0;
        std::uint32_t round_ = no_round;  ///< in which it was last counted
        std::uint64_t told_ = 0;          ///< round_, before_, now_
    };

    static void copy(void* to, std::ptrdiff_t to_step, const void* from, std::ptrdiff_t from_step,
                     unsigned words) {
        auto* out = static_cast<std::uint8_t*>(to);
        const auto* in = static_cast<const std::uint8_t*>(from);
        for (; words > 0; --words, out += to_step, in += from_step) std::memcpy(out, in, word);
    }

    std::array<std::uint32_t, capacity> words_{};
    unsigned most_ = depth;
    End sent_;
    End taken_;
};

}  // namespace reef::edgetpu::sim
