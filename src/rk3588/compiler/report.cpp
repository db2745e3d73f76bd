#include <fmt/format.h>

#include <algorithm>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/plan.h"

namespace reef::rk3588::lowering {
namespace {

constexpr std::uint64_t conv_words = 126 + spec::tail_words;
constexpr std::uint64_t sum_words = 69 + spec::tail_words;

std::uint64_t whole(std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) / step;
}

BytesMoved moved(const Plan& plan, const Step& step, const ConvolutionStep& conv) {
    const auto u = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    BytesMoved b;
    for (std::int32_t c = 0; c < conv.shape.out_channels; c += conv.tile_channels) {
        const ConvolutionShape part = conv.part(c);
        const auto channels = u(part.out_channels);
        for (const RowTile& tile : conv.tiles) {
            b.features += u(tile.rows_in) * u(part.width) * u(part.padded_channels());
            if (tile.first == 0 || !conv.buffer.keeps_weights) b.weights += u(part.weight_bytes());
            b.operands +=
                conv.numbers.factors.empty()
                    ? channels * sizeof(std::int32_t)
                    : whole(channels, spec::operand_group_channels) * spec::operand_group_bytes;
            if (!conv.numbers.powers.empty()) b.operands += channels * sizeof(std::int16_t);
            b.commands += conv_words * sizeof(std::uint64_t);
        }
    }
    if (conv.sum) b.operands += plan.cube(conv.sum->addend).bytes();
    b.results = plan.cube(step.output).bytes();
    return b;
}

BytesMoved moved(const Plan& plan, const Step& step, const SumStep&) {
    BytesMoved b;
    for (const ValueId in : step.inputs) b.operands += plan.cube(in).bytes();
    b.commands = sum_words * sizeof(std::uint64_t);
    b.results = plan.cube(step.output).bytes();
    return b;
}

/// Steps of the arrays: a window's tap, a block of input channels and of output channels each.
std::uint64_t array_cycles(const ConvolutionShape& s) {
    const auto u = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    const std::uint64_t taps =
        u(s.out_height) * u(s.out_width) * u(s.window.kernel_h) * u(s.window.kernel_w);
    if (s.depthwise) return taps * whole(u(s.channels), spec::int8_depthwise_lanes);
    return taps * whole(u(s.channels), spec::kernel_lanes) *
           whole(u(s.out_channels), spec::int8_group_kernels);
}

std::uint64_t macs_of(const ConvolutionShape& s) {
    const auto u = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    return u(s.out_height) * u(s.out_width) * u(s.window.kernel_h) * u(s.window.kernel_w) *
           u(s.out_channels) * (s.depthwise ? 1 : u(s.channels));
}

OperatorReport cost_of(const Plan& plan, const Step& step) {
    OperatorReport r;
    r.index = step.node;
    r.name = plan.graph->nodes[step.node].name;
    std::uint64_t array = 0;
    if (const auto* conv = std::get_if<ConvolutionStep>(&step.kind)) {
        r.tasks = conv->tasks();
        r.data_banks = conv->buffer.data_banks;
        r.weight_banks = conv->buffer.weight_banks;
        r.macs = macs_of(conv->shape);
        r.bytes = moved(plan, step, *conv);
        r.worst_gain_error = conv->numbers.worst_gain_error;
        for (std::int32_t c = 0; c < conv->shape.out_channels; c += conv->tile_channels)
            array += array_cycles(conv->part(c));
    } else if (const auto* sum = std::get_if<SumStep>(&step.kind)) {
        r.tasks = 1;
        r.bytes = moved(plan, step, *sum);
    }
    const double memory = static_cast<double>(r.bytes.total()) / spec::assumed::bytes_per_cycle;
    r.cycles = std::max(array, static_cast<std::uint64_t>(memory)) +
               r.tasks * static_cast<std::uint64_t>(spec::assumed::task_cycles);
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
    if (conv.channel_tiles() > 1) out.emplace_back("a direct convolution in tasks of 16 kernels");
    if (conv.sum && n.multiplies) out.emplace_back("a sum behind the factors of BS");
    if (conv.sum && conv.sum->relu) out.emplace_back("ReLU of the element-wise stage");
    if (by_channel && conv.shape.depthwise)
        out.emplace_back("operands by channel of a depthwise convolution, 64 bytes for 8 channels");
    if (conv.shape.depthwise && (w.dilation_h > 1 || w.dilation_w > 1))
        out.emplace_back("a depthwise convolution with dilation");
    if (w.top > 1 || w.left > 1) out.emplace_back("padding of more than one pixel");
    if (w.stride_h > 2 || w.stride_w > 2) out.emplace_back("a stride above two");
    if (conv.shape.height != conv.shape.width) out.emplace_back("an image that is not square");
    if (std::holds_alternative<compiler::AveragePool>(plan.graph->nodes[step.node].operation))
        out.emplace_back("a pool as a depthwise convolution with equal weights");
    if (conv.shape.out_channels % static_cast<std::int32_t>(spec::atom_bytes) != 0)
        out.emplace_back("lanes written behind the last channel");
}

void forms_of(const SumStep& sum, Forms& out) {
    out.emplace_back("an element-wise sum of int8 from memory");
    if (sum.relu) out.emplace_back("ReLU of the element-wise stage");
}

}  // namespace

std::vector<OperatorReport> report_of(const Plan& plan) {
    std::vector<OperatorReport> out;
    for (const Step& step : plan.steps) out.push_back(cost_of(plan, step));
    return out;
}

void add_unproven(const Plan& plan, std::vector<UnprovenForm>& forms) {
    std::size_t tasks = 0;
    for (const Step& step : plan.steps) {
        Forms used;
        if (const auto* conv = std::get_if<ConvolutionStep>(&step.kind)) {
            forms_of(plan, step, *conv, used);
            tasks += conv->tasks();
        } else if (const auto* sum = std::get_if<SumStep>(&step.kind)) {
            forms_of(*sum, used);
            ++tasks;
        }
        for (std::string& what : used) {
            const auto known = std::ranges::find(forms, what, &UnprovenForm::what);
            if (known != forms.end())
                ++known->operators;
            else
                forms.push_back({std::move(what), 1});
        }
    }
    if (tasks > 1) forms.push_back({"tasks of int8 in a chain", plan.steps.size()});
}

}  // namespace reef::rk3588::lowering
