#include "host_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu::sim {
namespace {

/// Transfers may run this far past a layer: whole units of the FIFO, and a flit more. (fitted)
constexpr std::size_t slack_bytes = 64;

Result<std::vector<std::vector<std::byte>>> buffers(const std::vector<Layer>& layers) {
    std::vector<std::vector<std::byte>> out;
    for (const auto& layer : layers) {
        if (layer.size_bytes < 0)
            return fail(Cause::bad_input, fmt::format("a layer of {} bytes", layer.size_bytes),
                        layer.name);
        constexpr std::int64_t most_bytes = 1 << 30;
        if (std::int64_t{layer.size_bytes} * std::max(layer.executions_per_inference, 1) >
            most_bytes)
            return fail(Cause::bad_input,
                        fmt::format("a layer of {} bytes, {} times", layer.size_bytes,
                                    layer.executions_per_inference),
                        layer.name);
        const auto runs = static_cast<std::size_t>(std::max(layer.executions_per_inference, 1));
        out.emplace_back(static_cast<std::size_t>(layer.size_bytes) * runs + slack_bytes);
    }
    return out;
}

}  // namespace

std::uint64_t HostMemory::Queue::left() const {
    std::uint64_t sum = 0;
    for (std::size_t i = next; i < all.size(); ++i) sum += all[i].left;
    return sum;
}

Result<HostMemory> HostMemory::create(const Executable& executable) {
    HostMemory host;
    host.parameters_ = executable.parameters;
    if (executable.scratch_size_bytes < 0)
        return fail(Cause::bad_input,
                    fmt::format("scratch memory of {} bytes", executable.scratch_size_bytes));
    host.scratch_.resize(static_cast<std::size_t>(executable.scratch_size_bytes));
    host.inputs_ = REEF_TRY(buffers(executable.inputs));
    host.outputs_ = REEF_TRY(buffers(executable.outputs));
    return host;
}

void HostMemory::begin_run() {
    for (auto* queue : {&to_chip_[0], &to_chip_[1], &from_chip_}) {
        queue->all.clear();
        queue->next = 0;
    }
    early_.clear();
    early_at_ = 0;
}

Bytes HostMemory::readable(std::uint32_t region) const {
    if (region == parameter_region) return parameters_.view();
    if (region == scratch_region) return scratch_;
    const std::size_t layer = region - first_layer_region;
    if (layer < inputs_.size()) return inputs_[layer];
    if (layer - inputs_.size() < outputs_.size()) return outputs_[layer - inputs_.size()];
    return {};
}

MutableBytes HostMemory::writable(std::uint32_t region) {
    if (region == scratch_region) return scratch_;
    const std::size_t layer = region - first_layer_region;
    if (region >= first_layer_region && layer >= inputs_.size() &&
        layer - inputs_.size() < outputs_.size())
        return outputs_[layer - inputs_.size()];
    return {};
}

Status HostMemory::fire(const DmaDescriptor& descriptor) {
    if (descriptor.tag >= Tag::interrupt_0) return {};
    const auto region = static_cast<std::uint32_t>(descriptor.address.byte >> 32U);
    const std::uint64_t offset = descriptor.address.byte & 0xffffffffU;
    const bool out = descriptor.tag == Tag::output_activations;
    const std::size_t size = out ? writable(region).size() : readable(region).size();
    if (offset > size || descriptor.bytes > size - offset)
        return fail(Cause::bad_input, fmt::format("DMA of {} bytes at {:#x}, where the host has {}",
                                                  descriptor.bytes, descriptor.address.byte, size));
    if (descriptor.bytes == 0) return {};
    Queue& queue = out ? from_chip_ : to_chip_[descriptor.tag == Tag::input_activations ? 1 : 0];
    queue.all.push_back({region, offset, descriptor.bytes});
    return out ? place_early() : Status{};
}

// A unit does not go over the end of a transfer.
bool HostMemory::take(bool activations, std::span<std::uint8_t> unit) {
    Queue& queue = to_chip_[activations ? 1 : 0];
    if (queue.empty()) return false;
    Pending& pending = queue.front();
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(unit.size(), pending.left));
    const Bytes from = readable(pending.region).subspan(pending.offset, size);
    std::memcpy(unit.data(), from.data(), size);
    std::ranges::fill(unit.subspan(size), std::uint8_t{0});
    pending.offset += size;
    pending.left -= size;
    if (pending.left == 0) ++queue.next;
    return true;
}

std::size_t HostMemory::take_units(bool activations, std::size_t unit_bytes,
                                   std::span<std::uint8_t> units) {
    const Queue& queue = to_chip_[activations ? 1 : 0];
    if (queue.empty()) return 0;
    // The transfer's last unit may be padded.
    const auto whole = static_cast<std::size_t>(
        std::min<std::uint64_t>(queue.all[queue.next].left, units.size()) / unit_bytes);
    const std::size_t taken = std::max<std::size_t>(whole, 1);
    return take(activations, units.first(taken * unit_bytes)) ? taken : 0;
}

Status HostMemory::give(std::span<const std::uint8_t> unit) {
    const auto bytes = std::as_bytes(unit);
    early_.insert(early_.end(), bytes.begin(), bytes.end());
    return place_early();
}

Status HostMemory::place_early() {
    while (early_at_ < early_.size() && !from_chip_.empty()) {
        Pending& pending = from_chip_.front();
        const auto size = static_cast<std::size_t>(
            std::min<std::uint64_t>(early_.size() - early_at_, pending.left));
        std::memcpy(writable(pending.region).data() + pending.offset, early_.data() + early_at_,
                    size);
        early_at_ += size;
        pending.offset += size;
        pending.left -= size;
        if (pending.left == 0) ++from_chip_.next;
    }
    if (early_at_ == early_.size()) {
        early_.clear();
        early_at_ = 0;
    }
    return {};
}

Status HostMemory::end_stream() {
    if (not_taken() == 0 && not_sent() == 0 && not_placed() == 0) return {};
    return fail(Cause::bad_input,
                fmt::format("it ends with {} bytes not taken from the host, {} not sent to it and "
                            "{} that it has no place for",
                            not_taken(), not_sent(), not_placed()));
}

std::uint64_t HostMemory::not_taken() const {
    return to_chip_[0].left() + to_chip_[1].left();
}
std::uint64_t HostMemory::not_sent() const {
    return from_chip_.left();
}

}  // namespace reef::edgetpu::sim
