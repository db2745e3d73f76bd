#include "edgetpu/compiler/emitter.h"

#include <algorithm>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::lowering {
namespace {

template <typename Values>
constexpr std::uint32_t all_of(const Values& values) {
    return (1U << std::size(values)) - 1;
}
constexpr std::uint32_t all_engines = all_of(spec::tile_engine_values);
constexpr std::uint32_t all_tile_counters = all_of(spec::tile_counter_values);
constexpr std::uint32_t all_scalar_engines = all_of(spec::scalar_engine_values);
constexpr std::uint32_t all_scalar_counters = all_of(spec::scalar_counter_values);
/// Of the scalar core, which no program of ours keeps busy: a wait for nothing.
constexpr std::uint32_t unused_engine = 1U << spec::value::scalar_engine::HOST_FIFO_;

constexpr std::size_t word_bits = 8 * word_bytes;

constexpr std::size_t words_of(std::size_t instruction) {
    return spec::instructions[instruction].words;
}
/// What a START counts: all but itself and END.
constexpr std::size_t uncounted_words = words_of(spec::op::start) + words_of(spec::op::end);
/// The fence at a stream's beginning, its halt and the empty bundles behind that.
constexpr std::size_t words_of_ends = words_of(spec::op::fence) + words_of(spec::op::halt) +
                                      spec::bundles_behind_halt * words_of(spec::op::bundle);

/// Whose work a flight of parameters is.
std::uint32_t engines_of(const Emitter::Flight& flight) {
    namespace engine = spec::value::tile_engine;
    const auto receiver =
        flight.ring == program::Ring::a ? engine::RING_CONSUMER_0_ : engine::RING_CONSUMER_1_;
    return 1U << engine::RING_PRODUCER_ | 1U << receiver;
}

constexpr std::uint32_t ring_counters = 1U << counter::RING_READ_A_ | 1U << counter::RING_READ_B_;

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
    fence.caching = caching_;
    fence.engines = all_engines & ~(flight_ ? engines_of(*flight_) : 0);
    fence.reset_counters = reset_counters;
    fence.notify = notify;
    scalar(fence);
    for (const auto ring : {program::Ring::a, program::Ring::b})
        if (!flight_ || flight_->ring != ring)
            receivers_since_[static_cast<std::size_t>(ring)] = code_.size();
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
    const bool keeps_consumed = flight_ && awaits_consumption(flight_->ring);
    const std::uint32_t kept =
        (flight_ ? ring_counters : 0) | (keeps_consumed ? 1U << counter::PARAMETERS_ : 0);
    fence(all_but_producers & ~kept, notification::core_);
    // A relay keeps the scalar core's engines busy.
    wait_for_tiles(flight_ && flight_->relayed ? unused_engine : awaited_engines);
    others_since_ = code_.size();
    if (!keeps_consumed) consumed_since_ = code_.size();
    if (flight_) return;
    rings_since_ = code_.size();
    if (!loop_) stops_.push_back(code_.size());
}

bool Emitter::awaits_consumption(program::Ring ring) const {
    for (std::size_t i = receivers_since_[static_cast<std::size_t>(ring)]; i < code_.size(); ++i) {
        const auto* op = std::get_if<program::RingReceive>(&code_[i].operation);
        const auto consumed = [](const program::Wait& w) {
            return w.enabled && w.counter == counter::PARAMETERS_;
        };
        if (op != nullptr && op->ring == ring && std::ranges::any_of(op->wait, consumed))
            return true;
    }
    return false;
}

namespace {

template <typename Op>
bool is_of_tile(const program::TypedInstruction& one, unsigned tile) {
    const auto* op = std::get_if<Op>(&one.operation);
    return op != nullptr && (op->work.tiles >> tile & 1U) != 0;
}

std::uint64_t events_of(const program::Signal& signal, const LoopNest& nest) {
    return signal.enabled ? nest.passes_from(signal.level) : 0;
}

}  // namespace

std::uint64_t Emitter::avdata_events(unsigned tile) const {
    std::uint64_t events = 0;
    for (std::size_t i = others_since_; i < code_.size(); ++i) {
        if (!is_of_tile<program::Tensor>(code_[i], tile)) continue;
        const auto& op = std::get<program::Tensor>(code_[i].operation);
        events += events_of(op.avdata, op.out);
    }
    return events;
}

std::uint64_t Emitter::received_events(unsigned tile, program::Direction to) const {
    std::uint64_t events = 0;
    for (std::size_t i = others_since_; i < code_.size(); ++i) {
        if (!is_of_tile<program::Mesh>(code_[i], tile)) continue;
        const auto& op = std::get<program::Mesh>(code_[i].operation);
        if (op.to == to) events += events_of(op.in, op.dst);
    }
    return events;
}

