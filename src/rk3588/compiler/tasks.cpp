#include "rk3588/compiler/tasks.h"

#include <algorithm>
#include <array>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/functions.h"
#include "rk3588/regs/register_order.h"

namespace reef::rk3588::lowering {
namespace {

/// The order in which an independent driver, whose streams run on real chips, writes registers;
/// several of them twice.
constexpr auto conv_order = in_order<conv_register_count>(std::array{
    registers("CNA_CBUF_CON0"), registers("CNA_DCOMP_REGNUM"), registers("CNA_DCOMP_CTRL"),
    registers("CNA_CONV_CON1"), registers("DPU_S_POINTER"), registers("DPU_RDMA_S_POINTER"),
    registers("CNA_CONV_CON1", "CNA_FC_DATA_SIZE1"), registers("CNA_DCOMP_CTRL", "CNA_PAD_CON1"),
    registers("CORE_MISC_CFG", "CORE_UNDOCUMENTED_3030"),
    registers("DPU_FEATURE_MODE_CFG", "DPU_LUT_LO_SLOPE_SHIFT"),
    registers("DPU_RDMA_DATA_CUBE_WIDTH", "DPU_RDMA_EW_SURF_NOTCH")});
constexpr auto flying_order = in_order<flying_register_count>(
    std::array{registers("DPU_S_POINTER"), registers("DPU_RDMA_S_POINTER"),
               registers("DPU_FEATURE_MODE_CFG", "DPU_LUT_LO_SLOPE_SHIFT"),
               registers("DPU_RDMA_DATA_CUBE_WIDTH", "DPU_RDMA_EW_SURF_NOTCH")});
/// An order with the words that load tables where they stand in vendor tasks.
template <std::size_t count>
constexpr auto with_tables(const std::array<RegisterIndex, count>& without) {
    constexpr RegisterIndex access = register_named("DPU_LUT_ACCESS_CFG"),
                            data = register_named("DPU_LUT_ACCESS_DATA");
    std::array<RegisterIndex, count + table_register_count> order{};
    auto to = order.begin();
    for (const RegisterIndex index : without) {
        if (index == data) continue;
        if (index != access) {
            *to++ = index;
            continue;
        }
        for (std::size_t table = 0; table < 2; ++table) {
            *to++ = access;
            to = std::fill_n(to, std::size_t{spec::lut_entries}, data);
        }
    }
    return order;
}
constexpr auto conv_order_with_tables = with_tables(conv_order);
constexpr auto flying_order_with_tables = with_tables(flying_order);
/// As many words as vendor tasks of the PPU have.
constexpr auto pool_order = in_order<pool_register_count>(
    std::array{registers("PPU_S_POINTER"), registers("PPU_RDMA_S_POINTER"),
               registers("PPU_DATA_CUBE_IN_WIDTH", "PPU_MISC_CTRL"),
               registers("PPU_RDMA_CUBE_IN_WIDTH", "PPU_RDMA_DATA_FORMAT")});

constexpr std::int64_t atom_size = static_cast<std::int64_t>(spec::atom_bytes);
constexpr std::int64_t to_memory = 2;

void start_groups(RegisterSet& r) {
    r.set<"DPU_S_POINTER.POINTER_PP_EN">(1);
    r.set<"DPU_S_POINTER.EXECUTER_PP_EN">(1);
    r.set<"DPU_S_POINTER.POINTER_PP_MODE">(1);
    r.set<"DPU_RDMA_S_POINTER.POINTER_PP_EN">(1);
    r.set<"DPU_RDMA_S_POINTER.EXECUTER_PP_EN">(1);
    r.set<"DPU_RDMA_S_POINTER.POINTER_PP_MODE">(1);
}

/// Sizes that the DPU, its reader and its writer have in common.
struct Results {
    std::int64_t width = 0, height = 0, channels = 0, stepped = 0;
    std::int64_t surface = 0;  ///< bytes
    std::int64_t planes = 1;   ///< that are written before the next group of channels
};

void set_results(RegisterSet& r, const Results& o) {
    r.set<"DPU_FEATURE_MODE_CFG.OUTPUT_MODE">(to_memory);
    r.set<"DPU_FEATURE_MODE_CFG.BURST_LEN">(spec::longest_burst);
    r.set<"DPU_DST_SURF_STRIDE.DST_SURF_STRIDE">(o.surface / atom_size);
    r.set<"DPU_DATA_CUBE_WIDTH.WIDTH">(o.width - 1);
    r.set<"DPU_DATA_CUBE_HEIGHT.HEIGHT">(o.height - 1);
    r.set<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">(o.channels - 1);
    r.set<"DPU_DATA_CUBE_CHANNEL.CHANNEL">(o.stepped - 1);
    r.set<"DPU_WDMA_SIZE_0.CHANNEL_WDMA">(o.stepped - 1);
    r.set<"DPU_WDMA_SIZE_1.WIDTH_WDMA">(o.width - 1);
    r.set<"DPU_WDMA_SIZE_1.HEIGHT_WDMA">(o.height - 1);
    r.set<"DPU_SURFACE_ADD.SURF_ADD">(o.planes * o.surface / atom_size);
    r.set<"DPU_RDMA_DATA_CUBE_WIDTH.WIDTH">(o.width - 1);
    r.set<"DPU_RDMA_DATA_CUBE_HEIGHT.HEIGHT">(o.height - 1);
    r.set<"DPU_RDMA_DATA_CUBE_CHANNEL.CHANNEL">(o.stepped - 1);
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.BURST_LEN">(spec::longest_burst);
    r.set<"DPU_RDMA_WEIGHT.M_WEIGHT">(1);
    r.set<"DPU_RDMA_WEIGHT.B_WEIGHT">(1);
    r.set<"DPU_RDMA_WEIGHT.N_WEIGHT">(1);
    r.set<"DPU_RDMA_WEIGHT.E_WEIGHT">(1);
}

void set_converter(RegisterSet& r, std::int32_t zero, const ScaleAndShift& s, bool away) {
    r.set<"DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET">(zero);
    r.set<"DPU_OUT_CVT_SCALE.OUT_CVT_SCALE">(s.scale);
    r.set<"DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT">(s.shift);
    r.set<"DPU_OUT_CVT_SHIFT.CVT_ROUND">(away ? 1 : 0);
}

/// BN: factors of powers of two, and limits.
void set_limits(RegisterSet& r, const Requantisation& n) {
    const bool powers = !n.powers.empty();
    r.set<"DPU_BN_CFG.BN_BYPASS">(!n.relu && !powers ? 1 : 0);
    r.set<"DPU_BN_CFG.BN_ALU_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_MUL_BYPASS">(powers ? 0 : 1);
    r.set<"DPU_BN_CFG.BN_RELU_BYPASS">(n.relu ? 0 : 1);
    if (powers) {
        constexpr std::int64_t mul_operand = 4;
        r.set<"DPU_BN_MUL_CFG.BN_MUL_SRC">(1);
        r.set<"DPU_RDMA_NRDMA_CFG.NRDMA_DATA_USE">(mul_operand);
    }
    if (n.most) {
        r.set<"DPU_BN_CFG.BN_RELUX_EN">(1);
        r.set<"DPU_BN_RELUX_CMP_VALUE.BN_RELUX_CMP_DAT">(*n.most);
    }
}

/// BS: biases, and factors of one or all channels.
void set_biases(RegisterSet& r, const Requantisation& n) {
    constexpr std::int64_t alu_operand = 1, all_operands = 7, no_correction = 5;
    const bool by_channel = !n.factors.empty();
    r.set<"DPU_BS_CFG.BS_RELU_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_ALU_SRC">(1);
    r.set<"DPU_BS_CFG.BS_ALU_ALGO">(spec::value::alu::add_);
    r.set<"DPU_BS_CFG.BS_MUL_BYPASS">(n.multiplies ? 0 : 1);
    if (n.multiplies) {
        if (by_channel)
            r.set<"DPU_BS_MUL_CFG.BS_MUL_SRC">(1);
        else
            r.set<"DPU_BS_MUL_CFG.BS_MUL_OPERAND">(n.factor);
        r.set<"DPU_BS_MUL_CFG.BS_MUL_SHIFT_VALUE">(n.factor_shift);
        r.set<"DPU_DATA_FORMAT.BS_MUL_SHIFT_VALUE_NEG">(n.factor_shift);
    }
    r.set<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">(!by_channel      ? alu_operand
                                               : n.short_groups ? no_correction
                                                                : all_operands);
}

void set_window(RegisterSet& r, const ConvolutionShape& shape, const Tile& tile) {
    const auto& w = shape.window;
    r.set<"CNA_CONV_CON1.CONV_MODE">(shape.depthwise ? spec::value::conv_mode::depthwise_
                                                     : spec::value::conv_mode::direct_);
    r.set<"CNA_CONV_CON2.FEATURE_GRAINS">(static_cast<std::int64_t>(spec::spare_grains) +
                                          w.stride_h);
    r.set<"CNA_CONV_CON3.CONV_X_STRIDE">(w.stride_w);
    r.set<"CNA_CONV_CON3.CONV_Y_STRIDE">(w.stride_h);
    r.set<"CNA_CONV_CON3.ATROUS_X_DILATION">(w.dilation_w - 1);
    r.set<"CNA_CONV_CON3.ATROUS_Y_DILATION">(w.dilation_h - 1);
    r.set<"CNA_PAD_CON0.PAD_LEFT">(tile.columns.padding);
    r.set<"CNA_PAD_CON0.PAD_TOP">(tile.rows.padding);
    r.set<"CNA_DATA_SIZE2.DATAOUT_WIDTH">(tile.columns.count);
    r.set<"CNA_DATA_SIZE3.DATAOUT_ATOMICS">(std::int64_t{tile.columns.count} * tile.rows.count);
    r.set<"CNA_WEIGHT_SIZE0.WEIGHT_BYTES">(shape.weight_bytes());
    r.set<"CNA_WEIGHT_SIZE1.WEIGHT_BYTES_PER_KERNEL">(shape.bytes_per_kernel());
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">(w.kernel_w);
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">(w.kernel_h);
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">(shape.kernels());
}

void set_features(RegisterSet& r, const ConvolutionShape& shape, const Tile& tile) {
    constexpr std::int64_t lines = static_cast<std::int64_t>(spec::grouped_lines);
    constexpr std::int64_t atoms_per_entry =
        static_cast<std::int64_t>(spec::data_entry_bytes / spec::atom_bytes);
    const std::int64_t width = shape.width, channels = shape.padded_channels();
    const std::int64_t columns = tile.columns.count_in, rows = tile.rows.count_in;
    const std::int64_t entries =
        (columns * (channels / atom_size) + atoms_per_entry - 1) / atoms_per_entry;
    r.set<"CNA_DATA_SIZE0.DATAIN_WIDTH">(columns);
    r.set<"CNA_DATA_SIZE0.DATAIN_HEIGHT">(rows);
    r.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL">(channels);
    r.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL_REAL">(channels - 1);
    r.set<"CNA_CBUF_CON1.DATA_ENTRIES">(entries);
    r.set<"CNA_CVT_CON0.CVT_BYPASS">(1);
    r.set<"CNA_CVT_CON0.CVT_TYPE">(1);
    r.set<"CNA_CVT_CON0.DATA_SIGN">(1);
    r.set<"CNA_CVT_CON1.CVT_SCALE0">(1);
    r.set<"CNA_CVT_CON2.CVT_SCALE1">(1);
    r.set<"CNA_CVT_CON3.CVT_SCALE2">(1);
    r.set<"CNA_CVT_CON4.CVT_SCALE3">(1);
    r.set<"CNA_DMA_CON0.DATA_BURST_LEN">(spec::longest_burst);
    r.set<"CNA_DMA_CON0.WEIGHT_BURST_LEN">(spec::longest_burst);
    r.set<"CNA_DMA_CON1.LINE_STRIDE">(lines * width);
    r.set<"CNA_DMA_CON2.SURF_STRIDE">(std::int64_t{shape.height} * width - lines * columns);
    r.set<"CNA_FC_DATA_SIZE0.DMA_WIDTH">(columns);
    r.set<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">(rows);
    r.set<"CNA_FC_DATA_SIZE1.DMA_CHANNEL">(channels);
}

/// Lanes see either of the lower two bytes.
std::uint32_t pad_value(std::int32_t zero) {
    const auto byte = static_cast<std::uint32_t>(zero) & 0xffU;
    return (zero < 0 ? 0xffff0000U : 0) | byte << 8 | byte;
}

/// EW off: the operand's factor alone has its idle value.
void set_no_operand(RegisterSet& r) {
    r.set<"DPU_EW_CFG.EW_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_OP_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_LUT_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_OP_CVT_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_RELU_BYPASS">(1);
    r.set<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SCALE">(1);
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.MRDMA_DISABLE">(1);
    r.set<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">(1);
}

/// An operand of 8 bits for every pixel, which EW converts and adds.
void set_operand(RegisterSet& r, std::int32_t zero, const ScaleAndShift& gain, bool relu) {
    r.set<"DPU_EW_CFG.EW_OP_SRC">(1);
    r.set<"DPU_EW_CFG.EW_LUT_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_RELU_BYPASS">(relu ? 0 : 1);
    r.set<"DPU_EW_CFG.EW_ALU_ALGO">(spec::value::ew_operation::add_);
    r.set<"DPU_EW_CFG.EDATA_SIZE">(spec::value::element_size::bits_8_);
    r.set<"DPU_EW_CFG.EW_DATA_MODE">(1);
    r.set<"DPU_EW_CFG.EW_CVT_TYPE">(1);
    r.set<"DPU_EW_CVT_OFFSET_VALUE.EW_OP_CVT_OFFSET">(-zero);
    r.set<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SCALE">(gain.scale);
    r.set<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SHIFT">(gain.shift);
    r.set<"DPU_RDMA_ERDMA_CFG.ERDMA_DATA_SIZE">(spec::value::element_size::bits_8_);
    r.set<"DPU_RDMA_ERDMA_CFG.ERDMA_DATA_MODE">(1);
}

/// Both readers fetch the operand: one the even surfaces, the other the odd ones. What is between
/// two surfaces of one reader is their notch.
void set_fused_sum(TaskRegisters& task, const Plan& plan, const FusedSum& sum,
                   const ConvolutionShape& shape, const Tile& tile, std::uint64_t first_surface) {
    constexpr std::int64_t both_for_operand = 5;
    RegisterSet& r = task.registers;
    const Cube cube = plan.cube(sum.addend);
    const std::int64_t row = shape.out_width;
    const std::int64_t surface =
        std::max<std::int64_t>(row * shape.out_height, spec::least_operand_atoms);
    const std::int64_t notch = surface + row * (shape.out_height - tile.rows.count);
    set_operand(r, sum.zero, sum.gain, sum.relu);
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.COMB_USE">(both_for_operand);
    r.set<"DPU_RDMA_EW_SURF_STRIDE.EW_SURF_STRIDE">(surface);
    r.set<"DPU_RDMA_SURF_NOTCH.SURF_NOTCH_ADDR">(notch);
    r.set<"DPU_RDMA_EW_SURF_NOTCH.EW_SURF_NOTCH">(notch);
    const std::uint64_t first = cube.offset + first_surface * cube.surface_bytes() +
                                static_cast<std::uint64_t>(atom_size * row * tile.rows.first);
    task.address<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">(Area::activations, first);
    task.address<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">(Area::activations,
                                                       first + cube.surface_bytes());
}

