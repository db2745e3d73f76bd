#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/plan.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588::lowering {
namespace {

/// Registers in the order of their offsets.
struct Span {
    RegisterIndex first, last;
};
consteval Span span(std::string_view first, std::string_view last) {
    return {register_named(first), register_named(last)};
}
consteval Span one(std::string_view name) {
    return span(name, name);
}
/// The order in which an independent driver, whose streams run on real chips, writes registers;
/// several of them twice.
constexpr std::array conv_front = {one("CNA_CBUF_CON0"),
                                   one("CNA_DCOMP_REGNUM"),
                                   one("CNA_DCOMP_CTRL"),
                                   one("CNA_CONV_CON1"),
                                   one("DPU_S_POINTER"),
                                   one("DPU_RDMA_S_POINTER"),
                                   span("CNA_CONV_CON1", "CNA_FC_DATA_SIZE1"),
                                   span("CNA_DCOMP_CTRL", "CNA_PAD_CON1"),
                                   span("CORE_MISC_CFG", "CORE_UNDOCUMENTED_3030")};
constexpr std::array flying_front = {one("DPU_S_POINTER"), one("DPU_RDMA_S_POINTER")};
constexpr std::array both_back = {span("DPU_FEATURE_MODE_CFG", "DPU_LUT_LO_SLOPE_SHIFT"),
                                  span("DPU_RDMA_DATA_CUBE_WIDTH", "DPU_RDMA_EW_SURF_NOTCH")};

template <std::size_t count>
consteval std::array<RegisterIndex, count> in_order(std::span<const Span> front) {
    std::array<RegisterIndex, count> order{};
    std::size_t n = 0;
    const auto add = [&](std::span<const Span> spans) {
        for (const Span& each : spans)
            for (RegisterIndex i = each.first; i <= each.last; ++i) order[n++] = i;
    };
    add(front);
    add(both_back);
    if (n != count) throw "the order has another number of words";
    return order;
}
constexpr auto conv_order = in_order<126>(conv_front);
constexpr auto flying_order = in_order<69>(flying_front);

/// A task, and which of its registers hold offsets.
struct TaskRegisters {
    RegisterSet registers;
    std::vector<std::pair<RegisterIndex, Area>> addresses;

    template <Name field>
    void address(Area area, std::uint64_t offset) {
        registers.set<field>(static_cast<std::int64_t>(offset));
        addresses.emplace_back(field_named(field.view()).index, area);
    }
};

constexpr std::int64_t atom_size = static_cast<std::int64_t>(spec::atom_bytes);
constexpr std::int64_t longest_burst = 15;
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
    r.set<"DPU_FEATURE_MODE_CFG.BURST_LEN">(longest_burst);
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
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.BURST_LEN">(longest_burst);
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
    constexpr std::int64_t alu_operand = 1, all_operands = 7;
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
    r.set<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">(by_channel ? all_operands : alu_operand);
}

void set_window(RegisterSet& r, const ConvolutionShape& shape, const RowTile& tile) {
    constexpr std::int64_t extra_grains = 51;
    const auto& w = shape.window;
    r.set<"CNA_CONV_CON1.CONV_MODE">(shape.depthwise ? spec::value::conv_mode::depthwise_
                                                     : spec::value::conv_mode::direct_);
    r.set<"CNA_CONV_CON2.FEATURE_GRAINS">(extra_grains + w.stride_h);
    r.set<"CNA_CONV_CON3.CONV_X_STRIDE">(w.stride_w);
    r.set<"CNA_CONV_CON3.CONV_Y_STRIDE">(w.stride_h);
    r.set<"CNA_CONV_CON3.ATROUS_X_DILATION">(w.dilation_w - 1);
    r.set<"CNA_CONV_CON3.ATROUS_Y_DILATION">(w.dilation_h - 1);
    r.set<"CNA_PAD_CON0.PAD_LEFT">(w.left);
    r.set<"CNA_PAD_CON0.PAD_TOP">(tile.pad_top);
    r.set<"CNA_DATA_SIZE2.DATAOUT_WIDTH">(shape.out_width);
    r.set<"CNA_DATA_SIZE3.DATAOUT_ATOMICS">(std::int64_t{shape.out_width} * tile.rows);
    r.set<"CNA_WEIGHT_SIZE0.WEIGHT_BYTES">(shape.weight_bytes());
    r.set<"CNA_WEIGHT_SIZE1.WEIGHT_BYTES_PER_KERNEL">(shape.bytes_per_kernel());
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">(w.kernel_w);
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">(w.kernel_h);
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">(shape.kernels());
}

