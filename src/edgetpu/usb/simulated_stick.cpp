#include "edgetpu/usb/simulated_stick.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "edgetpu/usb/register_map.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t firmware_block = 256;
/// Firmware that runs is longer; this refuses what cannot be any.
constexpr std::size_t least_firmware = 1024;

std::unexpected<Failure> stalled(std::string what) {
    return std::unexpected(Failure{Fault::stall, std::move(what)});
}

/// The DFU interface with its functional descriptor: blocks of 256 bytes, up and down.
constexpr std::uint8_t boot_configuration[] = {9, 2,    27, 0,    1, 1,    0, 0x80, 250,  //
                                               9, 4,    0,  0,    0, 0xfe, 1, 2,    0,    //
                                               9, 0x21, 7,  0xe8, 3, 0,    1, 0x10, 1};

/// One vendor-specific interface with the endpoints of the single-endpoint mode. What else a real
/// stick's descriptor says (other endpoints, bursts, power) is not recorded anywhere.
std::vector<std::byte> chip_configuration(Speed speed) {
    constexpr std::uint8_t bulk = 2, interrupt = 3;
    const std::uint16_t bulk_packet = speed >= Speed::super  ? 1024
                                      : speed == Speed::high ? 512
                                                             : 64;
    constexpr std::size_t endpoints = 4, size = 9 + 9 + 7 * endpoints;
    std::vector<std::uint8_t> bytes = {9, 2, size, 0, 1, 1,    0,    0x80, 0,
                                       9, 4, 0,    0, 4, 0xff, 0xff, 0xff, 0};
    const auto endpoint = [&](std::uint8_t address, std::uint8_t type, std::uint16_t packet,
                              std::uint8_t interval) {
        bytes.insert(bytes.end(), {7, 5, address, type, static_cast<std::uint8_t>(packet),
                                   static_cast<std::uint8_t>(packet >> 8), interval});
    };
    endpoint(out_endpoint, bulk, bulk_packet, 0);
    endpoint(output_endpoint, bulk, bulk_packet, 0);
    endpoint(event_endpoint, bulk, bulk_packet, 0);
    endpoint(interrupt_endpoint, interrupt, interrupt_bytes, 1);
    const auto all = std::as_bytes(std::span(bytes));
    return {all.begin(), all.end()};
}

}  // namespace

SimulatedStick::SimulatedStick(StickOptions options, std::unique_ptr<ChipCore> core)
    : options_(std::move(options)), core_(std::move(core)) {
    is_chip_ = options_.has_firmware;
    power_on();
}

void SimulatedStick::power_on() {
    registers_.clear();
    stuck_.clear();
    stuck_next_ = corrupt_status_ = false;
    stream_.reset();
    complaint_.clear();
    firmware_.clear();
    firmware_complete_ = false;
    dfu_state_ = dfu_idle;
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
    const bool boots = is_chip_ || (firmware_complete_ && firmware_.size() >= least_firmware);
    if (boots != is_chip_) ++address_;
    is_chip_ = boots;
    power_on();
}

Io<std::size_t> SimulatedStick::control(const Setup& setup, MutableBytes data) {
    if (setup.request_type == standard_read) return standard(setup, data);
    if (!is_chip_) return dfu(setup, data);
    const std::size_t bytes = setup.request == register_64_bits ? 8 : 4;
    if (setup.request > register_32_bits || setup.length != bytes) {
        return stalled("not a register transfer");
    }
    const std::uint32_t offset = std::uint32_t{setup.index} << 16 | setup.value;
    const RegisterInfo* info = find_register(offset);
    if (info == nullptr || info->bits != bytes * 8) {
        return stalled(fmt::format("no register of {} bits at {:#x}", bytes * 8, offset));
    }
    if (setup.request_type == register_read) {
        std::uint64_t value = read(offset);
        if (stuck_next_) {
            stuck_[offset] = ~value;
            stuck_next_ = false;
        }
        if (const auto stuck = stuck_.find(offset); stuck != stuck_.end()) value = stuck->second;
        std::memcpy(data.data(), &value, bytes);
        return bytes;
    }
    if (setup.request_type != register_write) return stalled("not a register transfer");
    std::uint64_t value = 0;
    std::memcpy(&value, data.data(), bytes);
    write(offset, value);
    return bytes;
}

StickDescriptors SimulatedStick::descriptors() const {
    const auto low = [](std::uint16_t word) { return static_cast<std::uint8_t>(word); };
    const auto high = [](std::uint16_t word) { return static_cast<std::uint8_t>(word >> 8); };
    const DeviceInfo device = info();
    const std::uint8_t version_minor = 0x10, version_major = is_chip_ ? 3 : 2;
    const std::array<std::uint8_t, device_descriptor_bytes> bytes = {
        18,
        1,
        version_minor,
        version_major,
        0,
        0,
        0,
        static_cast<std::uint8_t>(is_chip_ ? 9 : 64),  // log2 of, or the packet size
        low(device.vendor),
        high(device.vendor),
        low(device.product),
        high(device.product),
        0,
        1,
        0,
        0,
        0,
        1};
    StickDescriptors all;
    std::ranges::copy(std::as_bytes(std::span(bytes)), std::back_inserter(all.device));
    if (is_chip_) {
        all.configuration = chip_configuration(options_.speed);
    } else {
        std::ranges::copy(std::as_bytes(std::span(boot_configuration)),
                          std::back_inserter(all.configuration));
    }
    return all;
}