/// What a task of a convolution reads and writes.
struct Places {
    std::uint64_t features = 0, weights = 0, operands = 0, powers = 0, results = 0;
};
Places places_of(const Plan& plan, const Step& step, const ConvolutionStep& conv,
                 const Piece& piece, const Tile& tile) {
    const auto u = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    const ConvolutionShape& shape = conv.shape;
    const std::uint64_t surface_in = u(shape.height) * u(shape.width) * spec::atom_bytes;
    const std::uint64_t surface_out = u(shape.out_height) * u(shape.out_width) * spec::atom_bytes;
    const std::uint64_t first = u(piece.channel) / spec::atom_bytes;
    const auto at = [&](std::int32_t width, const Stretch& rows, const Stretch& columns, bool in) {
        const std::int64_t row = in ? rows.first_in : rows.first;
        const std::int64_t column = in ? columns.first_in : columns.first;
        return u(row * width + column) * spec::atom_bytes;
    };
    return {plan.offset_of(step.inputs[0]) + (shape.depthwise ? first * surface_in : 0) +
                at(shape.width, tile.rows, tile.columns, true),
            conv.weights_of(piece), conv.operands_of(piece), conv.powers_of(piece),
            plan.offset_of(step.output) + first * surface_out +
                at(shape.out_width, tile.rows, tile.columns, false)};
}