void set_features(RegisterSet& r, const ConvolutionShape& shape, const RowTile& tile) {
    constexpr std::int64_t lines = static_cast<std::int64_t>(spec::grouped_lines);
    constexpr std::int64_t atoms_per_entry =
        static_cast<std::int64_t>(spec::data_entry_bytes / spec::atom_bytes);
    const std::int64_t width = shape.width, channels = shape.padded_channels();
    const std::int64_t entries =
        (width * (channels / atom_size) + atoms_per_entry - 1) / atoms_per_entry;
    r.set<"CNA_DATA_SIZE0.DATAIN_WIDTH">(width);
    r.set<"CNA_DATA_SIZE0.DATAIN_HEIGHT">(tile.rows_in);
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
    r.set<"CNA_DMA_CON0.DATA_BURST_LEN">(longest_burst);
    r.set<"CNA_DMA_CON0.WEIGHT_BURST_LEN">(longest_burst);
    r.set<"CNA_DMA_CON1.LINE_STRIDE">(lines * width);
    r.set<"CNA_DMA_CON2.SURF_STRIDE">(std::int64_t{shape.height} * width - lines * width);
    r.set<"CNA_FC_DATA_SIZE0.DMA_WIDTH">(width);
    r.set<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">(tile.rows_in);
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
                   const ConvolutionShape& shape, const RowTile& tile) {
    constexpr std::int64_t both_for_operand = 5;
    RegisterSet& r = task.registers;
    const Cube cube = plan.cube(sum.addend);
    const std::int64_t row = shape.out_width;
    const std::int64_t surface =
        std::max<std::int64_t>(row * shape.out_height, spec::least_operand_atoms);
    const std::int64_t notch = surface + row * (shape.out_height - tile.rows);
    set_operand(r, sum.zero, sum.gain, sum.relu);
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.COMB_USE">(both_for_operand);
    r.set<"DPU_RDMA_EW_SURF_STRIDE.EW_SURF_STRIDE">(surface);
    r.set<"DPU_RDMA_SURF_NOTCH.SURF_NOTCH_ADDR">(notch);
    r.set<"DPU_RDMA_EW_SURF_NOTCH.EW_SURF_NOTCH">(notch);
    const std::uint64_t first =
        cube.offset + static_cast<std::uint64_t>(atom_size * row * tile.first);
    task.address<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">(Area::activations, first);
    task.address<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">(Area::activations,
                                                       first + cube.surface_bytes());
}

