// Tensors that go to the host's scratch memory and come back. Each tile's part lies behind that of
// the one before, as the tile stores it without a halo.
#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

/// The scalar core's registers of the scratch memory's address, halves low and high.
constexpr std::pair scratch_address{3U, 2U};
/// ... of what transfer_activations() takes.
constexpr std::pair transfer_address{5U, 4U};

constexpr std::int32_t slot_words = spec::row_bytes / spec::narrow_word_bytes;

/// Two rows take turns.
LoopNest part_slots_of(const TilePart& part) {
    return rotating(nest(4, gather_row, {{0, part.wide_rows()}}), 0, 1);
}

std::optional<program::WideToNarrow> part_store(const Tensor& tensor, unsigned tile) {
    const auto part = part_of(tensor, tile);
    if (!part) return std::nullopt;
    program::WideToNarrow store;
    store.src = part_slots_of(*part);
    store.dst = part->source;
    store.written = signal_at(0);
    store.wait[0] = wait_for(counter::RING_READ_A_, 0, 1, 1);
    store.row_level = part->row_level;
    return store;
}

program::RingReceive part_receive(const TilePart& part) {
    program::RingReceive take;
    take.ring = program::Ring::a;
    take.dst = part_slots_of(part);
    take.ring_read = signal_at(0);
    take.wait[0] = room_for(counter::WIDE_TO_NARROW_, 0, -slot_words, slot_words);
    return take;
}

}  // namespace

void emit(Emission& e, const Step& step, const SpillStep&) {
    const Tensor& tensor = e.tensor(step.in[0]);
    e.code.copy_address(transfer_address, scratch_address, e.tensor(step.out).base);
    constexpr std::int32_t row = gather_source_row;
    (void)send_to_host(
        e, tensor, [&](unsigned t) { return to_ring(tensor, t, row); }, row);
}

void emit(Emission& e, const Step& step, const FetchStep&) {
    const Tensor &from = e.tensor(step.in[0]), &to = e.tensor(step.out);
    take_from_host(e, from.host_bytes);
    e.code.copy_address(transfer_address, scratch_address, from.base);
    transfer_activations(e, from.host_bytes, spec::DmaTag::input_activations_);
    e.code.by_class([&](unsigned t) { return part_store(to, t); });
    std::int64_t first = 0;
    for (unsigned t = 0; t < all_tiles; ++t) {
        const auto part = part_of(to, t);
        if (!part) continue;
        const auto tile = static_cast<TileSet>(1U << t);
        e.code.tile(tile, part_receive(*part));
        e.code.scalar(push_of_input(first, part->units(), tile));
        first += part->units();
    }
}

}  // namespace reef::edgetpu::lowering
