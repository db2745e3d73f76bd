#include "edgetpu/compiler/emitter.h"

#include <algorithm>

namespace reef::edgetpu::lowering {
namespace {

constexpr std::uint32_t all_engines = (1U << 10U) - 1;
constexpr std::uint32_t all_tile_counters = (1U << 19U) - 1;
constexpr std::uint32_t all_but_producers =
    all_tile_counters & ~(1U << counter::RING_PRODUCER_A_ | 1U << counter::RING_PRODUCER_B_);
constexpr std::uint32_t all_scalar_engines = (1U << 5U) - 1;
constexpr std::uint32_t all_scalar_counters = (1U << 9U) - 1;
constexpr std::uint32_t notify_core = 1;
constexpr std::size_t word_bits = 128;
/// What a START counts: all but itself and END.
constexpr std::size_t uncounted_words = 2;
constexpr unsigned end_bits = 0x80;
/// A stream has so many words at most between START and END.
constexpr std::size_t most_words = 16384;

template <typename Dimensions>
LoopNest nest_of(unsigned dimensions, std::int32_t base, const Dimensions& given) {
    LoopNest out{.base = base, .dimensions = dimensions};
    std::int32_t back = 0;
    unsigned d = 0;
    for (const auto& [stride, count] : given) {
        out.step[d] = stride - back;
        out.count[d] = count;
        back += stride * static_cast<std::int32_t>(count - 1);
        if (stride != 0) out.mask |= 1U << d;
        ++d;
    }
    for (; d < dimensions; ++d) out.step[d] = -back;
    return out;
}

}  // namespace

LoopNest nest(unsigned dimensions, std::int32_t base, std::initializer_list<Dimension> given) {
    return nest_of(dimensions, base, given);
}
LoopNest nest(unsigned dimensions, std::int32_t base, const std::vector<Dimension>& given) {
    return nest_of(dimensions, base, given);
}

LoopNest rotating(LoopNest nest, unsigned level, std::int32_t size) {
    nest.rotate_level = level;
    nest.rotate_size = size;
    return nest;
}

LoopNest loops(std::initializer_list<std::uint32_t> counts) {
    LoopNest out{.dimensions = LoopNest::most_dimensions};
    std::ranges::copy(counts, out.count.begin());
    return out;
}

LoopNest fifo_pass(std::int64_t first, std::int64_t units, std::uint32_t fifo_units,
                   std::uint32_t inner) {
    const auto passes = static_cast<std::uint32_t>((units + inner - 1) / inner);
    const auto last = static_cast<std::uint32_t>(units - std::int64_t{passes - 1} * inner);
    LoopNest out =
        nest(3, static_cast<std::int32_t>(first % fifo_units), {{1, inner}, {0, passes}});
    if (last != inner) {
        out.crop_level = 1;
        out.crop_count = last;
        out.crop_left_out = inner - last;
    }
    return rotating(out, 1, static_cast<std::int32_t>(inner));
}

void Emitter::fence(std::uint32_t reset_counters, std::uint32_t notify) {
    program::Fence fence;
    fence.tiles = every_tile;
    fence.sequence = next_sequence();
    fence.caching = caching_;
    fence.engines = all_engines;
    fence.reset_counters = reset_counters;
    fence.notify = notify;
    scalar(fence);
}

void Emitter::wait_for_tiles(std::uint32_t engines, std::uint32_t reset_counters) {
    program::Sync sync;
    sync.tiles = every_tile;
    sync.notified_count = 1;
    sync.notified_tiles = every_tile;
    sync.engines = engines;
    sync.reset_counters = reset_counters;
    scalar(sync);
}

void Emitter::full_stop() {
    fence(all_but_producers, notify_core);
    wait_for_tiles();
}

void Emitter::reset_scalar(std::uint32_t counters, std::int32_t value) {
    program::Sync sync;
    sync.reset_counters = counters;
    sync.reset_value = value;
    sync.engines = awaited_engines;
    scalar(sync);
}

void Emitter::set(unsigned reg, std::uint32_t value) {
    program::Bundle bundle;
    bundle.alu = {spec::AluOp::movi_, static_cast<std::uint8_t>(reg), 0, value};
    scalar(bundle);
}

void Emitter::set_address(unsigned reg, Meta meta) {
    patches_.push_back({code_.size(), std::move(meta)});
    set(reg, 0);
}

void Emitter::copy(unsigned reg, unsigned from) {
    program::Bundle bundle;
    bundle.alu = {spec::AluOp::mov_, static_cast<std::uint8_t>(reg), 0, from};
    scalar(bundle);
}

void Emitter::transfer(std::pair<unsigned, unsigned> address, std::pair<unsigned, unsigned> use,
                       std::uint32_t bytes, spec::DmaTag tag) {
    namespace word = spec::value::descriptor_word;
    const auto store = [](std::uint32_t at, unsigned reg) {
        return program::Bundle::Store{spec::StoreOp::descriptor_, at,
                                      static_cast<std::uint8_t>(reg)};
    };
    const auto set_too = [](unsigned reg, std::uint32_t value) {
        return program::Bundle::Alu{spec::AluOp::movi_, static_cast<std::uint8_t>(reg), 0, value};
    };
    scalar(program::Bundle{.store = store(word::address_low_, address.first)});
    scalar(program::Bundle{.store = store(word::address_high_, address.second),
                           .alu = set_too(use.first, bytes)});
    scalar(program::Bundle{.store = store(word::bytes_, use.first),
                           .alu = set_too(use.second, static_cast<std::uint32_t>(tag))});
    scalar(program::Bundle{.store = store(word::tag_, use.second)});
    scalar(program::Bundle{.store = {spec::StoreOp::fire_, 0, 0}});
}

void Emitter::start() {
    fence(all_tile_counters, notify_core);
    wait_for_tiles(all_scalar_engines, all_scalar_counters);
}

void Emitter::end(std::pair<unsigned, unsigned> halves, std::pair<unsigned, unsigned> copies,
                  std::pair<unsigned, unsigned> use) {
    set(halves.first, 0);
    set(halves.second, 0);
    copy(copies.first, std::max(halves.first, halves.second));
    copy(copies.second, std::min(halves.first, halves.second));
    transfer(copies, use, 0, spec::DmaTag::interrupt_0_);
    scalar(program::Halt{.last = true});
    for (int i = 0; i < 4; ++i) scalar(program::Bundle{});
}

Result<Emitter::Stream> Emitter::finish() {
    Stream stream;
    std::vector<std::size_t> word_of;
    const auto append = [&](const program::TypedInstruction& one) -> Status {
        const auto encoded = REEF_TRY(program::encode(one));
        const Bytes bytes = encoded.bytes();
        stream.bytes.insert(stream.bytes.end(), bytes.begin(), bytes.end());
        return {};
    };
    REEF_CHECK(append({program::Start{}}));
    for (const auto& one : code_) {
        word_of.push_back(stream.bytes.size() * 8 / word_bits);
        if (auto done = append(one); !done) {
            refused_ = word_of.size() - 1;
            return std::unexpected(std::move(done).error());
        }
    }
    REEF_CHECK(append({program::End{.bits = end_bits}}));
    const std::size_t words = stream.bytes.size() * 8 / word_bits - uncounted_words;
    if (words > most_words)
        return fail(Cause::unsupported, "the program has more words than one instruction stream");
    const program::Start start{.bits = static_cast<std::uint32_t>(words * word_bits)};
    const auto first = REEF_TRY(program::encode({start}));
    std::ranges::copy(first.bytes(), stream.bytes.begin());
    const auto& operand =
        spec::instructions[spec::op::bundle].fields[spec::field::bundle::alu_operand];
    for (auto& [instruction, meta] : patches_)
        stream.fields.push_back(
            {std::move(meta),
             static_cast<std::int32_t>(word_of[instruction] * word_bits + operand.position)});
    return stream;
}

}  // namespace reef::edgetpu::lowering