TaskRegisters convolution_task(const Plan& plan, const Step& step, const ConvolutionStep& conv,
                               std::int32_t channel, const RowTile& tile) {
    const ConvolutionShape shape = conv.part(channel);
    TaskRegisters task;
    RegisterSet& r = task.registers;
    start_groups(r);
    r.set<"CNA_CBUF_CON0.DATA_BANK">(conv.buffer.data_banks);
    r.set<"CNA_CBUF_CON0.WEIGHT_BANK">(conv.buffer.weight_banks);
    r.set<"CNA_CBUF_CON0.WEIGHT_REUSE">(tile.first != 0 && conv.buffer.keeps_weights ? 1 : 0);
    set_window(r, shape, tile);
    set_features(r, shape, tile);
    r.set<"CNA_PAD_CON1.PAD_VALUE">(pad_value(conv.input_zero));
    r.set<"CORE_MISC_CFG.QD_EN">(1);
    r.set<"CORE_MISC_CFG.DW_EN">(shape.depthwise ? 1 : 0);
    r.set<"CORE_DATAOUT_SIZE_0.DATAOUT_WIDTH">(shape.out_width - 1);
    r.set<"CORE_DATAOUT_SIZE_0.DATAOUT_HEIGHT">(tile.rows - 1);
    r.set<"CORE_DATAOUT_SIZE_1.DATAOUT_CHANNEL">(shape.stepped_channels() - 1);
    const auto mode =
        shape.depthwise ? spec::value::conv_mode::depthwise_ : spec::value::conv_mode::direct_;
    r.set<"DPU_FEATURE_MODE_CFG.CONV_MODE">(mode);
    const std::int64_t planes = shape.depthwise ? 4 : 2;
    const auto out = plan.cube(step.output);
    set_results(r, {shape.out_width, tile.rows, shape.out_channels, shape.stepped_channels(),
                    static_cast<std::int64_t>(out.surface_bytes()), planes});
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
        set_fused_sum(task, plan, *conv.sum, shape, tile);
    else
        set_no_operand(r);
    task.address<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">(
        Area::activations, plan.offset_of(step.inputs[0]) +
                               static_cast<std::uint64_t>(atom_size * shape.width * tile.first_in));
    const auto first = static_cast<std::uint64_t>(channel);
    task.address<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">(
        Area::constants,
        conv.weights + first * static_cast<std::uint64_t>(shape.bytes_per_kernel()));
    task.address<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(
        Area::activations,
        out.offset + first / spec::atom_bytes * out.surface_bytes() +
            static_cast<std::uint64_t>(atom_size * shape.out_width * tile.first));
    const std::uint64_t operand_bytes =
        conv.numbers.factors.empty() ? sizeof(std::int32_t)
                                     : spec::operand_group_bytes / spec::operand_group_channels;
    task.address<"DPU_RDMA_BS_BASE_ADDR.BS_BASE_ADDR">(Area::constants,
                                                       conv.operands + first * operand_bytes);
    if (!conv.numbers.powers.empty())
        task.address<"DPU_RDMA_BN_BASE_ADDR.BN_BASE_ADDR">(
            Area::constants, conv.powers + first * sizeof(std::int16_t));
    return task;
}

TaskRegisters sum_task(const Plan& plan, const Step& step, const SumStep& sum) {
    TaskRegisters task;
    RegisterSet& r = task.registers;
    const Cube out = plan.cube(step.output);
    const auto surface = static_cast<std::int64_t>(out.surface_bytes());
    start_groups(r);
    r.set<"DPU_FEATURE_MODE_CFG.FLYING_MODE">(1);
    set_results(r, {out.width, out.height, out.channels,
                    static_cast<std::int64_t>(out.atoms()) * atom_size, surface, 1});
    r.set<"DPU_BS_CFG.BS_RELU_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_ALU_ALGO">(spec::value::alu::add_);
    r.set<"DPU_BS_ALU_CFG.BS_ALU_OPERAND">(-sum.zero_a);
    r.set<"DPU_BS_MUL_CFG.BS_MUL_OPERAND">(sum.gains.a);
    r.set<"DPU_BS_OW_CFG.OD_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_ALU_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_MUL_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_RELU_BYPASS">(1);
    set_operand(r, sum.zero_b, {sum.gains.b, 0}, sum.relu);
    set_converter(r, sum.zero, sum.gains.converter, false);
    r.set<"DPU_RDMA_FEATURE_MODE_CFG.FLYING_MODE">(1);
    r.set<"DPU_RDMA_EW_SURF_STRIDE.EW_SURF_STRIDE">(surface / atom_size);
    task.address<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(Area::activations, out.offset);
    task.address<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">(Area::activations,
                                                         plan.offset_of(step.inputs[0]));
    task.address<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">(Area::activations,
                                                       plan.offset_of(step.inputs[1]));
    return task;
}

