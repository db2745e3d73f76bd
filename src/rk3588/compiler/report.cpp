#include <fmt/format.h>

#include <algorithm>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/plan.h"
#include "rk3588/compiler/tasks.h"

namespace reef::rk3588::lowering {
namespace {

constexpr std::uint64_t conv_words = conv_register_count + spec::tail_words;
constexpr std::uint64_t flying_words = flying_register_count + spec::tail_words;
constexpr std::uint64_t pool_words = pool_register_count + spec::tail_words;

std::uint64_t u(std::int64_t n) {
    return static_cast<std::uint64_t>(n);
}

std::uint64_t whole(std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) / step;
}

/// Steps of the arrays: a window's tap, a block of input channels and of output channels each.
std::uint64_t array_cycles(const ConvolutionShape& s, std::uint64_t pixels) {
    const std::uint64_t taps = pixels * u(s.window.kernel_h) * u(s.window.kernel_w);
    if (s.depthwise) return taps * whole(u(s.channels), spec::int8_depthwise_lanes);
    return taps * whole(u(s.channels), spec::kernel_lanes) *
           whole(u(s.out_channels), spec::int8_group_kernels);
}

Work work_of_piece(const ConvolutionStep& conv, const Piece& piece) {
    const ConvolutionShape shape = conv.shape.part(piece.channels);
    const std::uint64_t channels = u(piece.channels), atoms = whole(channels, spec::atom_bytes);
    Work work;
    BytesMoved& b = work.bytes;
    for (const Tile& tile : piece.tiles) {
        const std::uint64_t pixels = u(tile.rows.count) * u(tile.columns.count);
        b.features += u(tile.rows.count_in) * u(tile.columns.count_in) * u(shape.padded_channels());
        if (&tile == piece.tiles.data() || !piece.buffer.keeps_weights())
            b.weights += u(shape.weight_bytes());
        b.operands += conv.numbers.factors.empty() ? channels * sizeof(std::int32_t)
                                                   : whole(channels, spec::operand_group_channels) *
                                                         conv.numbers.operand_group_bytes();
        if (!conv.numbers.powers.empty()) b.operands += channels * sizeof(std::int16_t);
        if (conv.sum) b.operands += pixels * atoms * spec::atom_bytes;
        b.commands +=
            (conv_words + (conv.tables ? table_register_count : 0)) * sizeof(std::uint64_t);
        b.results += pixels * atoms * spec::atom_bytes;
        work.array += array_cycles(shape, pixels);
        ++work.tasks;
    }
    return work;
}

struct WorkOf {
    const Plan& plan;
    const Step& step;

