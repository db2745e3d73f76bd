#include "transfer_plan.h"

#include <algorithm>
#include <utility>

#include "dma_sequence.h"

namespace reef::edgetpu::sim {
namespace {

bool uses_scratch(const Executable& executable) {
    if (!executable.dma_hints) return false;
    return std::ranges::any_of(executable.dma_hints->hints, [](const DmaHint& hint) {
        const auto* dma = std::get_if<DmaDescriptorHint>(&hint.what);
        return dma != nullptr && dma->meta.base == BaseAddress::scratch;
    });
}

Status add(const FiredTransfer& fired, bool& scratch_is_on_its_way, TransferPlanner& planner) {
    if (fired.tag >= Tag::interrupt_0)
        return planner.add_interrupt(static_cast<int>(fired.tag) -
                                     static_cast<int>(Tag::interrupt_0));
    const bool out = fired.tag == Tag::output_activations;
    const bool scratch = fired.region == BaseAddress::scratch;
    if (scratch && !out && std::exchange(scratch_is_on_its_way, false)) planner.add_fence();
    scratch_is_on_its_way |= scratch && out;
    return planner.add_transfer(fired.region, fired.layer,
                                out ? edgetpu::Direction::outfeed : edgetpu::Direction::infeed,
                                fired.offset, fired.bytes);
}

}  // namespace

Result<TransferPlan> transfer_plan(const Executable& executable) {
    if (!uses_scratch(executable)) return plan_transfers(executable);
    TransferPlanner planner(executable);
    const auto streams = REEF_TRY(in_place(dma_sequences(executable), to_string(executable.type)));
    bool scratch_is_on_its_way = false;
    for (std::size_t stream = 0; stream < streams.size(); ++stream) {
        REEF_CHECK(planner.add_stream(stream));
        for (const auto& fired : merged(streams[stream]))
            REEF_CHECK(
                in_place(add(fired, scratch_is_on_its_way, planner), to_string(executable.type)));
    }
    return std::move(planner).take(executable.dma_hints->fully_deterministic);
}

}  // namespace reef::edgetpu::sim