void set_array(RegisterSet& r, const ConvolutionShape& shape, const Tile& tile) {
    r.set<"CORE_MISC_CFG.QD_EN">(1);
    r.set<"CORE_MISC_CFG.DW_EN">(shape.depthwise ? 1 : 0);
    r.set<"CORE_DATAOUT_SIZE_0.DATAOUT_WIDTH">(tile.columns.count - 1);
    r.set<"CORE_DATAOUT_SIZE_0.DATAOUT_HEIGHT">(tile.rows.count - 1);
    r.set<"CORE_DATAOUT_SIZE_1.DATAOUT_CHANNEL">(shape.stepped_channels() - 1);
}

/// The share of a core in whole surfaces: the cube's sizes with fewer channels.
struct Share {
    Cube out;                 ///< of the core
    std::uint64_t first = 0;  ///< surface
};
Share share_of(const Cube& cube, std::int32_t cores, std::int32_t core) {
    const Rows surfaces = surfaces_of_core(static_cast<std::int32_t>(cube.channels), cores, core);
    Share share{cube, static_cast<std::uint64_t>(surfaces.first)};
    const auto before = static_cast<std::uint32_t>(surfaces.first * atom_size);
    share.out.channels =
        std::min(static_cast<std::uint32_t>(surfaces.count * atom_size), cube.channels - before);
    share.out.offset += static_cast<std::uint32_t>(share.first * cube.surface_bytes());
    return share;
}

