#include "edgetpu/compiler/lstm.h"

#include <algorithm>
#include <memory>

namespace reef::edgetpu::lowering {
namespace {

// What the vendor's compiler takes for values between 0 and 1, and between -1 and 1.
constexpr float gate_step = 1.0F / 255;
constexpr float candidate_step = 2.0F / 255;
constexpr float fine_step = 2.0F / 32767;  ///< of the tanh of the cell, and of products of gates

Scaling in_16_bits(float scale, std::int32_t zero) {
    constexpr std::int32_t largest = 65535;
    return {0, zero, scale, {static_cast<float>(-zero), static_cast<float>(largest - zero)}};
}

}  // namespace

compiler::Convolution stacked(const std::array<compiler::Convolution, 4>& gates,
                              std::int32_t gate_bytes) {
    const compiler::Convolution& first = gates.front();
    const auto units = static_cast<std::size_t>(first.out_channels);
    const auto depth = static_cast<std::size_t>(first.in_channels);
    const auto stride = static_cast<std::size_t>(gate_bytes);
    compiler::Convolution all = first;
    all.out_channels = static_cast<std::int32_t>(gates.size()) * gate_bytes;
    all.weight_scales.clear();
    all.biases.assign(gates.size() * stride, 0);
    auto weights = std::make_shared<std::vector<std::byte>>(
        gates.size() * stride * depth, static_cast<std::byte>(first.weight_zero));
    for (std::size_t i = 0; i < gates.size(); ++i) {
        const compiler::Convolution& gate = gates[StackedGates::order[i]];
        all.weight_scales.insert(all.weight_scales.end(), stride, gate.weight_scales.front());
        std::ranges::copy(gate.biases,
                          all.biases.begin() + static_cast<std::ptrdiff_t>(i * stride));
        std::ranges::copy(gate.weights.view().first(units * depth),
                          weights->begin() + static_cast<std::ptrdiff_t>(i * stride * depth));
    }
    all.weights = SharedBytes(*weights, weights);
    return all;
}

LstmStep lstm_step(const compiler::Lstm& lstm, const compiler::Value& hidden) {
    const auto limits = clamp_limits(hidden.scale, hidden.zero, 0, 255, ActivationLimits::none);
    const float cell = lstm.cell_scale;
    LstmStep step;
    step.steps = static_cast<std::int32_t>(hidden.pixels());
    step.gate_bytes = gate_bytes_of(lstm);
    step.initial = -2 * hidden.zero;
    step.product = {hidden.zero, hidden.zero, 1.0F, limits};
    step.gate = {0, 0, hidden.scale, {spec::sigmoid_255.least, spec::sigmoid_255.most}};
    step.candidate = {
        0, LstmStep::candidate_zero, hidden.scale, {-spec::tanh_127_5.most, spec::tanh_127_5.most}};
    step.added =
        in_16_bits(layer_multiplier(gate_step, candidate_step, fine_step), LstmStep::added_zero);
    step.kept = in_16_bits(layer_multiplier(gate_step, cell, cell), LstmStep::cell_zero);
    step.cell_factors = sum_factors(cell, fine_step);
    step.cell_initial = -(LstmStep::cell_zero * step.cell_factors.first +
                          LstmStep::added_zero * step.cell_factors.second);
    step.cell = in_16_bits(sum_multiplier(cell, step.cell_factors, cell), LstmStep::cell_zero);
    step.squashed = {0,
                     LstmStep::added_zero,
                     cell / static_cast<float>(step.cell_factors.first),
                     {-spec::tanh_16383_5.most, spec::tanh_16383_5.most}};
    step.output = {0, hidden.zero, layer_multiplier(gate_step, fine_step, hidden.scale), limits};
    return step;
}

std::uint64_t lstm_bytes(const LstmStep& lstm) {
    return static_cast<std::uint64_t>(lstm.gate_bytes) * LstmRoom::of_gate;
}

}  // namespace reef::edgetpu::lowering
