#include "edgetpu/usb/simulated_stick.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "edgetpu/usb/stick_descriptors.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t firmware_block = 256;
/// Firmware that runs is longer; this refuses what cannot be any.
constexpr std::size_t least_firmware = 1024;

std::unexpected<Failure> stalled(std::string what) {
    return std::unexpected(Failure{Fault::stall, std::move(what)});
}

}  // namespace

SimulatedStick::SimulatedStick(StickOptions options, std::unique_ptr<ChipCore> core)
    : options_(std::move(options)), core_(std::move(core)) {
    is_chip_ = options_.has_firmware;
    power_on();
}

void SimulatedStick::power_on() {
    registers_.power_on();
    stuck_.clear();
    stuck_next_ = corrupt_status_ = detached_ = false;
    forget_streams();
    firmware_.clear();
    firmware_complete_ = false;
    dfu_state_ = dfu_idle;
}

void SimulatedStick::forget_streams() {
    header_.clear();
    stream_.reset();
    stream_bytes_ = stream_left_ = 0;
    complaint_.clear();
    refusal_.clear();
    core_->reset();
}

DeviceInfo SimulatedStick::info() const {
    return {.vendor = is_chip_ ? chip_vendor : boot_vendor,
            .product = is_chip_ ? chip_product : boot_product,
            .port = options_.port,
            .address = address_,
            .speed = options_.speed};
}

std::optional<InjectedFault> SimulatedStick::next_transaction(
    TimePoint now, std::initializer_list<InjectedFault> fitting) {
    const std::size_t number = transactions_++;
    for (auto it = options_.faults.begin(); it != options_.faults.end(); ++it) {
        if (number < it->transaction || std::ranges::find(fitting, it->fault) == fitting.end()) {
            continue;
        }
        const FaultAt fault = *it;
        options_.faults.erase(it);
        if (fault.fault == InjectedFault::unplug) {
            unplug();
            if (fault.back_after) back_at_ = now + *fault.back_after;
        }
        return fault.fault;
    }
    return std::nullopt;
}

void SimulatedStick::unplug() {
    plugged_ = false;
    ++address_;
    is_chip_ = false;
    power_on();
}

void SimulatedStick::pass_time(TimePoint now) {
    if (!plugged_ && back_at_ && now >= *back_at_) {
        plugged_ = true;
        back_at_.reset();
    }
}

void SimulatedStick::bus_reset() {
    const bool loaded = firmware_complete_ && firmware_.size() >= least_firmware;
    const bool boots = is_chip_ ? !detached_ : loaded;
    if (boots != is_chip_) {
        ++address_;
        is_chip_ = boots;
        return power_on();
    }
    if (!is_chip_) return power_on();
    registers_.bus_reset();
    stuck_.clear();
    stuck_next_ = corrupt_status_ = false;
    forget_streams();
}

Io<std::size_t> SimulatedStick::control(const Setup& setup, MutableBytes data) {
    auto done = transfer(setup, data);
    refusal_ = done ? "" : done.error().what;
    return done;
}

Io<std::size_t> SimulatedStick::transfer(const Setup& setup, MutableBytes data) {
    if (setup.request_type == standard_read) return standard(setup, data);
    if (setup.request_type == standard_write && setup.request == set_configuration) return 0;
    const bool of_interface = setup.request_type == dfu_write || setup.request_type == dfu_read;
    return is_chip_ && !of_interface ? access(setup, data) : dfu(setup, data);
}

Io<std::size_t> SimulatedStick::access(const Setup& setup, MutableBytes data) {
    const bool reads = setup.request_type == register_read;
    const std::size_t bytes = setup.request == register_64_bits ? 8 : 4;
    if ((!reads && setup.request_type != register_write) || setup.request > register_32_bits) {
        return stalled(fmt::format("request {} of type {:#04x} is none of the chip's",
                                   setup.request, setup.request_type));
    }
    const std::uint32_t offset = std::uint32_t{setup.index} << 16 | setup.value;
    const RegisterInfo* info = find_register(offset);
    if (setup.length != bytes || info == nullptr || info->bits != bytes * 8) {
        return stalled(fmt::format("no register of {} bits at {:#x}", setup.length * 8, offset));
    }
    std::uint64_t value = 0;
    if (!reads) {
        std::memcpy(&value, data.data(), bytes);
        write(offset, value);
        return bytes;
    }
    value = read(offset);
    if (stuck_next_) {
        stuck_[offset] = ~value;
        stuck_next_ = false;
    }
    if (const auto stuck = stuck_.find(offset); stuck != stuck_.end()) value = stuck->second;
    std::memcpy(data.data(), &value, bytes);
    return bytes;
}