/// The DPU on the surfaces of its first operand, from `first` on.
void set_flying(TaskRegisters& task, const Plan& plan, const Step& step, const Share& share,
                std::uint64_t first = 0) {
    RegisterSet& r = task.registers;
    const Cube& out = share.out;
    start_groups(r);
    r.set<"DPU_FEATURE_MODE_CFG.FLYING_MODE">(1);
    set_results(
        r, {out.width, out.height, out.channels, static_cast<std::int64_t>(out.atoms()) * atom_size,
            static_cast<std::int64_t>(out.surface_bytes()), 1});
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.FLYING_MODE">(1);
    task.address<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(Area::activations, out.offset);
    task.address<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">(
        Area::activations,
        plan.offset_of(step.inputs[0]) + (first + share.first) * out.surface_bytes());
}

/// BS takes the first operand, EW the second one.
void set_elements(RegisterSet& r, const ElementStep& step) {
    const bool alone = step.operation == ElementStep::Operation::rescale ||
                       step.operation == ElementStep::Operation::copy;
    r.set<"DPU_BS_CFG.BS_RELU_BYPASS">(alone && step.relu ? 0 : 1);
    r.set<"DPU_BS_CFG.BS_ALU_ALGO">(spec::value::alu::add_);
    r.set<"DPU_BS_ALU_CFG.BS_ALU_OPERAND">(-step.zero_a);
    r.set<"DPU_BS_MUL_CFG.BS_MUL_OPERAND">(step.gains.a);
    r.set<"DPU_BS_MUL_CFG.BS_MUL_SHIFT_VALUE">(step.gains.shift_a);
    r.set<"DPU_DATA_FORMAT.BS_MUL_SHIFT_VALUE_NEG">(step.gains.shift_a);
    r.set<"DPU_BS_OW_CFG.OD_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_ALU_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_MUL_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_RELU_BYPASS">(1);
    if (alone) {
        set_no_operand(r);
        r.set<"DPU_RDMA_FEATURE_MODE_CFG.MRDMA_DISABLE">(0);
    } else {
        set_operand(r, step.zero_b, {step.gains.b, 0}, step.relu);
        if (step.operation == ElementStep::Operation::product) r.set<"DPU_EW_CFG.EW_OP_TYPE">(1);
    }
    set_converter(r, step.zero, step.gains.converter, false);
}

