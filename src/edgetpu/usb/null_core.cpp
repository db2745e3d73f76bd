#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "edgetpu/sim/core/transfer_plan.h"
#include "reef/edgetpu/usb/chip_core.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t period = 256;

/// Two periods of the output's bytes, so that a copy can start anywhere in the first.
constexpr auto pattern = [] {
    std::array<std::uint8_t, 2 * period> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(7 * i + 3);
    }
    return bytes;
}();

/// Equal but for the 32-bit fields that a host overwrites with addresses.
bool same_program(Bytes sent, const InstructionBitstream& bitstream) {
    const Bytes known = bitstream.instructions.view();
    if (sent.size() != known.size()) return false;
    std::vector<std::byte> a(sent.begin(), sent.end()), b(known.begin(), known.end());
    for (const FieldOffset& field : bitstream.field_offsets) {
        const auto first = static_cast<std::size_t>(field.offset_bit);
        for (std::size_t bit = first; bit < first + 32 && bit / 8 < a.size(); ++bit) {
            const auto mask = ~(std::byte{1} << (bit % 8));
            a[bit / 8] &= mask;
            b[bit / 8] &= mask;
        }
    }
    return a == b;
}

const InstructionBitstream* first_bitstream(const Executable& executable,
                                            const TransferPlan& plan) {
    for (const Transfer& transfer : plan.transfers) {
        if (transfer.tag == Tag::instructions && transfer.kind == Transfer::Kind::send) {
            return &executable.bitstreams[transfer.index];
        }
    }
    return nullptr;
}

}  // namespace

Status NullPrograms::add(std::span<const Executable> executables) {
    const std::lock_guard lock(mutex_);
    for (const Executable& executable : executables) {
        auto plan = REEF_TRY(sim::transfer_plan(executable));
        if (!plan.complete) {
            return fail(
                Cause::unsupported,
                fmt::format("not modelled: a null device for an executable of type {} whose DMA "
                            "hints are not complete",
                            to_string(executable.type)),
                {}, "edgetpu:sim computes what it asks for");
        }
        known_.push_back({executable, std::move(plan)});
    }
    std::vector<std::size_t> sizes;
    for (const Known& known : known_) {
        const auto* first = first_bitstream(known.executable, known.plan);
        sizes.push_back(first == nullptr ? 0 : first->instructions.size());
    }
    std::ranges::sort(sizes);
    sizes_differ_ = std::ranges::adjacent_find(sizes) == sizes.end();
    return {};
}

Result<std::unique_ptr<NullCore>> NullCore::of(std::span<const Executable> executables) {
    auto programs = std::make_shared<NullPrograms>();
    REEF_CHECK(programs->add(executables));
    return std::make_unique<NullCore>(std::move(programs));
}

void NullCore::reset() {
    running_ = nullptr;
    std::ranges::fill(received_, 0);
    first_instructions_.clear();
    packets_.clear();
    produced_ = taken_ = 0;
    events_.clear();
}

void NullCore::begin_program() {
    const std::lock_guard lock(programs_->mutex_);
    known_ = programs_->known_.size();
    sizes_differ_ = programs_->sizes_differ_;
}

/// By its first bitstream's size; by its bytes where sizes are not enough.
const NullCore::Known* NullCore::recognise() const {
    const std::lock_guard lock(programs_->mutex_);
    for (std::size_t i = 0; i < known_; ++i) {
        const Known& known = programs_->known_[i];
        const auto* first = first_bitstream(known.executable, known.plan);
        if (first == nullptr || first->instructions.size() != received_[0]) continue;
        if (sizes_differ_ || same_program(first_instructions_, *first)) return &known;
    }
    return nullptr;
}

Status NullCore::receive(Tag tag, Bytes bytes) {
    const auto stream = static_cast<std::size_t>(tag);
    if (tag > Tag::parameters) {
        return fail(Cause::bad_input, fmt::format("{} bytes of {}", bytes.size(), to_string(tag)),
                    "null device");
    }
    received_[stream] += bytes.size();
    if (running_ == nullptr) {
        if (tag != Tag::instructions) {
            return fail(Cause::bad_input, fmt::format("{} before any instructions", to_string(tag)),
                        "null device");
        }
        if (received_[0] == bytes.size()) begin_program();
        if (!sizes_differ_) {
            first_instructions_.insert(first_instructions_.end(), bytes.begin(), bytes.end());
        }
        const Known* known = recognise();
        if (known == nullptr) return {};
        first_instructions_.clear();
        running_ = known;
        step_ = 0;
    }
    advance();
    return {};
}

void NullCore::advance() {
    const auto& transfers = running_->plan.transfers;
    for (; step_ < transfers.size(); ++step_) {
        const Transfer& transfer = transfers[step_];
        switch (transfer.kind) {
            case Transfer::Kind::send: {
                auto& waiting = received_[static_cast<std::size_t>(transfer.tag)];
                if (waiting < transfer.size) return;
                waiting -= transfer.size;
                break;
            }
            case Transfer::Kind::receive:
                if (transfer.size != 0) packets_.push_back({transfer.size, produced_});
                produced_ += transfer.size;
                break;
            case Transfer::Kind::wait:
                events_.push_back({{.tag = transfer.tag}, produced_});
                break;
            case Transfer::Kind::fence:
                break;
        }
    }
    running_ = nullptr;
}

std::size_t NullCore::take_output(MutableBytes room) {
    if (packets_.empty()) return 0;
    Packet& packet = packets_.front();
    const std::size_t size = std::min(packet.size, room.size());
    for (std::size_t at = 0; at < size;) {
        const std::size_t part = std::min(size - at, period);
        std::memcpy(room.data() + at, pattern.data() + (packet.place + at) % period, part);
        at += part;
    }
    taken_ += size;
    packet.size -= size;
    packet.place += size;
    if (packet.size == 0) packets_.erase(packets_.begin());
    return size;
}

std::optional<ChipEvent> NullCore::take_event() {
    if (events_.empty() || taken_ + spec::usb_output_ahead_bytes < events_.front().behind) {
        return std::nullopt;
    }
    const ChipEvent event = events_.front().event;
    events_.erase(events_.begin());
    return event;
}

}  // namespace reef::edgetpu::usb
