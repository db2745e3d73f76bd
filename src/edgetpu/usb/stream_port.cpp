#include "edgetpu/usb/stream_port.h"

#include <fmt/format.h>

#include <numeric>

#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t most_waiting_bytes = 32 << 20;
constexpr std::size_t most_output_bytes = 4 << 20;
/// Far above what any known program has open at a time.
constexpr std::size_t most_descriptors = 1 << 16;

}  // namespace

void StreamPort::clear() {
    for (ToChip& stream : to_chip_) {
        stream.bytes.clear();
        stream.asked.clear();
    }
    output_.clear();
    packets_.clear();
    asked_output_ = given_output_ = taken_output_ = 0;
    events_.clear();
}

Status StreamPort::receive(Tag tag, Bytes bytes) {
    ByteQueue& queue = to_chip_[tag == Tag::input_activations ? 1 : 0].bytes;
    if (bytes.size() > most_waiting_bytes - std::min(most_waiting_bytes, queue.size()))
        return fail(Cause::bad_input, fmt::format("{} bytes of {} wait for the program",
                                                  queue.size(), to_string(tag)));
    queue.push(bytes);
    return {};
}

// A unit does not go over the end of a transfer.
bool StreamPort::take(bool activations, std::span<std::uint8_t> unit) {
    ToChip& stream = to_chip_[activations ? 1 : 0];
    if (stream.asked.empty()) return false;
    std::uint64_t& left = stream.asked.front();
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(unit.size(), left));
    if (stream.bytes.size() < size) return false;
    stream.bytes.take(std::as_writable_bytes(unit.first(size)));
    std::ranges::fill(unit.subspan(size), std::uint8_t{0});
    left -= size;
    if (left == 0) stream.asked.pop_front();
    return true;
}

std::size_t StreamPort::take_units(bool activations, std::size_t unit_bytes,
                                   std::span<std::uint8_t> units) {
    ToChip& stream = to_chip_[activations ? 1 : 0];
    if (stream.asked.empty()) return 0;
    const auto there = std::min<std::uint64_t>(
        {stream.asked.front(), stream.bytes.size(), std::uint64_t{units.size()}});
    // The transfer's last unit may be padded.
    const auto whole = static_cast<std::size_t>(there) / unit_bytes;
    if (whole > 1) return take(activations, units.first(whole * unit_bytes)) ? whole : 0;
    return take(activations, units.first(unit_bytes)) ? 1 : 0;
}

bool StreamPort::has_room(std::size_t bytes) const {
    return output_.size() + bytes <= most_output_bytes;
}

Status StreamPort::give(std::span<const std::uint8_t> unit) {
    output_.push(std::as_bytes(unit));
    given_output_ += unit.size();
    return {};
}

Status StreamPort::fire(const sim::DmaDescriptor& descriptor) {
    if (to_chip_[0].asked.size() + to_chip_[1].asked.size() + packets_.size() + events_.size() >=
        most_descriptors)
        return fail(Cause::unsupported,
                    fmt::format("not modelled: more than {} open DMA descriptors and events",
                                most_descriptors),
                    {}, "the host must take events and output");
    const bool interrupt = descriptor.tag >= Tag::interrupt_0;
    events_.push_back({.event = {.tag = descriptor.tag,
                                 .address = interrupt ? 0 : descriptor.address.byte,
                                 .size = interrupt ? 0 : descriptor.bytes},
                       .behind_output = interrupt ? asked_output_ : 0});
    if (interrupt || descriptor.bytes == 0) return {};
    if (descriptor.tag == Tag::output_activations) {
        packets_.push_back(descriptor.bytes);
        asked_output_ += descriptor.bytes;
    } else {
        to_chip_[descriptor.tag == Tag::input_activations ? 1 : 0].asked.push_back(
            descriptor.bytes);
    }
    return {};
}

// Whole rooms and ends of packets, whatever the pieces in which the chip computed; but a chip that
// waits for room must get some.
std::size_t StreamPort::take_output(MutableBytes room) {
    if (packets_.empty()) return 0;
    std::uint64_t& left = packets_.front();
    auto size = static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), left));
    if (output_.size() < size) {
        if (has_room(sim::activation_unit_bytes)) return 0;
        size = output_.size();
    }
    output_.take(room.first(size));
    taken_output_ += size;
    left -= size;
    if (left == 0) packets_.pop_front();
    return size;
}

std::optional<ChipEvent> StreamPort::take_event() {
    if (events_.empty() || given_output_ < events_.front().behind_output ||
        taken_output_ + spec::usb_output_ahead_bytes < events_.front().behind_output) {
        return std::nullopt;
    }
    const ChipEvent event = events_.front().event;
    events_.pop_front();
    return event;
}

std::uint64_t StreamPort::output_before_event() const {
    if (events_.empty() || given_output_ < events_.front().behind_output) return 0;
    const std::uint64_t behind = events_.front().behind_output;
    return behind > taken_output_ + spec::usb_output_ahead_bytes ? behind - taken_output_ : 0;
}

std::uint64_t StreamPort::unanswered() const {
    std::uint64_t bytes = 0;
    for (const ToChip& stream : to_chip_)
        bytes = std::accumulate(stream.asked.begin(), stream.asked.end(), bytes);
    return bytes;
}

Status StreamPort::end_stream() {
    const std::uint64_t not_taken = unanswered();
    if (not_taken == 0 && given_output_ == asked_output_) return {};
    return fail(Cause::bad_input,
                fmt::format("it ends with {} bytes not taken from the host, and {} bytes "
                            "given of the {} that its descriptors have",
                            not_taken, given_output_, asked_output_));
}

}  // namespace reef::edgetpu::usb