/// EW through the tables, with the priorities and shifts of vendor tasks, and the words that load
/// them.
void set_tables(TaskRegisters& task, const TableContents& tables) {
    constexpr std::int64_t usual_mux = 2;
    constexpr std::uint32_t write_le = 0x20000, write_lo = 0x30000;
    constexpr FieldPlace entry = field_named("DPU_LUT_ACCESS_DATA.LUT_ACCESS_DATA");
    RegisterSet& r = task.registers;
    r.set<"DPU_EW_CFG.EW_BYPASS">(0);
    r.set<"DPU_EW_CFG.EW_LUT_BYPASS">(0);
    r.set<"DPU_LUT_CFG.LUT_LO_LE_MUX">(usual_mux);
    r.set<"DPU_LUT_CFG.LUT_OFLOW_PRIORITY">(1);
    r.set<"DPU_LUT_CFG.LUT_HYBRID_PRIORITY">(1);
    r.set<"DPU_LUT_INFO.LUT_LE_INDEX_SELECT">(spec::lut_fraction_bits);
    r.set<"DPU_LUT_INFO.LUT_LO_INDEX_SELECT">(spec::lut_fraction_bits);
    r.set<"DPU_LUT_LE_START.LUT_LE_START">(tables.le_start);
    r.set<"DPU_LUT_LE_END.LUT_LE_END">(tables.le_end);
    r.set<"DPU_LUT_LO_START.LUT_LO_START">(tables.lo_start);
    r.set<"DPU_LUT_LO_END.LUT_LO_END">(tables.lo_end);
    std::vector<std::uint32_t> entries;
    for (const std::int16_t v : tables.entries)
        entries.push_back(static_cast<std::uint32_t>(v) & entry.mask());
    task.repeated = {{register_named("DPU_LUT_ACCESS_CFG"), {write_le, write_lo}},
                     {entry.index, std::move(entries)}};
}

