// Transfers that the hints of a program leave out: the chip asks for them, one event each, with the
// addresses that its program computed.
#include <fmt/format.h>

#include "edgetpu/usb/runner.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t most_open = 4096;

BaseAddress base_of(Tag tag) {
    if (tag == Tag::parameters) return BaseAddress::parameter;
    return tag == Tag::input_activations ? BaseAddress::input_activation
                                         : BaseAddress::output_activation;
}

std::unexpected<Error> refused(Tag tag, std::uint64_t address, std::uint32_t size,
                               std::string_view why) {
    return fail(Cause::device_failed,
                fmt::format("the chip asks for {} bytes of {} at {:#x}, {}", size, to_string(tag),
                            address, why),
                {}, {});
}

}  // namespace

/// Hints and events of a tag come in the same order; what is no hint's comes between them.
bool Runner::is_hinted(Flight& flight, Tag tag, const AddressPlace& place, std::size_t size) {
    std::size_t& next = flight.next_hint[static_cast<std::size_t>(tag)];
    while (next < flight.steps.size() &&
           (flight.steps[next].transfer->tag != tag || flight.steps[next].transfer->size == 0)) {
        ++next;
    }
    if (next == flight.steps.size()) return false;
    const Transfer& hint = *flight.steps[next].transfer;
    if (place != AddressPlace{base_of(tag), hint.index, hint.offset} || size != hint.size) {
        return false;
    }
    ++next;
    return true;
}

Status Runner::take_descriptor(Tag tag, std::uint64_t address, std::uint32_t size) {
    if (count_ == 0 || !flight(count_ - 1).program->asks()) {
        return refused(tag, address, size, "which its program's hints do not leave to it");
    }
    if (size == 0) return {};
    Flight& flight = this->flight(count_ - 1);
    const Program::Part& main = flight.program->main_;
    const auto place = place_of_address(main.executable, address);
    if (!place) return refused(tag, address, size, "where nothing is");
    if (is_hinted(flight, tag, *place, size)) return {};
    MutableBytes memory;
    if (place->base == BaseAddress::scratch) memory = flight.scratch;
    if (place->base == BaseAddress::input_activation) memory = flight.packed[place->layer];
    if (place->base == BaseAddress::output_activation) memory = flight.layers[place->layer];
    const bool out = tag == Tag::output_activations;
    const bool parameters = place->base == BaseAddress::parameter;
    const Bytes all = parameters ? main.executable.parameters.view() : Bytes(memory);
    if (place->offset > all.size() || size > all.size() - place->offset) {
        return refused(tag, address, size, fmt::format("of which there are {}", all.size()));
    }
    if (flight.asked.size() + flight.targets.size() - flight.target > most_open) {
        return refused(tag, address, size, "while thousands of transfers are open");
    }
    if (!out) {
        flight.asked.push_back({tag, all.subspan(place->offset, size), flight.targets.size()});
        return {};
    }
    if (parameters || place->base == BaseAddress::input_activation) {
        return refused(tag, address, size, "which is not written");
    }
    flight.targets.push_back({memory.subspan(place->offset, size)});
    ++flight.targets_due;
    Bytes early = flight.early;
    fill_targets(flight, early);
    flight.early.erase(flight.early.begin(),
                       flight.early.end() - static_cast<std::ptrdiff_t>(early.size()));
    return {};
}

/// What can be sent; whether that was anything.
Result<bool> Runner::send_asked(Flight& flight) {
    bool sent = false;
    while (!flight.asked.empty() && flight.target >= flight.asked.front().behind) {
        const Asked asked = flight.asked.front();
        flight.asked.pop_front();
        REEF_CHECK(send(flight, asked.tag, asked.bytes));
        sent = true;
    }
    return sent;
}

}  // namespace reef::edgetpu::usb
