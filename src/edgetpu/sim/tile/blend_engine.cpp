#include "blend_engine.h"

#include "requantise.h"
#include "tensor_operands.h"

namespace reef::edgetpu::sim {
namespace {

constexpr unsigned taps_of_axis = 2;
constexpr unsigned steps_of_position = taps_of_axis * taps_of_axis;

}  // namespace

bool BlendEngine::position(Work& work) {
    const auto& memory = work.tile.memory;
    std::array<std::int32_t, narrow_word_bytes> sums{};
    for (unsigned step = 0; step < steps_of_position; ++step) {
        TensorStep at{
            .position = 0, .in = static_cast<std::uint32_t>(in_.address()), .parameter = 0};
        find_pixel(op_->resize, loops_, at);
        if (!reaches(work, *op_, at)) return false;
        const auto weight = static_cast<std::int32_t>(at.pixel_weight);
        for (unsigned lane = 0; lane < sums.size(); ++lane)
            sums[lane] += weight * memory.narrow[at.in + lane];
        in_.advance();
        loops_.advance();
    }
    std::array<std::uint8_t, narrow_word_bytes> word{};
    for (unsigned lane = 0; lane < sums.size(); ++lane)
        word[lane] = static_cast<std::uint8_t>(stored(scaled(sums[lane], op_->scale, *op_), *op_));
    return results_.store(work, word);
}

Outcome BlendEngine::advance(Work& work) {
    bool moved = false;
    while (!loops_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, false, loops_))
            return work.wait(*unready, moved);
        if (!position(work)) return Outcome::waiting;
        moved = true;
        work.spend(steps_of_position);
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