StickDescriptors SimulatedStick::descriptors() const {
    return is_chip_ ? chip_descriptors(options_.speed) : boot_descriptors();
}

Io<std::size_t> SimulatedStick::standard(const Setup& setup, MutableBytes data) const {
    const auto answer = [&](Bytes bytes) -> Io<std::size_t> {
        const std::size_t size = std::min(bytes.size(), data.size());
        std::ranges::copy(bytes.first(size), data.begin());
        return size;
    };
    constexpr std::byte configuration[] = {std::byte{1}}, bus_powered[] = {std::byte{0}, {}};
    if (setup.request == get_configuration) return answer(configuration);
    if (setup.request == get_status) return answer(bus_powered);
    if (setup.request != get_descriptor) {
        return stalled(fmt::format("standard request {} is not answered", setup.request));
    }
    const StickDescriptors all = descriptors();
    const std::size_t number = setup.value & 0xffU;
    switch (setup.value & 0xff00U) {
        case device_descriptor:
            return answer(all.device);
        case configuration_descriptor:
            if (number == 0) return answer(all.configuration);
            break;
        case string_descriptor:
            if (number < all.strings.size()) return answer(all.strings[number]);
            break;
        case object_store_descriptor:
            if (!all.object_store.empty()) return answer(all.object_store);
            break;
        default:
            break;
    }
    return stalled(fmt::format("no descriptor {:#06x}", setup.value));
}

Io<std::size_t> SimulatedStick::download(const Setup& setup, Bytes block) {
    if (setup.length > firmware_block || dfu_state_ == dfu_error) {
        return stalled(
            fmt::format("a firmware block of {} bytes in DFU state {}; blocks have up to "
                        "{}",
                        setup.length, dfu_state_, firmware_block));
    }
    if (setup.value == 0) firmware_.clear();
    firmware_.insert(firmware_.end(), block.begin(), block.end());
    firmware_complete_ = block.empty();
    dfu_state_ = block.empty() ? dfu_idle : dfu_download_idle;
    return block.size();
}

Io<std::size_t> SimulatedStick::dfu(const Setup& setup, MutableBytes data) {
    if (setup.request_type == dfu_write && setup.request == dfu_detach) {
        detached_ = is_chip_;
        return 0;
    }
    const auto is = [&](std::uint8_t type, std::uint8_t request) {
        return !is_chip_ && setup.request_type == type && setup.request == request;
    };
    if (is(dfu_write, dfu_download)) return download(setup, data);
    if (is(dfu_write, dfu_clear_status) || is(dfu_write, dfu_abort)) {
        dfu_state_ = dfu_idle;
        return 0;
    }
    if (is(dfu_read, dfu_get_state) && !data.empty()) {
        data[0] = std::byte{dfu_state_};
        return 1;
    }
    if (is(dfu_read, dfu_get_status) && data.size() == dfu_status_bytes) {
        std::ranges::fill(data, std::byte{0});
        if (corrupt_status_) {
            corrupt_status_ = false;
            dfu_state_ = dfu_error;
            firmware_complete_ = false;
            data[0] = std::byte{0x0a};  // errFIRMWARE
        }
        data[1] = static_cast<std::byte>(spec::dfu_poll_ms);
        data[4] = std::byte{dfu_state_};
        return data.size();
    }
    if (is(dfu_read, dfu_upload)) {
        const std::size_t at = std::min(firmware_.size(), setup.value * firmware_block);
        const std::size_t size = std::min(data.size(), firmware_.size() - at);
        std::ranges::copy(Bytes(firmware_).subspan(at, size), data.begin());
        return size;
    }
    return stalled(fmt::format("request {} of type {:#04x} is none of the {}'s", setup.request,
                               setup.request_type, is_chip_ ? "chip" : "boot loader"));
}

