// What a step adds to the sums of its position: one function for each kind of instruction.
#include <fmt/format.h>

#include <algorithm>

#include "tensor_engine.h"
#include "tensor_operands.h"

namespace reef::edgetpu::sim {
namespace {

constexpr unsigned lanes_of_blend = 4;

void tell_narrow(const Witness& witness, std::uint32_t first, unsigned bytes) {
    for (std::uint32_t word = first / narrow_word_bytes;
         word <= (first + bytes - 1) / narrow_word_bytes; ++word)
        witness.reads(Watched::narrow, word);
}

/// Whether reading any of those bytes would be a finding of its own.
bool any_suspicious(const Witness& witness, std::uint32_t first, unsigned bytes) {
    for (std::uint32_t word = first / narrow_word_bytes;
         word <= (first + bytes - 1) / narrow_word_bytes; ++word)
        if (witness.monitor->suspicious(witness.actor, Watched::narrow, witness.tile, word))
            return true;
    return false;
}

// Inputs without a weight are read and change nothing: rows of three channels, read by four.
void tell_inputs(const Witness& witness, const Operands& step, unsigned lanes) {
    const unsigned width = step.op.in_16bit ? 2 : 1;
    const unsigned elements = step.op.elements();
    if (!any_suspicious(witness, step.at.in, elements * width)) {
        tell_narrow(witness, step.at.in, elements * width);
        return;
    }
    for (unsigned j = 0; j < elements; ++j) {
        const std::uint32_t first = step.at.in + width * j;
        const auto weighs = [&] {
            for (unsigned lane = 0; lane < lanes; ++lane)
                if (step.weight(lane, j) != 0) return true;
            return false;
        };
        if (!any_suspicious(witness, first, width) || weighs()) tell_narrow(witness, first, width);
    }
}

void blend(const Work& work, const TensorStep& at, LaneSums& sums) {
    if (work.witness && at.pixel_weight != 0) tell_narrow(work.witness, at.in, lanes_of_blend);
    for (unsigned lane = 0; lane < lanes_of_blend; ++lane)
        sums[lane] += at.pixel_weight * work.tile.memory.narrow[at.in + lane];
}

/// Of bytes. `Sum` holds the products of a step.
template <unsigned elements, typename Sum>
void add_byte_products(const Operands& step, unsigned lanes, LaneSums& sums) {
    std::array<Sum, elements> x;
    for (unsigned j = 0; j < elements; ++j)
        x[j] = Sum{step.memory.narrow[step.at.in + j]} - step.op.in_zero;
    const unsigned quarter = elements == 1 ? step.at.parameter & 3U : 0;
    const auto* w = step.memory.wide[row_of(step.at.parameter)].data() + quarter;
    for (unsigned lane = 0; lane < lanes; ++lane, w += sizeof(std::int32_t)) {
        Sum sum = 0;
        for (unsigned j = 0; j < elements; ++j) sum += x[j] * (w[j] - Sum{step.zero[lane]});
        sums[lane] += sum;
    }
}

template <unsigned elements>
void add_byte_products(const Operands& step, unsigned lanes, LaneSums& sums) {
    const auto is_byte = [](std::int32_t zero) { return zero >= -255 && zero <= 255; };
    if (!step.op.par_zero_rows && is_byte(step.op.in_zero) && is_byte(step.op.par_zero))
        add_byte_products<elements, std::int32_t>(step, lanes, sums);
    else
        add_byte_products<elements, std::int64_t>(step, lanes, sums);
}

void add_products(const Operands& step, unsigned lanes, LaneSums& sums) {
    const unsigned elements = step.op.elements();
    if (!step.op.in_16bit && !step.op.par_16bit)
        return elements == 4 ? add_byte_products<4>(step, lanes, sums)
                             : add_byte_products<1>(step, lanes, sums);
    for (unsigned lane = 0; lane < lanes; ++lane)
        for (unsigned j = 0; j < elements; ++j)
            sums[lane] += step.activation(j) * step.weight(lane, j);
}

void add_parameters(const Operands& step, unsigned lanes, LaneSums& sums) {
    const unsigned elements = step.op.elements();
    for (unsigned lane = 0; lane < lanes; ++lane)
        for (unsigned j = 0; j < elements; ++j) sums[lane] += step.weight(lane, j);
}

void take_largest(const Operands& step, unsigned lanes, LaneSums& sums) {
    for (unsigned lane = 0; lane < lanes; ++lane)
        sums[lane] = std::max(sums[lane], step.weight(lane, 0));
}

}  // namespace

bool TensorEngine::read_zeros(Work& work, std::uint64_t group, Operands& step) const {
    if (!op_->par_zero_rows) {
        step.zero.fill(op_->kind == TensorKind::max ? op_->par_zero + op_->in_zero : op_->par_zero);
        return true;
    }
    const std::uint64_t row = zero_row_of(*op_, group);
    if (row >= wide_rows) {
        work.stop(fmt::format("reads wide row {:#x}", row));
        return false;
    }
    std::memcpy(step.zero.data(), work.tile.memory.wide[row].data(), row_bytes);
    work.witness.reads(Watched::wide, static_cast<std::uint32_t>(row));
    return true;
}

bool TensorEngine::accumulate(Work& work, LaneSums& sums, std::uint64_t position,
                              std::uint64_t group) {
    TensorStep at{.position = position,
                  .in = static_cast<std::uint32_t>(in_.address()),
                  .parameter = static_cast<std::uint32_t>(par_.address())};
    if (op_->kind == TensorKind::resize) find_pixel(op_->resize, loops_, at);
    if (!reaches(work, *op_, at)) return false;
    if (watched_) {
        work.tap->step(work.tile.number, work.tile.memory, at);
        return true;
    }
    if (op_->kind == TensorKind::resize) {
        blend(work, at, sums);
        return true;
    }
    Operands step(*op_, work.tile.memory, at);
    if (!read_zeros(work, group, step)) return false;
    if (work.witness) {
        work.witness.reads(Watched::wide, row_of(at.parameter));
        if (op_->kind == TensorKind::mac)
            tell_inputs(work.witness, step,
                        group + 1 == shape_.groups ? op_->last_lanes : op_->lanes);
    }
    if (op_->kind == TensorKind::mac)
        add_products(step, used_lanes_, sums);
    else if (op_->kind == TensorKind::sum)
        add_parameters(step, used_lanes_, sums);
    else
        take_largest(step, used_lanes_, sums);
    return true;
}

}  // namespace reef::edgetpu::sim
