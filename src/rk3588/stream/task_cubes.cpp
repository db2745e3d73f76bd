#include "rk3588/stream/task_cubes.h"

#include <algorithm>

#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

constexpr std::uint64_t atom = spec::atom_bytes;

std::uint64_t surfaces_of(std::uint64_t channels, std::uint64_t element) {
    return (channels * element + atom - 1) / atom;
}

CubeWalk features_of(const RegisterSet& r) {
    CubeWalk walk;
    const std::uint64_t width = r.get<"CNA_FC_DATA_SIZE0.DMA_WIDTH">();
    const std::uint64_t group =
        r.get<"CNA_CONV_CON1.GROUP_LINE_OFF">() != 0 ? 1 : spec::grouped_lines;
    walk.first = r.get<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">();
    walk.surfaces = surfaces_of(r.get<"CNA_DATA_SIZE1.DATAIN_CHANNEL">(),
                                bytes_of_element(r.get<"CNA_CONV_CON1.PROC_PRECISION">()));
    // Signed: the rows that are fetched together may be more than the image has.
    walk.surface_pitch = static_cast<std::uint64_t>(r.get_signed<"CNA_DMA_CON2.SURF_STRIDE">() +
                                                    static_cast<std::int64_t>(group * width)) *
                         atom;
    walk.rows = r.get<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">();
    walk.row_pitch = r.get<"CNA_DMA_CON1.LINE_STRIDE">() / group * atom;
    walk.row_bytes = width * atom;
    return walk;
}

/// What the DPU writes, and reads without CORE: rows behind each other but for a notch.
CubeWalk results_of(const RegisterSet& r) {
    CubeWalk walk{.role = CubeRole::results};
    const std::uint64_t width = r.get<"DPU_DATA_CUBE_WIDTH.WIDTH">() + std::uint64_t{1};
    walk.first = r.get<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">();
    walk.surfaces = surfaces_of(r.get<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">() + std::uint64_t{1},
                                bytes_of_element(r.get<"DPU_DATA_FORMAT.OUT_PRECISION">()));
    walk.surface_pitch = r.get<"DPU_DST_SURF_STRIDE.DST_SURF_STRIDE">() * atom;
    walk.rows = r.get<"DPU_DATA_CUBE_HEIGHT.HEIGHT">() + std::uint64_t{1};
    walk.row_pitch = (width + r.get<"DPU_DATA_CUBE_NOTCH_ADDR.NOTCH_ADDR_0">()) * atom;
    walk.row_bytes = width * atom;
    return walk;
}

/// Operands have the results' pixels, without gaps between rows.
void add_operands(const RegisterSet& r, const CubeWalk& results, std::vector<CubeWalk>& cubes) {
    const bool flying = r.get<"DPU_RDMA_FEATURE_MODE_CFG.FLYING_MODE">() != 0;
    const bool second = r.get<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">() == 0;
    CubeWalk main = results;
    main.role = CubeRole::operand;
    main.first = r.get<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">();
    main.surfaces = surfaces_of(r.get<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">() + std::uint64_t{1},
                                bytes_of_element(r.get<"DPU_DATA_FORMAT.PROC_PRECISION">()));
    main.row_pitch = main.row_bytes;
    const std::uint64_t surface = main.rows * main.row_bytes;
    main.surface_pitch = surface + r.get<"DPU_RDMA_SURF_NOTCH.SURF_NOTCH_ADDR">() * atom;
    CubeWalk other = main;
    other.first = r.get<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">();
    if (flying) {
        cubes.push_back(main);
        other.surface_pitch = r.get<"DPU_RDMA_EW_SURF_STRIDE.EW_SURF_STRIDE">() * atom;
        if (second) cubes.push_back(other);
    } else if (second) {
        // Both readers share the operand of CORE's sums: even surfaces and odd ones.
        other.surfaces = main.surfaces / 2;
        main.surfaces -= other.surfaces;
        cubes.push_back(main);
        cubes.push_back(other);
    }
}

void add_pool(const RegisterSet& r, std::vector<CubeWalk>& cubes) {
    const std::uint64_t element = bytes_of_element(r.get<"PPU_DATA_FORMAT.PROC_PRECISION">());
    CubeWalk in{.role = CubeRole::operand}, out{.role = CubeRole::results};
    in.surfaces = out.surfaces = surfaces_of(
        r.get<"PPU_DATA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">() + std::uint64_t{1}, element);
    in.first = r.get<"PPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">();
    in.surface_pitch = r.get<"PPU_RDMA_SRC_SURF_STRIDE.SRC_SURF_STRIDE">() * atom;
    in.rows = r.get<"PPU_DATA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">() + std::uint64_t{1};
    in.row_pitch = r.get<"PPU_RDMA_SRC_LINE_STRIDE.SRC_LINE_STRIDE">() * atom;
    in.row_bytes = (r.get<"PPU_DATA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">() + std::uint64_t{1}) * atom;
    out.first = r.get<"PPU_DST_BASE_ADDR.DST_BASE_ADDR">() * atom;
    out.surface_pitch = r.get<"PPU_DST_SURF_STRIDE.DST_SURF_STRIDE">() * atom;
    out.rows = r.get<"PPU_DATA_CUBE_OUT_HEIGHT.CUBE_OUT_HEIGHT">() + std::uint64_t{1};
    out.row_bytes = (r.get<"PPU_DATA_CUBE_OUT_WIDTH.CUBE_OUT_WIDTH">() + std::uint64_t{1}) * atom;
    out.row_pitch = out.row_bytes + r.get<"PPU_OPERATION_MODE_CFG.NOTCH_ADDR">() * atom;
    cubes.push_back(in);
    cubes.push_back(out);
}

}  // namespace

std::uint64_t bytes_of_element(std::uint32_t precision) {
    using namespace spec::value::precision;
    if (precision == int32_ || precision == fp32_) return 4;
    return precision == int8_ ? 1 : 2;
}

std::uint32_t packed_channels(const RegisterSet& registers) {
    constexpr std::uint32_t before_first = 7;
    const std::uint32_t packed = registers.get<"CNA_CONV_CON1.ARGB_IN">();
    return packed > before_first ? packed - before_first : 0;
}

std::uint64_t CubeWalk::bytes_below(std::uint64_t end) const {
    std::uint64_t sum = 0;
    const auto add = [&](std::uint64_t begin, std::uint64_t size) {
        sum += begin >= end ? 0 : std::min(size, end - begin);
    };
    for (std::uint64_t s = 0; s < surfaces; ++s) {
        const std::uint64_t surface = first + s * surface_pitch;
        if (row_pitch == row_bytes)
            add(surface, rows * row_bytes);
        else
            for (std::uint64_t y = 0; y < rows; ++y) add(surface + y * row_pitch, row_bytes);
    }
    return sum;
}

std::vector<CubeWalk> cubes_of(const Task& task) {
    std::vector<CubeWalk> cubes;
    const RegisterSet& r = task.registers;
    if ((task.blocks & Blocks::cna) != 0 && packed_channels(r) == 0)
        cubes.push_back(features_of(r));
    if ((task.blocks & Blocks::dpu) != 0) {
        cubes.push_back(results_of(r));
        if ((task.blocks & Blocks::dpu_rdma) != 0) add_operands(r, results_of(r), cubes);
    }
    if ((task.blocks & Blocks::ppu) != 0) add_pool(r, cubes);
    return cubes;
}

}  // namespace reef::rk3588