Io<std::size_t> SimulatedStick::standard(const Setup& setup, MutableBytes data) const {
    const auto answer = [&](Bytes bytes) -> Io<std::size_t> {
        const std::size_t size = std::min(bytes.size(), data.size());
        std::memcpy(data.data(), bytes.data(), size);
        return size;
    };
    constexpr std::byte configuration[] = {std::byte{1}}, bus_powered[] = {std::byte{0}, {}};
    if (setup.request == get_configuration) return answer(configuration);
    if (setup.request == get_status) return answer(bus_powered);
    if (setup.request == get_descriptor && setup.value == device_descriptor) {
        return answer(descriptors().device);
    }
    if (setup.request == get_descriptor && setup.value == configuration_descriptor) {
        return answer(descriptors().configuration);
    }
    return stalled("no such descriptor");
}

Io<std::size_t> SimulatedStick::dfu(const Setup& setup, MutableBytes data) {
    if (setup.request_type == dfu_write && setup.request == dfu_download) {
        if (setup.length > firmware_block || dfu_state_ == dfu_error) return stalled("DFU state");
        if (setup.value == 0) firmware_.clear();
        firmware_.insert(firmware_.end(), data.begin(), data.end());
        firmware_complete_ = data.empty();
        dfu_state_ = data.empty() ? dfu_idle : dfu_download_idle;
        return data.size();
    }
    if (setup.request_type == dfu_read && setup.request == dfu_get_status &&
        data.size() == dfu_status_bytes) {
        std::ranges::fill(data, std::byte{0});
        if (corrupt_status_) {
            corrupt_status_ = false;
            dfu_state_ = dfu_error;
            firmware_complete_ = false;
            data[0] = std::byte{0x0a};  // errFIRMWARE
        }
        data[4] = std::byte{dfu_state_};
        return data.size();
    }
    if (setup.request_type == dfu_read && setup.request == dfu_upload) {
        const std::size_t at = std::min(firmware_.size(), setup.value * firmware_block);
        const std::size_t size = std::min(data.size(), firmware_.size() - at);
        std::memcpy(data.data(), firmware_.data() + at, size);
        return size;
    }
    return stalled("not a DFU request");
}

std::uint64_t SimulatedStick::read(std::uint32_t offset) const {
    if (const auto value = core_->read_register(offset)) return *value;
    if (const auto found = registers_.find(offset); found != registers_.end()) return found->second;
    return find_register(offset)->reset.value_or(0);
}

void SimulatedStick::write(std::uint32_t offset, std::uint64_t value) {
    if (offset == csr::scu_ctrl_3->offset) {
        const auto force = csr::force_sleep.get(value);
        std::uint64_t state = csr::power_state.get(read(offset));
        if (force == csr::sleep) state = csr::sleeping;
        if (force == csr::wake) state = csr::running;
        value = csr::power_state.set(value, state);
        // Sleep stops the engines; what the memories hold is lost.
        if (state == csr::sleeping) {
            for (const auto* control : csr::core_run_controls) registers_.erase(control->offset);
            registers_.erase(csr::scalar_core_break_point->offset);
            stream_.reset();
            complaint_.clear();
            core_->reset();
        }
    }
    registers_[offset] = value;
    core_->write_register(offset, value);
}

// A scalar core that a debugger holds does not keep the DMA from taking bytes.
bool SimulatedStick::runs() const {
    const auto runs = [&](const RegisterInfo* control) {
        const std::uint64_t command = read(control->offset);
        return command == csr::run || (control == csr::scalar_core_run_control &&
                                       (command == csr::halt || command == csr::single_step));
    };
    return csr::power_state.get(read(csr::scu_ctrl_3->offset)) == csr::running &&
           std::ranges::all_of(csr::core_run_controls, runs);
}

std::size_t SimulatedStick::output_chunk() const {
    constexpr std::size_t unit = 8;
    return std::max<std::size_t>(read(csr::outfeed_chunk_length->offset) * unit, unit);
}

std::optional<ChipEvent> SimulatedStick::take_event() {
    while (const auto event = core_->take_event()) {
        const std::uint64_t enabled = read(csr::descr_ep->offset);
        if ((enabled >> static_cast<unsigned>(event->tag) & 1U) != 0) return event;
    }
    return std::nullopt;
}

bool SimulatedStick::receive(Bytes bytes) {
    if (!is_chip_ || !runs() || !complaint_.empty()) return false;
    if (!stream_) {
        std::uint32_t header[2];
        if (bytes.size() != sizeof header) return false;
        std::memcpy(header, bytes.data(), sizeof header);
        if (header[1] > static_cast<std::uint32_t>(Tag::parameters)) return false;
        stream_ = static_cast<Tag>(header[1]);
        stream_left_ = header[0];
    } else {
        if (bytes.size() > stream_left_) return false;
        if (auto taken = core_->receive(*stream_, bytes); !taken) {
            complaint_ = taken.error().message();
            return false;
        }
        stream_left_ -= bytes.size();
    }
    if (stream_left_ == 0) stream_.reset();
    return true;
}

}  // namespace reef::edgetpu::usb