/// BN takes each value to its entry, with a factor as vendor tasks normalise theirs.
void set_function(RegisterSet& r) {
    constexpr int factor_bits = 14, converter_bits = 14;
    constexpr int value_bits = spec::lut_fraction_bits + entry_bits;
    r.set<"DPU_BS_CFG.BS_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_ALU_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_MUL_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_RELU_BYPASS">(1);
    r.set<"DPU_BS_OW_CFG.OD_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_ALU_ALGO">(spec::value::alu::add_);
    r.set<"DPU_BN_CFG.BN_RELU_BYPASS">(1);
    r.set<"DPU_BN_MUL_CFG.BN_MUL_OPERAND">(1 << factor_bits);
    r.set<"DPU_BN_MUL_CFG.BN_MUL_SHIFT_VALUE">(factor_bits - value_bits);
    r.set<"DPU_DATA_FORMAT.BN_MUL_SHIFT_VALUE_NEG">(factor_bits - value_bits);
    set_no_operand(r);
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.MRDMA_DISABLE">(0);
    set_converter(r, 0, {1 << converter_bits, converter_bits + result_bits}, false);
}

void set_pool_cubes(RegisterSet& r, const Cube& in, const Cube& out) {
    r.set<"PPU_DATA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">(in.width - 1);
    r.set<"PPU_DATA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">(in.height - 1);
    r.set<"PPU_DATA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">(in.channels - 1);
    r.set<"PPU_DATA_CUBE_OUT_WIDTH.CUBE_OUT_WIDTH">(out.width - 1);
    r.set<"PPU_DATA_CUBE_OUT_HEIGHT.CUBE_OUT_HEIGHT">(out.height - 1);
    r.set<"PPU_DATA_CUBE_OUT_CHANNEL.CUBE_OUT_CHANNEL">(out.channels - 1);
    r.set<"PPU_RDMA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">(in.width - 1);
    r.set<"PPU_RDMA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">(in.height - 1);
    r.set<"PPU_RDMA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">(in.channels - 1);
    r.set<"PPU_RDMA_SRC_LINE_STRIDE.SRC_LINE_STRIDE">(in.width);
    r.set<"PPU_RDMA_SRC_SURF_STRIDE.SRC_SURF_STRIDE">(std::int64_t{in.width} * in.height);
    const std::int64_t surface = std::int64_t{out.width} * out.height;
    r.set<"PPU_DST_SURF_STRIDE.DST_SURF_STRIDE">(surface);
    r.set<"PPU_DATA_FORMAT.INDEX_ADD">(surface);
}

}  // namespace

