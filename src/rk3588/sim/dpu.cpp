#include "rk3588/sim/dpu.h"

#include <fmt/format.h>

#include "rk3588/sim/arithmetic.h"
#include "rk3588/sim/dpu_stages.h"
#include "rk3588/sim/dpu_writer.h"

namespace reef::rk3588::sim {
namespace {

std::unexpected<Error> refused_by_dpu(std::string what, Cause cause = Cause::unsupported) {
    return fail(cause, std::move(what), "DPU");
}

/// Sums of products, corrected by the weights' zero point and shifted as CORE says.
Status correct_sums(WatchedRegisters& r, bool depthwise, Sums& sums) {
    const bool bypass = r.flag<"DPU_BS_OW_CFG.OD_BYPASS">();
    const auto factor = r.get_signed<"DPU_BS_OW_OP.OW_OP">();
    const auto shift = r.get<"CORE_CLIP_TRUNCATE.CLIP_TRUNCATE">();
    const auto rounding =
        r.flag<"CORE_CLIP_TRUNCATE.ROUND_TYPE">() ? Rounding::half_away : Rounding::half_to_even;
    if (sums.elements == Elements::fp16) {
        if (shift != 0) return refused_by_dpu("CLIP_TRUNCATE of fp16 is not modelled");
        if (!bypass && factor != 0) return refused_by_dpu("a correction of fp16 is not modelled");
        return {};
    }
    const bool correct = !bypass && !sums.feature_sums.empty() && factor != 0;
    if (!correct && shift == 0) return {};
    for (std::size_t p = 0; p < sums.pixels(); ++p)
        for (unsigned c = 0; c < sums.channels; ++c) {
            std::int32_t& sum = sums.integers[p * sums.channels + c];
            std::int64_t value = sum;
            if (correct)
                value +=
                    std::int64_t{factor} * sums.feature_sums[depthwise ? p * sums.channels + c : p];
            sum = saturated32(shifted(value, shift, rounding));
        }
    return {};
}

/// What words write into the tables has been loaded, and what they read nobody sees.
void ignore_table_access(WatchedRegisters& r) {
    r.without_effect<"DPU_LUT_ACCESS_CFG", "DPU_LUT_ACCESS_DATA">();
}

}  // namespace

Result<DpuShape> read_dpu_shape(WatchedRegisters& r) {
    DpuShape shape;
    shape.elements = REEF_TRY(
        elements_of(r.get<"DPU_DATA_FORMAT.PROC_PRECISION">(), "DPU_DATA_FORMAT.PROC_PRECISION"));
    if (REEF_TRY(elements_of(r.get<"DPU_DATA_FORMAT.IN_PRECISION">(),
                             "DPU_DATA_FORMAT.IN_PRECISION")) != shape.elements)
        return refused_by_dpu("IN_PRECISION and PROC_PRECISION differ");
    shape.width = r.get<"DPU_DATA_CUBE_WIDTH.WIDTH">() + 1;
    shape.height = r.get<"DPU_DATA_CUBE_HEIGHT.HEIGHT">() + 1;
    shape.channels = r.get<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">() + 1;
    shape.flying = r.flag<"DPU_FEATURE_MODE_CFG.FLYING_MODE">();
    const auto mode = r.get<"DPU_FEATURE_MODE_CFG.CONV_MODE">();
    shape.depthwise = mode == spec::value::conv_mode::depthwise_;
    if (!shape.depthwise && mode != spec::value::conv_mode::direct_)
        return refused_by_dpu(fmt::format("CONV_MODE {} has no known meaning", mode));
    if (r.get<"DPU_FEATURE_MODE_CFG.OUTPUT_MODE">() != 2)
        return refused_by_dpu("results that do not go to memory alone (OUTPUT_MODE)");
    const auto channel = r.get<"DPU_DATA_CUBE_CHANNEL.CHANNEL">();
    if (r.get<"DPU_WDMA_SIZE_0.CHANNEL_WDMA">() != channel ||
        r.get<"DPU_WDMA_SIZE_1.WIDTH_WDMA">() + 1 != shape.width ||
        r.get<"DPU_WDMA_SIZE_1.HEIGHT_WDMA">() + 1 != shape.height || channel + 1 < shape.channels)
        return refused_by_dpu("WDMA_SIZE is not the size of the cube", Cause::bad_input);
    if (channel >= shape.channels + spec::depthwise_channel_step)
        return refused_by_dpu("CHANNEL is more than a step of the arrays beyond ORIG_CHANNEL",
                              Cause::bad_input);
    shape.element_wise = !r.flag<"DPU_EW_CFG.EW_BYPASS">() &&
                         !r.flag<"DPU_EW_CFG.EW_OP_BYPASS">() && r.flag<"DPU_EW_CFG.EW_OP_SRC">();
    shape.made_channels = channel + 1;
    r.only_time<"DPU_FEATURE_MODE_CFG.BURST_LEN">();
    r.without_effect<"DPU_S_POINTER">();
    return shape;
}

Status run_dpu(WatchedRegisters& r, const DpuShape& shape, Sums sums, const Operands& operands,
               bool core, const FunctionTables& tables, const Switches& switches, Memory& memory,
               Traffic& traffic) {
    if (sums.width != shape.width || sums.height != shape.height || sums.channels < shape.channels)
        return refused_by_dpu(
            fmt::format("a cube of {} x {} x {}, its data have {} x {} x {}", shape.width,
                        shape.height, shape.channels, sums.width, sums.height, sums.channels),
            Cause::bad_input);
    if (sums.elements != shape.elements)
        return refused_by_dpu("PROC_PRECISION is not CORE's", Cause::bad_input);
    if (core) {
        REEF_CHECK(correct_sums(r, shape.depthwise, sums));
    } else {
        r.without_effect<"DPU_BS_OW_OP">();
        r.fields_without_effect<"DPU_BS_OW_CFG.OD_BYPASS">();
    }
    ignore_table_access(r);
    REEF_CHECK(run_stages(r, shape, operands, tables, switches, sums));
    return write_results(r, shape, sums, switches, memory, traffic);
}

}  // namespace reef::rk3588::sim