std::uint64_t SimulatedStick::read(std::uint32_t offset) const {
    if (const auto value = core_->read_register(offset)) return *value;
    return registers_.read(offset, core_->idle());
}

void SimulatedStick::write(std::uint32_t offset, std::uint64_t value) {
    registers_.write(offset, value);
    // Sleep stops the engines; what the memories hold is lost.
    if (!registers_.awake()) forget_streams();
    core_->write_register(offset, value);
}

std::optional<ChipEvent> SimulatedStick::take_event() {
    while (const auto event = core_->take_event()) {
        if (registers_.reports(event->tag)) return event;
    }
    return std::nullopt;
}

std::size_t SimulatedStick::take_output(MutableBytes room) {
    // A chunk that is shorter than the bus's packets ends the transfer.
    const std::size_t chunk = output_chunk();
    if (chunk < bulk_packet_bytes(options_.speed)) room = room.first(std::min(room.size(), chunk));
    return core_->take_output(room);
}

std::string SimulatedStick::standstill() const {
    if (!complaint_.empty()) return complaint_;
    if (!refusal_.empty()) return refusal_;
    if (auto reason = core_->standstill(); !reason.empty()) return reason;
    if (!stream_) return {};
    return fmt::format("{} of {} bytes of {} have not come", stream_left_, stream_bytes_,
                       to_string(*stream_));
}

bool SimulatedStick::accepts_data(std::uint8_t endpoint) {
    if (!is_chip_) {
        refuse("the boot loader has no bulk endpoints: it takes firmware by DFU");
    } else if (endpoint < out_endpoint || endpoint > parameters_endpoint) {
        refuse(fmt::format("the chip has no endpoint {:02x}", endpoint));
    } else if (endpoint != out_endpoint && !registers_.multiple_endpoints()) {
        refuse(fmt::format("data on endpoint {:02x}, which multi_bo_ep does not select", endpoint));
    } else if (!registers_.awake()) {
        refuse("data for a chip that sleeps: scu_ctrl_3 wakes it");
    } else if (!registers_.engines_run()) {
        refuse("data before the run controls of the scalar core's engines are 1");
    } else {
        return complaint_.empty();
    }
    return false;
}

/// Takes the header of the data that follow, which may come in pieces.
bool SimulatedStick::begin_stream(Bytes& bytes) {
    const std::size_t size = std::min(header_bytes - header_.size(), bytes.size());
    header_.insert(header_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    bytes = bytes.subspan(size);
    if (header_.size() < header_bytes) return true;
    std::uint32_t words[2];
    std::memcpy(words, header_.data(), sizeof words);
    header_.clear();
    if (words[1] > static_cast<std::uint32_t>(Tag::parameters)) {
        refuse(fmt::format("a header of {} bytes for tag {}: tags 0 to 2 go to the chip", words[0],
                           words[1]));
        return false;
    }
    stream_bytes_ = stream_left_ = words[0];
    if (stream_left_ != 0) stream_ = static_cast<Tag>(words[1]);
    return true;
}

bool SimulatedStick::give(Tag tag, Bytes bytes) {
    auto taken = core_->receive(tag, bytes);
    if (!taken) complaint_ = taken.error().message();
    return taken.has_value();
}

bool SimulatedStick::receive(std::uint8_t endpoint, Bytes bytes) {
    refusal_.clear();
    if (!accepts_data(endpoint)) return false;
    if (registers_.multiple_endpoints()) {
        return give(static_cast<Tag>(endpoint - out_endpoint), bytes);
    }
    while (!bytes.empty()) {
        if (!stream_) {
            if (!begin_stream(bytes)) return false;
            continue;
        }
        const Bytes piece = bytes.first(std::min(bytes.size(), stream_left_));
        if (!give(*stream_, piece)) return false;
        bytes = bytes.subspan(piece.size());
        stream_left_ -= piece.size();
        if (stream_left_ == 0) stream_.reset();
    }
    return true;
}

}  // namespace reef::edgetpu::usb
