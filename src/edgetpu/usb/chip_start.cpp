// Start and stop of the chip: the phases of the vendor's driver. Source of the order and values:
// its traffic with a stick (data of a real one agrees with it in every write).
#include "edgetpu/usb/link.h"
#include "edgetpu/usb/register_map.h"

namespace reef::edgetpu::usb {
namespace {

std::uint64_t dividers_of(Performance performance) {
    namespace level = spec::value::performance;
    switch (performance) {
        case Performance::low:
            return level::low_;
        case Performance::medium:
            return level::medium_;
        case Performance::high:
            return level::high_;
        case Performance::max:
            break;
    }
    return level::max_;
}

/// Selects all 16 tiles for the registers of the tiles.
constexpr std::uint64_t every_tile = 0x7f;
/// Cycles until tiles sleep and wake.
constexpr std::uint64_t deep_sleep_delays = 0x1e02;
/// descr_ep, a bit for each tag.
constexpr std::uint64_t interrupt_events = 0xf0, all_events = 0xff;
constexpr std::uint64_t all_credits = 0xf;

constexpr std::size_t chunk_unit = 8;  ///< bytes, of outfeed_chunk_length
/// With a longer request on USB 2 or a shorter one on USB 3 the device overruns it.
constexpr std::size_t usb3_chunk = 1024, usb2_chunk = 256, usb3_request = 32768;

Status pulse_credits(Link& link) {
    REEF_CHECK(link.write(csr::gcbb_credit0, all_credits));
    return link.write(csr::gcbb_credit0, 0);
}

Status enable_reset(Link& link) {
    link.phase("enable reset");
    const std::uint64_t word = REEF_TRY(link.read(csr::scu_ctrl_3));
    if (csr::force_sleep.get(word) == csr::sleep) return {};
    REEF_CHECK(link.write(csr::scu_ctrl_3, csr::force_sleep.set(word, csr::sleep)));
    REEF_CHECK(
        link.poll(csr::scu_ctrl_3, csr::power_state.mask, csr::power_state.set(0, csr::sleeping)));
    return pulse_credits(link);
}

Status quit_reset(Link& link, Performance performance) {
    link.phase("quit reset");
    std::uint64_t word = REEF_TRY(link.read(csr::scu_ctrl_3));
    word = csr::force_sleep.set(word, csr::wake);
    word = csr::clock_dividers.set(word, dividers_of(performance));
    REEF_CHECK(link.write(csr::scu_ctrl_3, word));
    REEF_CHECK(
        link.poll(csr::scu_ctrl_3, csr::power_state.mask, csr::power_state.set(0, csr::running)));
    REEF_CHECK(link.poll(csr::scalar_core_run_control, ~std::uint64_t{0}, 0));
    REEF_CHECK(link.write(csr::idle, 1));
    REEF_CHECK(link.write(csr::tileconfig0, every_tile));
    REEF_CHECK(link.poll(csr::tileconfig0, ~std::uint64_t{0}, every_tile));
    return link.write(csr::deep_sleep, deep_sleep_delays);
}

Status enable_hardware_clock_gate(Link& link) {
    link.phase("enable hardware clock gate");
    const std::uint64_t word = REEF_TRY(link.read(csr::scu_ctrl_2));
    return link.write(csr::scu_ctrl_2, csr::gated_gcb.set(word, csr::gated_by_hardware));
}

Status initialise_chip(Link& link, Speed speed, Endpoints endpoints) {
    link.phase("initialise chip");
    REEF_CHECK(link.read(csr::omc0_00));
    REEF_CHECK(report_descriptors(link, false));
    REEF_CHECK(link.write(csr::multi_bo_ep, csr::multiple_endpoints.set(
                                                0, endpoints == Endpoints::multiple ? 1 : 0)));
    const std::size_t chunk =
        speed == Speed::high || speed == Speed::full ? usb2_chunk : usb3_chunk;
    return link.write(csr::outfeed_chunk_length, chunk / chunk_unit);
}

Status run_controls(Link& link, std::uint64_t command) {
    link.phase(command == csr::run ? "run controls" : "halt");
    for (const auto* control : csr::core_run_controls) REEF_CHECK(link.write(control, command));
    REEF_CHECK(link.write(csr::tileconfig0, every_tile));
    REEF_CHECK(link.poll(csr::tileconfig0, ~std::uint64_t{0}, every_tile));
    for (const auto* control : csr::tile_run_controls) REEF_CHECK(link.write(control, command));
    return {};
}

Status interrupts(Link& link, bool on) {
    for (const auto* control : csr::top_level_int_control) REEF_CHECK(link.write(control, on));
    return {};
}

Status change(Link& link, const RegisterInfo* info, FieldBits field, std::uint64_t value) {
    const std::uint64_t word = REEF_TRY(link.read(info));
    return link.write(info, field.set(word, value));
}

/// What belongs to a running chip beyond the engines; the other way round when it stops.
Status miscellany(Link& link, bool on) {
    link.phase("miscellaneous");
    REEF_CHECK(change(link, csr::omc0_d4, csr::thermal_warning_on, on));
    REEF_CHECK(change(link, csr::rambist_ctrl_1, csr::memory_test_mask, on ? 0 : 7));
    REEF_CHECK(change(link, csr::scu_ctr_7, csr::boot_failure_mask, on ? 0 : 3));
    REEF_CHECK(link.write(csr::slv_abm_en, on));
    REEF_CHECK(link.write(csr::mst_abm_en, on));
    REEF_CHECK(link.write(csr::slv_err_resp_isr_mask, on ? 3 : 0));
    REEF_CHECK(link.write(csr::mst_err_resp_isr_mask, on ? 3 : 0));
    return change(link, csr::omc0_d8, csr::thermal_shutdown_on, on);
}

}  // namespace

Status report_descriptors(Link& link, bool all) {
    return link.write(csr::descr_ep, all ? all_events : interrupt_events);
}

std::size_t output_request_bytes(Speed speed) {
    return speed == Speed::high || speed == Speed::full ? usb2_chunk : usb3_request;
}

Status start_chip(Link& link, Speed speed, Performance performance, Endpoints endpoints) {
    link.phase("open");
    std::uint64_t word = REEF_TRY(link.read(csr::scu_ctrl_0));
    word = csr::pcie_inactive_phy_mode.set(word, 0);
    word = csr::usb_inactive_phy_mode.set(word, 0);
    REEF_CHECK(link.write(csr::scu_ctrl_0, word));
    REEF_CHECK(link.read(csr::scu_ctrl_2));
    REEF_CHECK(enable_reset(link));
    REEF_CHECK(quit_reset(link, performance));
    REEF_CHECK(enable_hardware_clock_gate(link));
    REEF_CHECK(initialise_chip(link, speed, endpoints));
    REEF_CHECK(run_controls(link, csr::run));
    link.phase("interrupts");
    REEF_CHECK(link.write(csr::fatal_err_int_control, 1));
    REEF_CHECK(interrupts(link, true));
    return miscellany(link, true);
}

Status stop_chip(Link& link) {
    link.phase("stop");
    REEF_CHECK(interrupts(link, false));
    REEF_CHECK(miscellany(link, false));
    REEF_CHECK(link.write(csr::fatal_err_int_control, 0));
    REEF_CHECK(run_controls(link, csr::halt));
    return enable_reset(link);
}

}  // namespace reef::edgetpu::usb