std::uint32_t ConvolutionStep::weights_of(const Piece& piece) const {
    const std::int64_t each = shape.depthwise
                                  ? std::int64_t{shape.window.kernel_h} * shape.window.kernel_w
                                  : shape.bytes_per_kernel();
    return weights + static_cast<std::uint32_t>(piece.channel * each);
}

std::uint32_t ConvolutionStep::operands_of(const Piece& piece) const {
    const std::uint64_t each = numbers.factors.empty()
                                   ? sizeof(std::int32_t)
                                   : numbers.operand_group_bytes() / spec::operand_group_channels;
    return operands + static_cast<std::uint32_t>(static_cast<std::uint64_t>(piece.channel) * each);
}

std::uint32_t ConvolutionStep::powers_of(const Piece& piece) const {
    return powers + static_cast<std::uint32_t>(static_cast<std::uint64_t>(piece.channel) *
                                               sizeof(std::int16_t));
}

TaskRegisters convolution_task(const Plan& plan, const Step& step, const ConvolutionStep& conv,
                               const Piece& piece, std::size_t number) {
    const Tile& tile = piece.tiles[number];
    const ConvolutionShape shape = conv.shape.part(piece.channels);
    TaskRegisters task(
        conv.tables ? std::span<const RegisterIndex>(conv_order_with_tables) : conv_order,
        Blocks::convolution);
    RegisterSet& r = task.registers;
    start_groups(r);
    r.set<"CNA_CBUF_CON0.DATA_BANK">(piece.buffer.data_banks);
    r.set<"CNA_CBUF_CON0.WEIGHT_BANK">(piece.buffer.weight_banks);
    r.set<"CNA_CBUF_CON0.WEIGHT_REUSE">(number != 0 && piece.buffer.keeps_weights() ? 1 : 0);
    set_window(r, shape, tile);
    set_features(r, shape, tile);
    r.set<"CNA_PAD_CON1.PAD_VALUE">(pad_value(conv.input_zero));
    set_array(r, shape, tile);
    const auto mode =
        shape.depthwise ? spec::value::conv_mode::depthwise_ : spec::value::conv_mode::direct_;
    r.set<"DPU_FEATURE_MODE_CFG.CONV_MODE">(mode);
    const std::int64_t planes = shape.depthwise ? 4 : 2;
    const std::int64_t surface = std::int64_t{shape.out_height} * shape.out_width * atom_size;
    set_results(r, {tile.columns.count, tile.rows.count, shape.out_channels,
                    shape.stepped_channels(), surface, planes});
    // Rows of which a task makes a part go on behind the others' columns.
    const std::int64_t behind = shape.out_width - tile.columns.count;
    r.set<"DPU_DATA_CUBE_NOTCH_ADDR.NOTCH_ADDR_0">(behind);
    r.set<"DPU_DATA_CUBE_NOTCH_ADDR.NOTCH_ADDR_1">(behind);
    set_biases(r, conv.numbers);
    r.set<"DPU_BS_OW_CFG.SIZE_E_0">(planes - 1);
    r.set<"DPU_BS_OW_CFG.SIZE_E_1">(planes - 1);
    r.set<"DPU_BS_OW_CFG.SIZE_E_2">(planes - 1);
    r.set<"DPU_BS_OW_OP.OW_OP">(-conv.weight_zero);
    set_limits(r, conv.numbers);
    set_converter(r, conv.numbers.zero, {conv.numbers.scale, conv.numbers.shift},
                  conv.numbers.away);
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.CONV_MODE">(mode);
    if (conv.sum)
        set_fused_sum(task, plan, *conv.sum, shape, tile,
                      static_cast<std::uint64_t>(piece.channel) / spec::atom_bytes);
    else
        set_no_operand(r);
    if (conv.tables) set_tables(task, *conv.tables);
    const Places places = places_of(plan, step, conv, piece, tile);
    task.address<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">(Area::activations, places.features);
    task.address<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">(Area::constants, places.weights);
    task.address<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(Area::activations, places.results);
    task.address<"DPU_RDMA_BS_BASE_ADDR.BS_BASE_ADDR">(Area::constants, places.operands);
    if (!conv.numbers.powers.empty())
        task.address<"DPU_RDMA_BN_BASE_ADDR.BN_BASE_ADDR">(Area::constants, places.powers);
    return task;
}

