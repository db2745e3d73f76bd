#include "rk3588/sim/ppu.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "rk3588/sim/arithmetic.h"
#include "rk3588/sim/task_data.h"

namespace reef::rk3588::sim {
namespace {

std::unexpected<Error> refused_by_ppu(std::string what, Cause cause = Cause::unsupported) {
    return fail(cause, std::move(what), "PPU");
}

struct Pooling {
    Elements elements = Elements::int8;
    std::uint32_t method = 0;
    unsigned width = 0, height = 0, channels = 0;
    unsigned out_width = 0, out_height = 0;
    unsigned kernel_width = 0, kernel_height = 0, stride_x = 0, stride_y = 0;
    unsigned left = 0, top = 0, right = 0, bottom = 0;
    std::uint32_t pad_value = 0;
    std::uint32_t recip_width = 0, recip_height = 0;
    std::uint64_t source = 0, source_line = 0, source_surface = 0;
    std::uint64_t target = 0, target_surface = 0, target_line = 0;
};

// clang-format off
Pooling read_sizes(WatchedRegisters& r) {
    Pooling p;
    p.width = r.get<"PPU_DATA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">() + 1;
    p.height = r.get<"PPU_DATA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">() + 1;
    p.channels = r.get<"PPU_DATA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">() + 1;
    p.out_width = r.get<"PPU_DATA_CUBE_OUT_WIDTH.CUBE_OUT_WIDTH">() + 1;
    p.out_height = r.get<"PPU_DATA_CUBE_OUT_HEIGHT.CUBE_OUT_HEIGHT">() + 1;
    p.kernel_width = r.get<"PPU_POOLING_KERNEL_CFG.KERNEL_WIDTH">() + 1;
    p.kernel_height = r.get<"PPU_POOLING_KERNEL_CFG.KERNEL_HEIGHT">() + 1;
    p.stride_x = r.get<"PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_WIDTH">() + 1;
    p.stride_y = r.get<"PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_HEIGHT">() + 1;
    p.left = r.get<"PPU_POOLING_PADDING_CFG.PAD_LEFT">();
    p.top = r.get<"PPU_POOLING_PADDING_CFG.PAD_TOP">();
    p.right = r.get<"PPU_POOLING_PADDING_CFG.PAD_RIGHT">();
    p.bottom = r.get<"PPU_POOLING_PADDING_CFG.PAD_BOTTOM">();
    p.pad_value = r.get<"PPU_PADDING_VALUE_1_CFG.PAD_VALUE_0">();
    p.method = r.get<"PPU_OPERATION_MODE_CFG.POOLING_METHOD">();
    p.recip_width = r.get<"PPU_RECIP_KERNEL_WIDTH.RECIP_KERNEL_WIDTH">();
    p.recip_height = r.get<"PPU_RECIP_KERNEL_HEIGHT.RECIP_KERNEL_HEIGHT">();
    constexpr std::uint64_t unit = spec::atom_bytes;
    p.source = r.get<"PPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">();
    p.source_line = r.get<"PPU_RDMA_SRC_LINE_STRIDE.SRC_LINE_STRIDE">() * unit;
    p.source_surface = r.get<"PPU_RDMA_SRC_SURF_STRIDE.SRC_SURF_STRIDE">() * unit;
    p.target = r.get<"PPU_DST_BASE_ADDR.DST_BASE_ADDR">() * unit;
    p.target_surface = r.get<"PPU_DST_SURF_STRIDE.DST_SURF_STRIDE">() * unit;
    p.target_line = (p.out_width + r.get<"PPU_OPERATION_MODE_CFG.NOTCH_ADDR">()) * unit;
    return p;
}
// clang-format on

Status check_pooling(WatchedRegisters& r, const Pooling& p) {
    if (!r.flag<"PPU_OPERATION_MODE_CFG.FLYING_MODE">())
        return refused_by_ppu("an input from the DPU is not modelled (FLYING_MODE)");
    if (r.get<"PPU_RDMA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">() + 1 != p.width ||
        r.get<"PPU_RDMA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">() + 1 != p.height ||
        r.get<"PPU_RDMA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">() + 1 != p.channels ||
        r.get<"PPU_DATA_CUBE_OUT_CHANNEL.CUBE_OUT_CHANNEL">() + 1 != p.channels)
        return refused_by_ppu("PPU and PPU_RDMA have different cubes", Cause::bad_input);
    const auto size = p.elements == Elements::int8 ? spec::value::element_size::bits_8_
                                                   : spec::value::element_size::bits_16_;
    if (r.get<"PPU_RDMA_DATA_FORMAT.IN_PRECISION">() != size)
        return refused_by_ppu("IN_PRECISION is not the size of PROC_PRECISION", Cause::bad_input);
    if ((p.out_width - 1) * p.stride_x + p.kernel_width > p.width + p.left + p.right ||
        (p.out_height - 1) * p.stride_y + p.kernel_height > p.height + p.top + p.bottom)
        return refused_by_ppu("windows leave the padded input: a real chip hangs",
                              Cause::bad_input);
    if (p.method > spec::value::pooling::min_)
        return refused_by_ppu("POOLING_METHOD 3 has no known meaning");
    if (r.get<"PPU_DATA_FORMAT.INDEX_ADD">() * spec::atom_bytes != p.target_surface)
        return refused_by_ppu("INDEX_ADD is not DST_SURF_STRIDE");
    const bool padded = (p.left | p.top | p.right | p.bottom) != 0;
    if (padded && p.method == spec::value::pooling::average_ && p.pad_value != 0)
        return refused_by_ppu("an average over padding that is not 0 is not modelled");
    if (r.get<"PPU_PADDING_VALUE_2_CFG.PAD_VALUE_1">() != 0)
        return refused_by_ppu("PAD_VALUE_1 is not modelled");
    r.only_time<"PPU_MISC_CTRL.BURST_LEN">();
    r.without_effect<"PPU_S_POINTER", "PPU_RDMA_S_POINTER">();
    return {};
}

float lane_of(const std::byte* atom, unsigned lane, Elements elements) {
    if (elements == Elements::int8) return static_cast<std::int8_t>(atom[lane]);
    std::uint16_t half;
    std::memcpy(&half, atom + 2 * lane, sizeof half);
    return float_of_half(half);
}

float pad_of(const Pooling& p) {
    if (p.elements == Elements::fp16) return float_of_half(static_cast<std::uint16_t>(p.pad_value));
    // 19 bits with a sign.
    return static_cast<float>(static_cast<std::int32_t>(p.pad_value << 13) >> 13);
}

/// int8 values and their sums over 256 of them are exact in binary32.
float average_of(const Pooling& p, float sum, const Switches& switches) {
    if (p.elements == Elements::fp16) {
        const float width = float_of_half(static_cast<std::uint16_t>(p.recip_width));
        const float height = float_of_half(static_cast<std::uint16_t>(p.recip_height));
        return sum * width * height * 0x1p-32F;
    }
    const std::int64_t product =
        static_cast<std::int64_t>(sum) *
        static_cast<std::int64_t>(std::uint64_t{p.recip_width} * p.recip_height);
    const bool down = switches.average_rounding == Switches::AverageRounding::down;
    return static_cast<float>(down ? product >> 32 : shifted(product, 32, Rounding::half_to_even));
}

/// One surface of the padded input, [row][pixel][lane].
struct PaddedSurface {
    unsigned width = 0;
    unsigned lanes = 0;
    std::vector<float> values;
    [[nodiscard]] const float* at(unsigned x, unsigned y) const {
        return values.data() + (std::size_t{y} * width + x) * lanes;
    }
};

Result<PaddedSurface> read_surface(const Pooling& p, unsigned surface, const Memory& memory,
                                   Traffic& traffic) {
    // The rows are in memory before room is made for them.
    for (unsigned y = 0; y < p.height; ++y)
        REEF_TRY(memory.read(p.source + surface * p.source_surface + y * p.source_line,
                             std::uint64_t{p.width} * spec::atom_bytes, "PPU_RDMA: input"));
    PaddedSurface out;
    out.lanes = lanes_of_atom(p.elements);
    out.width = p.width + p.left + p.right;
    out.values.assign(std::size_t{out.width} * (p.height + p.top + p.bottom) * out.lanes,
                      pad_of(p));
    const std::uint64_t size = std::uint64_t{p.width} * spec::atom_bytes;
    for (unsigned y = 0; y < p.height; ++y) {
        const Bytes row = REEF_TRY(memory.read(
            p.source + surface * p.source_surface + y * p.source_line, size, "PPU_RDMA: input"));
        traffic.operands += size;
        float* to = out.values.data() + (std::size_t{y + p.top} * out.width + p.left) * out.lanes;
        for (unsigned i = 0; i < p.width * out.lanes; ++i)
            to[i] = lane_of(row.data() + std::size_t{i / out.lanes} * spec::atom_bytes,
                            i % out.lanes, p.elements);
    }
    return out;
}

float pooled(const Pooling& p, const PaddedSurface& in, unsigned x, unsigned y, unsigned lane,
             const Switches& switches) {
    using namespace spec::value::pooling;
    float value = p.method == average_ ? 0 : in.at(x * p.stride_x, y * p.stride_y)[lane];
    for (unsigned ky = 0; ky < p.kernel_height; ++ky)
        for (unsigned kx = 0; kx < p.kernel_width; ++kx) {
            const float next = in.at(x * p.stride_x + kx, y * p.stride_y + ky)[lane];
            value = p.method == average_ ? value + next
                    : p.method == max_   ? std::max(value, next)
                                         : std::min(value, next);
        }
    return p.method == average_ ? average_of(p, value, switches) : value;
}

}  // namespace

Status run_ppu(WatchedRegisters& r, const Switches& switches, Memory& memory, Traffic& traffic) {
    Pooling p = read_sizes(r);
    p.elements = REEF_TRY(
        elements_of(r.get<"PPU_DATA_FORMAT.PROC_PRECISION">(), "PPU_DATA_FORMAT.PROC_PRECISION"));
    REEF_CHECK(check_pooling(r, p));
    const unsigned lanes = lanes_of_atom(p.elements);
    const std::size_t row_bytes = std::size_t{p.out_width} * spec::atom_bytes;
    for (unsigned surface = 0; surface * lanes < p.channels; ++surface) {
        const PaddedSurface in = REEF_TRY(read_surface(p, surface, memory, traffic));
        for (unsigned y = 0; y < p.out_height; ++y) {
            const MutableBytes row =
                REEF_TRY(memory.write(p.target + surface * p.target_surface + y * p.target_line,
                                      row_bytes, "PPU: results"));
            traffic.results += row_bytes;
            for (unsigned i = 0; i < p.out_width * lanes; ++i) {
                const float value = pooled(p, in, i / lanes, y, i % lanes, switches);
                if (p.elements == Elements::int8) {
                    row[i] = static_cast<std::byte>(saturated8(static_cast<std::int64_t>(value)));
                } else {
                    const std::uint16_t half = half_of_float(value);
                    std::memcpy(row.data() + std::size_t{i} * 2, &half, sizeof half);
                }
            }
        }
    }
    return {};
}

}  // namespace reef::rk3588::sim