    [[nodiscard]] std::uint64_t surfaces(std::int32_t cores, std::int32_t core) const {
        const auto channels = static_cast<std::int32_t>(plan.cube(step.output).channels);
        return u(surfaces_of_core(channels, cores, core).count);
    }
    std::vector<Work> operator()(const ConvolutionStep& conv) const {
        std::vector<Work> works;
        for (const Piece& piece : conv.pieces) {
            const auto core = static_cast<std::size_t>(piece.core);
            if (works.size() <= core) works.resize(core + 1);
            works[core] += work_of_piece(conv, piece);
        }
        return works;
    }
    /// Of the DPU alone, with tasks of so many words.
    [[nodiscard]] std::vector<Work> flying(std::int32_t cores, std::uint64_t words) const {
        std::vector<Work> works;
        for (std::int32_t core = 0; core < cores; ++core) {
            const std::uint64_t bytes =
                surfaces(cores, core) * plan.cube(step.output).surface_bytes();
            works.push_back({.bytes = {.operands = step.inputs.size() * bytes,
                                       .commands = words * sizeof(std::uint64_t),
                                       .results = bytes},
                             .array = 0,
                             .tasks = 1});
        }
        return works;
    }
    std::vector<Work> operator()(const ElementStep& element) const {
        return flying(element.cores, flying_words);
    }
    std::vector<Work> operator()(const FunctionStep& function) const {
        return flying(function.cores, flying_words + table_register_count);
    }
    std::vector<Work> operator()(const PoolStep& pool) const {
        std::vector<Work> works;
        for (std::int32_t core = 0; core < pool.cores; ++core) {
            const std::uint64_t count = surfaces(pool.cores, core);
            works.push_back(
                {.bytes = {.operands = count * plan.cube(step.inputs[0]).surface_bytes(),
                           .commands = pool_words * sizeof(std::uint64_t),
                           .results = count * plan.cube(step.output).surface_bytes()},
                 .array = 0,
                 .tasks = 1});
        }
        return works;
    }
    std::vector<Work> operator()(const PlacedStep&) const { return {}; }
};

OperatorReport cost_of(const Plan& plan, const Step& step) {
    OperatorReport r;
    r.index = step.node;
    r.name = plan.graph->nodes[step.node].name;
    const auto works = work_of(plan, step);
    Work all;
    for (const Work& work : works) all += work;
    r.tasks = all.tasks;
    r.bytes = all.bytes;
    r.cycles = cycles_of(works);
    r.first_core = step.core;
    r.cores = works.size();
    if (const auto* conv = std::get_if<ConvolutionStep>(&step.kind)) {
        r.data_banks = conv->pieces.front().buffer.data_banks;
        r.weight_banks = conv->pieces.front().buffer.weight_banks;
        r.macs = conv->macs;
        r.worst_gain_error = conv->numbers.worst_gain_error;
    }
    return r;
}

using Forms = std::vector<std::string>;

void forms_of(const Plan& plan, const Step& step, const ConvolutionStep& conv, Forms& out) {
    const auto& n = conv.numbers;
    const auto& w = conv.shape.window;
    const bool by_channel = !n.factors.empty();
    if (n.away) out.emplace_back("the output converter rounds ties away from zero (CVT_ROUND)");
    if (n.multiplies && !by_channel)
        out.emplace_back("BS multiplies with a factor of all channels");
    if (by_channel && n.factor_shift != 14)
        out.emplace_back(fmt::format("BS factors by channel, shifted by {}", n.factor_shift));
    if (!n.powers.empty()) out.emplace_back("BN factors by channel from memory (NRDMA)");
    if (n.most) out.emplace_back("BN with an upper limit (BN_RELUX_EN)");
    if (conv.task_channels < conv.shape.out_channels)
        out.emplace_back("a direct convolution in tasks of 16 kernels");
    if (conv.pieces.front().tiles.front().columns.count < conv.shape.out_width)
        out.emplace_back("tasks for a part of the columns, with gaps between the rows of results");
    if (conv.sum && n.multiplies) out.emplace_back("a sum behind the factors of BS");
    if (conv.sum && conv.sum->relu) out.emplace_back("ReLU of the element-wise stage");
    if (by_channel && conv.shape.depthwise)
        out.emplace_back(
            fmt::format("operands by channel of a depthwise convolution, {} bytes for 8 channels",
                        n.operand_group_bytes()));
    if (conv.shape.depthwise && (w.dilation_h > 1 || w.dilation_w > 1))
        out.emplace_back("a depthwise convolution with dilation");
    if (conv.pieces.front().buffer.weights == Weights::fill)
        out.emplace_back("weights that fill all their banks and stay");
    if (w.top > 1 || w.left > 1) out.emplace_back("padding of more than one pixel");
    if (w.stride_h > 2 || w.stride_w > 2) out.emplace_back("a stride above two");
    if (conv.shape.height != conv.shape.width) out.emplace_back("an image that is not square");
    if (std::holds_alternative<compiler::AveragePool>(plan.graph->nodes[step.node].operation))
        out.emplace_back("a pool as a depthwise convolution with equal weights");
    if (conv.tables) out.emplace_back("sums of a convolution through the DPU's tables");
    if (conv.pieces.back().core > 0)
        out.emplace_back("shares of an operator on several cores, each a program of its own");
    if (conv.shape.out_channels % static_cast<std::int32_t>(spec::atom_bytes) != 0)
        out.emplace_back("lanes written behind the last channel");
}

void forms_of(const Plan&, const Step&, const ElementStep& element, Forms& out) {
    using enum ElementStep::Operation;
    out.emplace_back(element.operation == sum       ? "an element-wise sum of int8 from memory"
                     : element.operation == product ? "an element-wise product of int8 from memory"
                     : element.operation == copy    ? "int8 values through the DPU as they are"
                                                 : "int8 values through the DPU to another scale");
    if (element.gains.shift_a != 0) out.emplace_back("BS multiplies with a factor of all channels");
    if (element.relu)
        out.emplace_back(element.operation == rescale ? "ReLU of BS"
                                                      : "ReLU of the element-wise stage");
}

void forms_of(const Plan&, const Step&, const FunctionStep&, Forms& out) {
    out.emplace_back("a function of bytes by the DPU's tables");
}

void forms_of(const Plan&, const Step&, const PoolStep&, Forms& out) {
    out.emplace_back("the greatest of int8 values in the PPU");
}

void forms_of(const Plan&, const Step&, const PlacedStep&, Forms&) {}

}  // namespace

std::vector<Work> work_of(const Plan& plan, const Step& step) {
    return std::visit(WorkOf{plan, step}, step.kind);
}

std::uint64_t cycles_of(const Plan& plan) {
    std::uint64_t cycles = 0;
    for (auto step = plan.steps.begin(); step != plan.steps.end();) {
        std::vector<Work> works;
        const std::size_t stage = step->stage;
        for (; step != plan.steps.end() && step->stage == stage; ++step)
            for (Work& work : work_of(plan, *step)) works.push_back(std::move(work));
        cycles += cycles_of(works);
    }
    return cycles;
}

std::vector<OperatorReport> report_of(const Plan& plan) {
    std::vector<OperatorReport> out;
    for (const Step& step : plan.steps) out.push_back(cost_of(plan, step));
    return out;
}

void add_unproven(const Plan& plan, std::vector<UnprovenForm>& forms) {
    std::size_t tasks = 0, last_stage = plan.steps.size();
    bool at_once = false;
    for (const Step& step : plan.steps) {
        Forms used;
        std::visit([&](const auto& kind) { forms_of(plan, step, kind, used); }, step.kind);
        for (const Work& work : work_of(plan, step)) tasks += work.tasks;
        at_once = at_once || step.stage == last_stage;
        last_stage = step.stage;
        for (std::string& what : used) {
            const auto known = std::ranges::find(forms, what, &UnprovenForm::what);
            if (known != forms.end())
                ++known->operators;
            else
                forms.push_back({std::move(what), 1});
        }
    }
    if (tasks > 1) forms.push_back({"tasks of int8 in a chain", plan.steps.size()});
    if (plan.sram_bytes != 0)
        forms.push_back({"activations in the chip's SRAM", plan.steps.size()});
    if (at_once) forms.push_back({"operators at once on several cores", plan.steps.size()});
}

}  // namespace reef::rk3588::lowering