struct Task {
    TaskRegisters registers;
    std::span<const RegisterIndex> order;
    std::uint32_t blocks = 0;
    std::size_t node = 0;
    [[nodiscard]] std::size_t words() const { return order.size() + spec::tail_words; }
};

class Emission {
  public:
    explicit Emission(const Plan& plan) : plan_(plan) {}

    Result<Artifact> run() {
        for (const Step& step : plan_.steps) add(step);
        for (std::size_t i = 0; i < tasks_.size(); ++i) REEF_CHECK(write(i));
        out_.activation_bytes = plan_.activation_bytes;
        out_.constants = SharedBytes::copy_of(plan_.constants);
        for (const auto& port : plan_.program->inputs) out_.inputs.push_back(cube(port));
        for (const auto& port : plan_.program->outputs) out_.outputs.push_back(cube(port));
        return std::move(out_);
    }

  private:
    /// Where the source is, with the bytes that the tensor has.
    [[nodiscard]] Cube cube(const compiler::Program::Port& port) const {
        Cube c = plan_.cube(port.source);
        c.flipped = plan_.value(port.tensor).type == ElementType::uint8;
        return c;
    }

    void add(const Step& step) {
        ArtifactOperator op;
        op.index = static_cast<std::uint32_t>(step.node);
        op.name = plan_.graph->nodes[step.node].name;
        op.first_task = static_cast<std::uint32_t>(tasks_.size());
        for (const ValueId in : step.inputs) op.inputs.push_back(plan_.cube(in));
        op.output = plan_.cube(step.output);
        if (const auto* conv = std::get_if<ConvolutionStep>(&step.kind))
            for (std::int32_t c = 0; c < conv->shape.out_channels; c += conv->tile_channels)
                for (const RowTile& tile : conv->tiles)
                    tasks_.push_back({convolution_task(plan_, step, *conv, c, tile), conv_order,
                                      Blocks::convolution, step.node});
        else if (const auto* sum = std::get_if<SumStep>(&step.kind))
            tasks_.push_back(
                {sum_task(plan_, step, *sum), flying_order, Blocks::flying, step.node});
        op.tasks = static_cast<std::uint32_t>(tasks_.size()) - op.first_task;
        out_.operators.push_back(std::move(op));
    }

    [[nodiscard]] static std::size_t end_of(std::size_t first, std::size_t words) {
        constexpr std::size_t step = spec::task_alignment_bytes / sizeof(std::uint64_t);
        return (first + words + step - 1) / step * step;
    }

    Status write(std::size_t index) {
        const Task& task = tasks_[index];
        const std::size_t first = out_.commands.size();
        const std::size_t end = end_of(first, task.words());
        NextTask next;
        if (index + 1 < tasks_.size())
            next = {static_cast<std::uint32_t>(end * sizeof(std::uint64_t)),
                    static_cast<std::uint32_t>(tasks_[index + 1].words())};
        const auto words =
            REEF_TRY(in_place(task_words(task.registers.registers, task.order, task.blocks, next),
                              model::place_of(plan_.graph->subgraph(), task.node)));
        out_.commands.insert(out_.commands.end(), words.begin(), words.end());
        out_.commands.resize(end, 0);
        out_.tasks.push_back(
            {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(words.size())});
        relocate(task, first, next.address != 0);
        return {};
    }

    void relocate(const Task& task, std::size_t first, bool chained) {
        for (std::size_t w = 0; w < task.order.size(); ++w)
            for (const auto& [index, area] : task.registers.addresses)
                if (task.order[w] == index)
                    out_.relocations.push_back({static_cast<std::uint32_t>(first + w), area});
        if (chained)
            out_.relocations.push_back(
                {static_cast<std::uint32_t>(first + task.order.size()), Area::commands});
    }

    const Plan& plan_;
    std::vector<Task> tasks_;
    Artifact out_;
};

}  // namespace

Result<Artifact> emit(const Plan& plan) {
    return Emission(plan).run();
}

}  // namespace reef::rk3588::lowering