TaskRegisters element_task(const Plan& plan, const Step& step, const ElementStep& element,
                           std::int32_t core) {
    TaskRegisters task(flying_order, Blocks::flying);
    const Share share = share_of(plan.cube(step.output), element.cores, core);
    set_flying(task, plan, step, share, element.first_surface);
    set_elements(task.registers, element);
    if (step.inputs.size() < 2) return task;
    const std::uint64_t surface = share.out.surface_bytes();
    task.registers.set<"DPU_RDMA_EW_SURF_STRIDE.EW_SURF_STRIDE">(
        static_cast<std::int64_t>(surface) / atom_size);
    task.address<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">(
        Area::activations, plan.offset_of(step.inputs[1]) + share.first * surface);
    return task;
}

TaskRegisters function_task(const Plan& plan, const Step& step, const FunctionStep& function,
                            std::int32_t core) {
    TaskRegisters task(flying_order_with_tables, Blocks::flying);
    set_flying(task, plan, step, share_of(plan.cube(step.output), function.cores, core));
    set_function(task.registers);
    set_tables(task, tables_of(function.function));
    return task;
}

/// The values of captured tasks, but for the elements: int8 is what no real chip has shown.
TaskRegisters pool_task(const Plan& plan, const Step& step, const PoolStep& pool,
                        std::int32_t core) {
    constexpr std::int64_t least = -128;
    constexpr FieldPlace pad = field_named("PPU_PADDING_VALUE_1_CFG.PAD_VALUE_0");
    TaskRegisters task(pool_order, Blocks::pooling);
    RegisterSet& r = task.registers;
    const auto [out, first] = share_of(plan.cube(step.output), pool.cores, core);
    Cube in = plan.cube(step.inputs[0]);
    const std::uint64_t before = first * in.surface_bytes();
    in.channels = out.channels;
    r.set<"PPU_S_POINTER.POINTER_PP_EN">(1);
    r.set<"PPU_S_POINTER.EXECUTER_PP_EN">(1);
    r.set<"PPU_S_POINTER.POINTER_PP_MODE">(1);
    r.set<"PPU_RDMA_S_POINTER.POINTER_PP_EN">(1);
    r.set<"PPU_RDMA_S_POINTER.EXECUTER_PP_EN">(1);
    r.set<"PPU_RDMA_S_POINTER.POINTER_PP_MODE">(1);
    set_pool_cubes(r, in, out);
    const auto& w = pool.window;
    r.set<"PPU_OPERATION_MODE_CFG.POOLING_METHOD">(spec::value::pooling::max_);
    r.set<"PPU_OPERATION_MODE_CFG.FLYING_MODE">(1);
    r.set<"PPU_POOLING_KERNEL_CFG.KERNEL_WIDTH">(w.kernel_w - 1);
    r.set<"PPU_POOLING_KERNEL_CFG.KERNEL_HEIGHT">(w.kernel_h - 1);
    r.set<"PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_WIDTH">(w.stride_w - 1);
    r.set<"PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_HEIGHT">(w.stride_h - 1);
    r.set<"PPU_POOLING_PADDING_CFG.PAD_LEFT">(w.left);
    r.set<"PPU_POOLING_PADDING_CFG.PAD_TOP">(w.top);
    r.set<"PPU_POOLING_PADDING_CFG.PAD_RIGHT">(pool.right);
    r.set<"PPU_POOLING_PADDING_CFG.PAD_BOTTOM">(pool.bottom);
    r.set<"PPU_PADDING_VALUE_1_CFG.PAD_VALUE_0">(least & pad.mask());
    r.set<"PPU_DATA_FORMAT.PROC_PRECISION">(spec::value::precision::int8_);
    r.set<"PPU_MISC_CTRL.BURST_LEN">(spec::pool_burst);
    r.set<"PPU_RDMA_DATA_FORMAT.IN_PRECISION">(spec::value::element_size::bits_8_);
    task.address<"PPU_DST_BASE_ADDR.DST_BASE_ADDR", spec::atom_bytes>(Area::activations,
                                                                      out.offset);
    task.address<"PPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">(Area::activations,
                                                         plan.offset_of(step.inputs[0]) + before);
    return task;
}

}  // namespace reef::rk3588::lowering
