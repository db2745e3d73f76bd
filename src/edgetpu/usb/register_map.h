// Registers and their fields by the names of spec/edgetpu/registers.xml, looked up by the compiler.
#pragma once

#include <cstdint>
#include <string_view>

#include "reef/edgetpu/registers.h"
#include "reef_spec/edgetpu_registers.h"

namespace reef::edgetpu::usb {

/// The register of that name in that group (without "CsrOffsets"); does not compile without one.
consteval const RegisterInfo* register_named(std::string_view group, std::string_view name) {
    for (const RegisterInfo& info : spec::registers) {
        if (info.name == name && info.group.starts_with(group) &&
            info.group.substr(group.size()) == "CsrOffsets") {
            return &info;
        }
    }
    throw "no such register";
}

struct FieldBits {
    std::uint64_t mask = 0;
    unsigned position = 0;
    [[nodiscard]] constexpr std::uint64_t get(std::uint64_t word) const {
        return (word & mask) >> position;
    }
    [[nodiscard]] constexpr std::uint64_t set(std::uint64_t word, std::uint64_t value) const {
        return (word & ~mask) | (value << position & mask);
    }
};

consteval FieldBits field_named(const RegisterInfo* info, std::string_view name) {
    for (const RegisterField& field : info->fields) {
        if (field.name == name) {
            return {((std::uint64_t{1} << field.width) - 1) << field.position, field.position};
        }
    }
    throw "no such field";
}

namespace csr {
inline constexpr const RegisterInfo
    *scu_ctrl_0 = register_named("Scu", "scu_ctrl_0"),
    *scu_ctrl_2 = register_named("Scu", "scu_ctrl_2"),
    *scu_ctrl_3 = register_named("Scu", "scu_ctrl_3"),
    *scu_ctr_7 = register_named("Scu", "scu_ctr_7"),
    *gcbb_credit0 = register_named("CbBridge", "gcbb_credit0"),
    *idle = register_named("Misc", "idleRegister"),
    *tileconfig0 = register_named("TileConfig", "tileconfig0"),
    *deep_sleep = register_named("Tile", "deepSleep"), *omc0_00 = register_named("Apex", "omc0_00"),
    *omc0_d4 = register_named("Apex", "omc0_d4"), *omc0_d8 = register_named("Apex", "omc0_d8"),
    *omc0_dc = register_named("Apex", "omc0_dc"),
    *rambist_ctrl_1 = register_named("Apex", "rambist_ctrl_1"),
    *slv_abm_en = register_named("Apex", "slv_abm_en"),
    *mst_abm_en = register_named("Apex", "mst_abm_en"),
    *slv_err_resp_isr_mask = register_named("Apex", "slv_err_resp_isr_mask"),
    *mst_err_resp_isr_mask = register_named("Apex", "mst_err_resp_isr_mask"),
    *descr_ep = register_named("Usb", "descr_ep"),
    *multi_bo_ep = register_named("Usb", "multi_bo_ep"),
    *ep_status_credit = register_named("Usb", "ep_status_credit"),
    *outfeed_chunk_length = register_named("Usb", "outfeed_chunk_length"),
    *fatal_err_int_control = register_named("UsbFatalErrIntInterrupt", "fatal_err_int_control"),
    *scalar_core_run_control = register_named("ScalarcoreBreakpoint", "scalarCoreRunControl"),
    *scalar_core_break_point = register_named("ScalarcoreBreakpoint", "scalarCoreBreakPoint"),
    *scalar_core_run_status = register_named("ScalarcoreBreakpoint", "scalarCoreRunStatus"),
    *current_pc = register_named("DebugScalarCore", "currentPc"),
    *scalar_register_file = register_named("ScalarRegisterFile", "scalarRegisterFile"),
    *predicate_register_file = register_named("PredicateRegisterFile", "predicateRegisterFile");

/// Interrupts 0 to 3, as the interrupt endpoint and the events report them.
inline constexpr const RegisterInfo* top_level_int_control[] = {
    register_named("UsbTopLevelInt0Interrupt", "top_level_int_0_control"),
    register_named("UsbTopLevelInt1Interrupt", "top_level_int_1_control"),
    register_named("UsbTopLevelInt2Interrupt", "top_level_int_2_control"),
    register_named("UsbTopLevelInt3Interrupt", "top_level_int_3_control"),
};

/// As scalar_counter of the instruction set.
inline constexpr const RegisterInfo* core_counters[] = {
    register_named("AvdataPopSyncFlag", "SyncCounter_AVDATA_POP"),
    register_named("ParameterPopSyncFlag", "SyncCounter_PARAMETER_POP"),
    register_named("AvdataInfeedSyncFlag", "SyncCounter_AVDATA_INFEED"),
    register_named("ParameterInfeedSyncFlag", "SyncCounter_PARAMETER_INFEED"),
    register_named("ScalarInfeedSyncFlag", "SyncCounter_SCALAR_INFEED"),
    register_named("ProducerASyncFlag", "SyncCounter_PRODUCER_A"),
    register_named("ProducerBSyncFlag", "SyncCounter_PRODUCER_B"),
    register_named("RingOutfeedSyncFlag", "SyncCounter_RING_OUTFEED"),
    register_named("ScalarPipelineSyncFlag", "SyncCounter_SCALAR_PIPELINE")};

/// The engines of the scalar core and, by tileconfig0's broadcast, of all tiles; in the order in
/// which the vendor's driver starts and halts them.
inline constexpr const RegisterInfo* core_run_controls[] = {
    scalar_core_run_control,
    register_named("AvdatapopBreakpoint", "avDataPopRunControl"),
    register_named("ParameterpopBreakpoint", "parameterPopRunControl"),
    register_named("InfeedBreakpoint", "infeedRunControl"),
    register_named("OutfeedBreakpoint", "outfeedRunControl"),
};
inline constexpr const RegisterInfo* tile_run_controls[] = {
    register_named("Tile", "opRunControl"),
    register_named("Tile", "narrowToWideRunControl"),
    register_named("Tile", "wideToNarrowRunControl"),
    register_named("Tile", "meshBus0RunControl"),
    register_named("Tile", "meshBus1RunControl"),
    register_named("Tile", "meshBus2RunControl"),
    register_named("Tile", "meshBus3RunControl"),
    register_named("Tile", "ringBusConsumer0RunControl"),
    register_named("Tile", "ringBusConsumer1RunControl"),
    register_named("Tile", "ringBusProducerRunControl"),
};

inline constexpr FieldBits force_sleep = field_named(scu_ctrl_3, "rg_force_sleep"),
                           power_state = field_named(scu_ctrl_3, "cur_pwr_state"),
                           cur_gated_gcb = field_named(scu_ctrl_3, "cur_gated_gcb"),
                           cur_rst_gcb = field_named(scu_ctrl_3, "cur_rst_gcb"),
                           cur_gcb_sram_sd = field_named(scu_ctrl_3, "cur_gcb_sram_sd"),
                           gcb_clkdiv = field_named(scu_ctrl_3, "rg_gcb_clkdiv"),
                           axi_clk_125m = field_named(scu_ctrl_3, "rg_axi_clk_125m"),
                           cpu_clk_250m = field_named(scu_ctrl_3, "rg_8051_clk_250m"),
                           pcie_inactive_phy_mode =
                               field_named(scu_ctrl_0, "rg_pcie_inact_phy_mode"),
                           usb_inactive_phy_mode = field_named(scu_ctrl_0, "rg_usb_inact_phy_mode"),
                           gated_gcb = field_named(scu_ctrl_2, "rg_gated_gcb"),
                           test_reg0 = field_named(omc0_00, "test_reg0"),
                           thermal_warning_on = field_named(omc0_d4, "thm_warn_en"),
                           thermal_shutdown_on = field_named(omc0_d8, "sd_en"),
                           thermal_sensor_on = field_named(omc0_dc, "enthmc"),
                           thermal_adc = field_named(omc0_dc, "adc"),
                           memory_test_mask = field_named(rambist_ctrl_1, "rg_mbist_int_mask"),
                           boot_failure_mask = field_named(scu_ctr_7, "rg_boot_failure_mask"),
                           multiple_endpoints = field_named(multi_bo_ep, "multiple"),
                           instruction_credit = field_named(ep_status_credit, "instructions"),
                           input_credit = field_named(ep_status_credit, "input_activations"),
                           parameter_credit = field_named(ep_status_credit, "parameters");

/// The three dividers of scu_ctrl_3 together: values of the enumeration `performance`.
inline constexpr FieldBits clock_dividers = {
    gcb_clkdiv.mask | axi_clk_125m.mask | cpu_clk_250m.mask, gcb_clkdiv.position};

inline constexpr std::uint64_t sleep = 3, wake = 2;                 ///< of force_sleep
inline constexpr std::uint64_t running = 0, sleeping = 2;           ///< of power_state
inline constexpr std::uint64_t gated_by_hardware = 1;               ///< of gated_gcb
inline constexpr std::uint64_t run = 1, halt = 2, single_step = 3;  ///< of run controls
/// Of run statuses.
inline constexpr std::uint64_t is_idle = 0, is_running = 1, is_stepping = 2, is_halting = 3,
                               is_halted = 4;
}  // namespace csr

}  // namespace reef::edgetpu::usb
