#include "edgetpu/usb/stick_registers.h"

#include <algorithm>

namespace reef::edgetpu::usb {
namespace {

/// Registers from here on belong to the tensor engine, which sleep puts into reset.
constexpr std::uint32_t tensor_engine = 0x40000;

/// No reading of a stick's sensor is published; cards report 42 to 53 degrees, and this is 45.
constexpr std::uint64_t made_up_adc = 484;

constexpr std::uint64_t status_bits = csr::cur_gated_gcb.mask | csr::cur_rst_gcb.mask |
                                      csr::cur_gcb_sram_sd.mask | csr::power_state.mask;

constexpr std::uint64_t credits =
    csr::instruction_credit.set(0, spec::usb_instruction_room_bytes / credit_bytes) |
    csr::input_credit.set(0, spec::usb_input_room_bytes / credit_bytes) |
    csr::parameter_credit.set(0, spec::usb_parameter_room_bytes / credit_bytes);

}  // namespace

std::uint64_t StickRegisters::value(std::uint32_t offset) const {
    if (const auto found = values_.find(offset); found != values_.end()) return found->second;
    return find_register(offset)->reset.value_or(0);
}

void StickRegisters::bus_reset() {
    std::erase_if(values_, [](const auto& each) {
        return each.first < csr::omc0_00->offset || each.first >= tensor_engine;
    });
    // Sessions find it 0 whatever the one before wrote.
    values_[csr::scu_ctrl_2->offset] = csr::gated_gcb.set(value(csr::scu_ctrl_2), 0);
}

void StickRegisters::sleep() {
    std::erase_if(values_, [](const auto& each) { return each.first >= tensor_engine; });
}

bool StickRegisters::awake() const {
    return csr::power_state.get(value(csr::scu_ctrl_3)) == csr::running;
}

std::uint64_t StickRegisters::power_and_clock(bool idle) const {
    const std::uint64_t word = value(csr::scu_ctrl_3) & ~status_bits;
    if (!awake())
        return csr::power_state.set(word, csr::sleeping) | csr::cur_gated_gcb.mask |
               csr::cur_rst_gcb.mask | csr::cur_gcb_sram_sd.mask;
    const bool gates = csr::gated_gcb.get(value(csr::scu_ctrl_2)) == csr::gated_by_hardware;
    return csr::cur_gated_gcb.set(word, gates && idle ? 1 : 0);
}

std::uint64_t StickRegisters::read(std::uint32_t offset, bool idle) const {
    if (offset == csr::scu_ctrl_3->offset) return power_and_clock(idle);
    // Sticks that run read 0 here, whatever was written.
    if (offset == csr::scalar_core_run_control->offset ||
        offset == csr::fatal_err_int_control->offset) {
        return 0;
    }
    if (offset == csr::ep_status_credit->offset) return credits;
    const std::uint64_t word = value(offset);
    if (offset == csr::omc0_dc->offset && csr::thermal_sensor_on.get(word) != 0)
        return csr::thermal_adc.set(word, made_up_adc);
    return word;
}

void StickRegisters::write(std::uint32_t offset, std::uint64_t word) {
    if (offset == csr::omc0_00->offset) {
        word = csr::test_reg0.set(value(csr::omc0_00), csr::test_reg0.get(word));
    } else if (offset == csr::scu_ctrl_3->offset) {
        const auto force = csr::force_sleep.get(word);
        std::uint64_t state = csr::power_state.get(value(csr::scu_ctrl_3));
        if (force == csr::sleep) state = csr::sleeping;
        if (force == csr::wake) state = csr::running;
        word = csr::power_state.set(word, state);
        if (state == csr::sleeping) sleep();
    }
    values_[offset] = word;
}

bool StickRegisters::engines_run() const {
    const auto runs = [&](const RegisterInfo* control) {
        const std::uint64_t command = value(control);
        return command == csr::run || (control == csr::scalar_core_run_control &&
                                       (command == csr::halt || command == csr::single_step));
    };
    return awake() && std::ranges::all_of(csr::core_run_controls, runs);
}

bool StickRegisters::multiple_endpoints() const {
    return csr::multiple_endpoints.get(value(csr::multi_bo_ep)) != 0;
}

std::size_t StickRegisters::output_chunk() const {
    constexpr std::size_t unit = 8;
    return std::max<std::size_t>(value(csr::outfeed_chunk_length) * unit, unit);
}

bool StickRegisters::reports(Tag tag) const {
    return (value(csr::descr_ep) >> static_cast<unsigned>(tag) & 1U) != 0;
}

}  // namespace reef::edgetpu::usb