std::uint64_t Emitter::ring_events(unsigned tile, program::Ring ring) const {
    std::uint64_t events = 0;
    for (std::size_t i = rings_since_; i < code_.size(); ++i) {
        if (!is_of_tile<program::RingReceive>(code_[i], tile)) continue;
        const auto& op = std::get<program::RingReceive>(code_[i].operation);
        if (op.ring == ring) events += events_of(op.ring_read, op.dst);
    }
    return events;
}

std::uint64_t Emitter::consumed_events(unsigned tile) const {
    std::uint64_t events = 0;
    for (std::size_t i = consumed_since_; i < code_.size(); ++i) {
        if (!is_of_tile<program::Tensor>(code_[i], tile)) continue;
        const auto& op = std::get<program::Tensor>(code_[i].operation);
        events += events_of(op.parameters, op.par);
    }
    return events;
}

std::size_t Emitter::words_since_stop() const {
    std::size_t words = 0;
    for (std::size_t i = stops_.empty() ? 0 : stops_.back(); i < code_.size(); ++i)
        words += program::info_of(code_[i].operation).words;
    return words;
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

void Emitter::begin_loop(unsigned reg, std::uint32_t first) {
    set(reg, first);
    loop_ = code_.size();
}

void Emitter::end_loop(unsigned reg, std::uint32_t step, std::uint32_t end) {
    constexpr unsigned goes_on = 0;
    const auto calculate = [&](spec::AluOp op, unsigned dst, std::uint32_t operand) {
        scalar(program::Bundle{
            .alu = {op, static_cast<std::uint8_t>(dst), static_cast<std::uint8_t>(reg), operand}});
    };
    calculate(spec::AluOp::addi_, reg, step);
    calculate(spec::AluOp::lti_, goes_on, end);
    std::size_t words = 0;
    for (std::size_t i = *loop_; i < code_.size(); ++i)
        words += program::info_of(code_[i].operation).words;
    scalar(program::Branch{.condition = {.enabled = true, .predicate = goes_on, .sense = true},
                           .offset = -static_cast<std::int32_t>(words)});
    loop_.reset();
}

void Emitter::copy_address(std::pair<unsigned, unsigned> to, std::pair<unsigned, unsigned> from,
                           std::uint32_t offset) {
    const auto [low, high] = from;
    if (offset == 0) {
        copy(to.first, low);
        copy(to.second, high);
        return;
    }
    // The vendor's instructions. Without its top bit the low half carries when the sum of the rest
    // reaches that bit, which it can only where the bit was set.
    constexpr unsigned top_is_set = 0, carries = 1, rest = 6;
    constexpr std::uint32_t all_but_top = 0x7fffffff;
    const auto add = [&](spec::AluOp op, unsigned dst, unsigned src, std::uint32_t operand,
                         std::optional<unsigned> predicate = {}) {
        program::Bundle bundle;
        if (predicate)
            bundle.gate = {
                .enabled = true, .predicate = static_cast<std::uint8_t>(*predicate), .sense = true};
        bundle.alu = {op, static_cast<std::uint8_t>(dst), static_cast<std::uint8_t>(src), operand};
        scalar(bundle);
    };
    add(spec::AluOp::lti_, top_is_set, low, 0);
    add(spec::AluOp::ne_, carries, low, low);
    add(spec::AluOp::andi_, rest, low, all_but_top);
    add(spec::AluOp::addi_, rest, rest, offset, top_is_set);
    add(spec::AluOp::lti_, carries, rest, 0, top_is_set);
    add(spec::AluOp::addi_, to.first, low, offset);
    add(spec::AluOp::addi_, to.second, high, 0);
    add(spec::AluOp::addi_, to.second, to.second, 1, carries);
}

void Emitter::transfer(std::pair<unsigned, unsigned> address, std::pair<unsigned, unsigned> use,
                       std::uint32_t bytes, spec::DmaTag tag, std::uint32_t offset) {
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
    const bool parameters = tag == spec::DmaTag::parameters_;
    transfers_.push_back({code_.size(), parameters, offset, parameters ? bytes : 0});
    scalar(program::Bundle{.store = {spec::StoreOp::fire_, 0, 0}});
}

void Emitter::start() {
    fence(all_tile_counters, notification::core_);
    wait_for_tiles(all_scalar_engines, all_scalar_counters);
}

void Emitter::end(std::pair<unsigned, unsigned> halves, std::pair<unsigned, unsigned> copies,
                  std::pair<unsigned, unsigned> use) {
    set(halves.first, 0);
    set(halves.second, 0);
    copy(copies.first, std::max(halves.first, halves.second));
    copy(copies.second, std::min(halves.first, halves.second));
    transfer(copies, use, 0, spec::DmaTag::interrupt_0_);
}

/// From one full stop to another, as many as a stream holds.
Result<std::vector<Emitter::Part>> Emitter::cut() {
    std::vector<std::size_t> before{0};  // words in front of each instruction
    for (const auto& one : code_)
        before.push_back(before.back() + program::info_of(one.operation).words);
    std::vector<Part> parts;
    for (std::size_t begin = 0; begin < code_.size();) {
        const auto fits = [&](std::size_t end) {
            return before[end] - before[begin] + words_of_ends <= spec::stream_words;
        };
        std::size_t end = code_.size();
        if (!fits(end)) {
            const std::ranges::subrange behind(std::ranges::upper_bound(stops_, begin),
                                               stops_.end());
            const auto past = std::ranges::partition_point(behind, fits);
            if (past == behind.begin()) {
                refused_ = begin;
                return fail(Cause::unsupported,
                            "an operator has more instructions than one stream holds");
            }
            end = *std::prev(past);
        }
        parts.push_back({begin, end});
        begin = end;
    }
    return parts;
}

namespace {

std::uint32_t next_sequence(std::uint32_t& sequence) {
    const auto& fence = spec::instructions[spec::op::fence];
    return wrapped(sequence++, fence.fields[spec::field::fence::seq]);
}

void set_sequence(program::Operation& operation, std::uint32_t& sequence) {
    const auto number = [&] { return next_sequence(sequence); };
    std::visit(
        [&](auto& op) {
            if constexpr (requires { op.work; }) op.work.sequence = number();
            if constexpr (std::is_same_v<std::decay_t<decltype(op)>, program::Fence>)
                op.sequence = number();
        },
        operation);
}

}  // namespace

Result<Emitter::Stream> Emitter::encode(const Part& part, std::uint32_t& sequence) {
    Stream stream;
    const auto append = [&](const program::TypedInstruction& one) -> Status {
        const auto encoded = REEF_TRY(program::encode(one));
        const Bytes bytes = encoded.bytes();
        stream.bytes.insert(stream.bytes.end(), bytes.begin(), bytes.end());
        return {};
    };
    REEF_CHECK(append({program::Start{}}));
    if (part.begin != 0) {
        program::Fence fence;
        fence.tiles = every_tile;
        fence.engines = all_engines;
        fence.caching = caching_;
        fence.reset_counters = all_but_producers;
        fence.sequence = next_sequence(sequence);
        REEF_CHECK(append({fence}));
    }
    const auto& operand =
        spec::instructions[spec::op::bundle].fields[spec::field::bundle::alu_operand];
    for (std::size_t i = part.begin; i < part.end; ++i) {
        for (const auto& [instruction, meta] : patches_)
            if (instruction == i)
                stream.fields.push_back(
                    {meta, static_cast<std::int32_t>(stream.bytes.size() * 8 + operand.position)});
        set_sequence(code_[i].operation, sequence);
        if (auto done = append(code_[i]); !done) {
            refused_ = i;
            return std::unexpected(std::move(done).error());
        }
    }
    const bool last = part.end == code_.size();
    REEF_CHECK(append({program::Halt{.continues = !last, .last = last}}));
    for (unsigned i = 0; i < spec::bundles_behind_halt; ++i)
        REEF_CHECK(append({program::Bundle{}}));
    REEF_CHECK(append({program::End{.bits = words_of(spec::op::end) * word_bits}}));
    const std::size_t words = stream.bytes.size() * 8 / word_bits - uncounted_words;
    const auto first = REEF_TRY(
        program::encode({program::Start{.bits = static_cast<std::uint32_t>(words * word_bits)}}));
    std::ranges::copy(first.bytes(), stream.bytes.begin());
    return stream;
}

std::string_view Emitter::part_of(std::size_t instruction) const {
    const auto past = std::ranges::upper_bound(parts_, instruction, {},
                                               &std::pair<std::size_t, std::string_view>::first);
    return past == parts_.begin() ? std::string_view("start") : std::prev(past)->second;
}

Result<Emitter::Program> Emitter::finish() {
    Program program;
    std::uint32_t sequence = 0;
    const auto parts = REEF_TRY(cut());
    for (const Part& part : parts) program.streams.push_back(REEF_TRY(encode(part, sequence)));
    for (const Fired& one : transfers_) {
        std::size_t stream = 0;
        while (parts[stream].end <= one.instruction) ++stream;
        program.transfers.push_back({stream, one.parameters, one.offset, one.bytes});
    }
    return program;
}

}  // namespace reef::edgetpu::lowering
