#include "program.h"

#include <fmt/format.h>

#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::sim {
namespace {

constexpr std::uint32_t all_tiles = (1U << spec::tile_count) - 1;

/// Reads one instruction's fields, by the indices that the description's generator gives them.
class Fields {
  public:
    explicit Fields(const Instruction& instruction) : instruction_(&instruction) {}

    [[nodiscard]] std::int64_t number(unsigned field) const {
        return instruction_->value(instruction_->info->fields[field]);
    }
    template <typename T = std::uint32_t>
    [[nodiscard]] T get(unsigned field) const {
        return static_cast<T>(number(field));
    }
    /// Of a field that holds a count less one.
    [[nodiscard]] std::uint32_t count(unsigned field) const { return get(field) + 1; }
    [[nodiscard]] bool flag(unsigned field) const { return number(field) != 0; }
    [[nodiscard]] float real(unsigned field) const {
        return std::bit_cast<float>(get<std::uint32_t>(field));
    }
    [[nodiscard]] Nest nest(std::string_view name) const {
        for (const auto& group : instruction_->info->groups)
            if (group.name == name) return read_nest(*instruction_, group);
        return {};
    }
    /// `enable` is the signal's first field, its level follows.
    [[nodiscard]] Signal signal(unsigned enable) const {
        return {flag(enable), get<std::uint8_t>(enable + 1)};
    }
    template <std::size_t most>
    [[nodiscard]] Waits<most> waits() const {
        Waits<most> out;
        for (const auto& group : instruction_->info->groups) {
            if (group.kind != GroupKind::wait) continue;
            const unsigned at = group.first;  // counter, level, start, step, enable[, side]
            if (!flag(at + 4) || out.count == most) continue;
            out.all[out.count++] = {get<std::uint8_t>(at), get<std::uint8_t>(at + 1),
                                    group.count > 5 && flag(at + 5), get<std::int32_t>(at + 2),
                                    get<std::int32_t>(at + 3)};
        }
        return out;
    }

  private:
    const Instruction* instruction_;
};

std::unexpected<Error> not_modelled(const Instruction& instruction, std::string_view what,
                                    std::string_view needed) {
    return fail(Cause::unsupported, fmt::format("not modelled: {}", what),
                fmt::format("word {:#06x} {}", instruction.word, instruction.info->name),
                std::string(needed));
}

RingSend ring_send(const Fields& f) {
    namespace n = spec::field::ring_send;
    return {.src = f.nest("src"),
            .ring_write = f.signal(n::signal_ring_write_enable),
            .producer = f.signal(n::signal_producer_enable),
            .waits = f.waits<3>(),
            .ring = f.flag(n::ring_b) ? Ring::b : Ring::a,
            .to_tiles = f.get<std::uint16_t>(n::to_tiles),
            .to_scalar = f.flag(n::to_scalar)};
}

RingReceive ring_receive(const Fields& f, Ring ring) {
    namespace n = spec::field::ring_receive_a;
    return {.dst = f.nest("dst"),
            .ring = ring,
            .has_head = f.flag(n::head_enable),
            .head_level = f.get(n::head_level),
            .head_base = f.get<std::int32_t>(n::head_base),
            .head_last = f.get<std::int32_t>(n::head_last),
            .head_rows = f.get(n::head_rows),
            .ring_read = f.signal(n::signal_ring_read_enable),
            .waits = f.waits<1>()};
}

NarrowToWide narrow_to_wide(const Fields& f) {
    namespace n = spec::field::narrow_to_wide;
    return {.src = f.nest("src"),
            .dst = f.nest("dst"),
            .format = f.get<RowFormat>(n::format),
            .row_level = f.get(n::row_level),
            .written = f.signal(n::signal_narrow_to_wide_enable),
            .waits = f.waits<6>()};
}

WideToNarrow wide_to_narrow(const Fields& f) {
    namespace n = spec::field::wide_to_narrow;
    return {.src = f.nest("src"),
            .dst = f.nest("dst"),
            .to_scaling = f.flag(n::to_scaling),
            .row_level = f.get(n::row_level),
            .skip_words = f.flag(n::skip_enable) ? f.count(n::skip_limit) : 0,
            .written = f.signal(n::signal_written_enable),
            .waits = f.waits<6>()};
}

MeshTransfer mesh(const Fields& f, Direction4 to) {
    namespace n = spec::field::mesh_south;
    MeshTransfer m{.to = to,
                   .fills = f.flag(n::fill),
                   .fill_value = f.get(n::fill_value),
                   .src = f.nest("src"),
                   .dst = f.nest("dst"),
                   .out = f.signal(n::signal_out_enable),
                   .in = f.signal(n::signal_in_enable),
                   .waits = f.waits<4>()};
    m.sends = m.src.moves();
    m.receives = m.dst.moves() || m.fills;
    // A transfer of a single word has no mark that tells its direction: assumed from which of the
    // two addresses is set.
    if (!m.sends && !m.receives) (m.dst.base != 0 ? m.receives : m.sends) = true;
    return m;
}

Table table(const Fields& f) {
    namespace n = spec::field::load_table;
    Table t;
    for (unsigned s = 0; s < t.coefficients.size(); ++s)
        for (unsigned j = 0; j < 5; ++j) t.coefficients[s][j] = f.real(n::segment0_c0 + 5 * s + j);
    for (unsigned s = 0; s < t.breaks.size(); ++s) t.breaks[s] = f.real(n::break0 + s);
    return t;
}

Fence fence(const Fields& f) {
    namespace n = spec::field::fence;
    return {.reset_counters = f.get(n::reset_counters),
            .reset_value = f.get<std::int32_t>(n::reset_value),
            .engines = f.get(n::engines),
            .notify = (f.get(n::notify) & 1U) != 0};
}

Nest tensor_loops(const Fields& f) {
    namespace n = spec::field::mac;
    Nest loops;
    loops.dimensions = Nest::most_dimensions;
    for (unsigned d = 0; d < loops.dimensions; ++d) loops.count[d] = f.count(n::loop_limit0 + d);
    loops.crop_count = f.count(n::loop_crop_last);
    loops.crop_level = f.get(n::loop_crop_level);
    return loops;
}

// The accumulator's rotation by one row or more moves on after each result: the dimensions below
// its level are the reduction, whatever the mask says.
std::uint64_t reduction_steps(const Nest& acc) {
    return acc.rotate_size == 0 ? 0 : acc.visits_below(acc.rotate_level);
}

Resize resize(const Fields& f) {
    namespace n = spec::field::resize;
    return {.x = {f.get(n::x_level), f.get(n::x_phase), f.get(n::x_step)},
            .y = {f.get(n::y_level), f.get(n::y_phase), f.get(n::y_step)},
            .pixel_stride = f.get<std::int32_t>(n::pixel_stride),
            .row_stride = f.get<std::int32_t>(n::row_stride)};
}

TensorOp tensor(const Fields& f, TensorKind kind) {
    namespace n = spec::field::mac;
    TensorOp t{.kind = kind,
               .loops = tensor_loops(f),
               .in = f.nest("in"),
               .out = f.nest("out"),
               .par = f.nest("par"),
               .acc = f.nest("acc"),
               .avdata = f.signal(n::signal_avdata_enable),
               .parameters = f.signal(n::signal_parameters_enable),
               .partial_sums = f.signal(n::signal_partial_sums_enable),
               .waits = f.waits<2>(),
               .acc_internal = f.flag(n::acc_internal),
               .in_16bit = f.flag(n::in_16bit),
               .par_16bit = f.flag(n::par_16bit),
               .single = f.flag(n::single),
               .par_zero_rows = f.flag(n::par_zero_rows),
               .zero_row_first = f.get<std::int32_t>(n::zero_row_first),
               .zero_row_last = f.get<std::int32_t>(n::zero_row_last),
               .zero_row_step = f.get<std::int32_t>(n::zero_row_step),
               .group_level = f.get(n::group_level),
               .reduction_mask = f.get(n::reduction_mask),
               .lanes = f.count(n::lanes),
               .last_lanes = f.count(n::last_lanes),
               .table = f.flag(n::table),
               .table_normalised = f.flag(n::table_normalised),
               .out_16bit = f.flag(n::out_16bit),
               .scale = f.real(n::scale)};
    t.par_zero = f.get<std::int32_t>(n::par_zero) & (t.par_16bit ? 0xffff : 0xff);
    t.in_zero = f.get<std::int32_t>(n::in_zero) & (t.in_16bit ? 0xffff : 0xff);
    t.reduction_steps = reduction_steps(t.acc);
    if (kind == TensorKind::resize) {
        t.resize = resize(f);
        t.clamp_max = 255;
        return t;
    }
    t.clamp_max = f.real(n::clamp_max);
    t.clamp_min = f.real(n::clamp_min);
    t.start_value = f.get<std::int32_t>(n::initial);
    t.out_zero = f.get<std::int32_t>(n::out_zero);
    t.bias = f.flag(n::bias);
    t.lane_scale = f.flag(n::lane_scale);
    return t;
}

Infeed infeed(const Fields& f) {
    namespace n = spec::field::infeed;
    return {.activations = f.flag(n::source),
            .dst = f.nest("dst"),
            .infeed = f.signal(n::signal_infeed_enable),
            .waits = f.waits<1>()};
}

RingPush ring_push(const Fields& f) {
    namespace n = spec::field::ring_push;
    return {.fifo = f.get<Fifo>(n::source),
            .src = f.nest("src"),
            .producer = f.signal(n::signal_producer_enable),
            .pop = f.signal(n::signal_pop_enable),
            .waits = f.waits<2>(),
            .to_tiles = f.get<std::uint16_t>(n::to_tiles),
            .message_bytes = 4 * f.count(n::message)};
}

RingPop ring_pop(const Fields& f) {
    namespace n = spec::field::ring_pop;
    return {.dst = f.nest("dst"),
            .outfeed = f.signal(n::signal_outfeed_enable),
            .waits = f.waits<1>(),
            .message_bytes = 4 * f.count(n::message),
            .to_host = f.flag(n::to_host)};
}

Sync sync(const Fields& f) {
    namespace n = spec::field::sync;
    Sync s{.reset_counters = f.get(n::reset_counters),
           .reset_value = f.get<std::int32_t>(n::reset_value),
           .notified_tiles = f.get<std::uint16_t>(n::notified_tiles),
           .notified_count = f.get(n::notified_count),
           .expected_counters = f.get(n::expected_counters),
           .engines = f.get(n::engines)};
    for (unsigned i = 0; i < s.expected.size(); ++i) s.expected[i] = f.get(n::expected0 + i);
    return s;
}

Result<Operation> operation_of(const Instruction& instruction) {
    const Fields f(instruction);
    switch (instruction.info - spec::instructions) {
        case spec::op::bundle:
        case spec::op::halt:
        case spec::op::branch:
        case spec::op::loop:
        case spec::op::start:
        case spec::op::end:
            return ScalarWork{};
        case spec::op::sync:
            return sync(f);
        case spec::op::infeed:
            return infeed(f);
        case spec::op::ring_push:
            if (f.number(spec::field::ring_push::source) > 2)
                return not_modelled(instruction, "FIFO 3", "only FIFOs 0 to 2 are known");
            return ring_push(f);
        case spec::op::ring_pop:
            return ring_pop(f);
        case spec::op::mac:
            return tensor(f, TensorKind::mac);
        case spec::op::max:
            return tensor(f, TensorKind::max);
        case spec::op::sum:
            return tensor(f, TensorKind::sum);
        case spec::op::resize:
            return tensor(f, TensorKind::resize);
        case spec::op::ring_send:
            return ring_send(f);
        case spec::op::ring_receive_a:
            return ring_receive(f, Ring::a);
        case spec::op::ring_receive_b:
            return ring_receive(f, Ring::b);
        case spec::op::narrow_to_wide:
            if (f.number(spec::field::narrow_to_wide::format) == 2)
                return not_modelled(instruction, "row format 2", "formats 0, 1 and 3 are known");
            return narrow_to_wide(f);
        case spec::op::wide_to_narrow:
            return wide_to_narrow(f);
        case spec::op::mesh_south:
            return mesh(f, Direction4::south);
        case spec::op::mesh_west:
            return mesh(f, Direction4::west);
        case spec::op::mesh_north:
            return mesh(f, Direction4::north);
        case spec::op::mesh_east:
            return mesh(f, Direction4::east);
        case spec::op::load_table:
            return table(f);
        case spec::op::fence:
            return fence(f);
        default:
            return not_modelled(instruction,
                                fmt::format("tile opcode {:#04x}", instruction.info->opcode),
                                "no known program uses it; its arithmetic is unknown");
    }
}

}  // namespace

Result<Stream> translate(Bytes bytes, std::uint32_t first_number) {
    Stream stream;
    const auto decoded = REEF_TRY(decode(bytes));
    stream.at_word.assign(bytes.size() / word_bytes, Stream::no_instruction);
    stream.instructions.reserve(decoded.size());
    for (const auto& source : decoded) {
        auto& at = stream.instructions.emplace_back();
        at.source = source;
        at.operation = REEF_TRY(operation_of(source));
        REEF_CHECK(in_place(check_modes(source, at.operation), place_of(at)));
        REEF_CHECK(in_place(check_limits(at.operation), place_of(at)));
        at.number = first_number + static_cast<std::uint32_t>(stream.instructions.size() - 1);
        if (source.info->space == Space::tile)
            at.tiles = static_cast<std::uint16_t>(
                source.value(source.info->fields[spec::field::mac::tiles]) & all_tiles);
        stream.at_word[source.word] = static_cast<std::uint32_t>(stream.instructions.size() - 1);
    }
    return stream;
}

unsigned engine_of(const Operation& operation) {
    namespace kind = spec::value::tile_engine;
    if (std::holds_alternative<RingSend>(operation)) return kind::RING_PRODUCER_;
    if (std::holds_alternative<NarrowToWide>(operation)) return kind::NARROW_TO_WIDE_;
    if (std::holds_alternative<WideToNarrow>(operation)) return kind::WIDE_TO_NARROW_;
    if (const auto* receive = std::get_if<RingReceive>(&operation))
        return receive->ring == Ring::a ? kind::RING_CONSUMER_0_ : kind::RING_CONSUMER_1_;
    if (const auto* transfer = std::get_if<MeshTransfer>(&operation))
        return kind::MESH_0_ + static_cast<unsigned>(transfer->to);
    return kind::OP_;
}

std::string place_of(const ProgramInstruction& instruction) {
    return fmt::format("word {:#06x} {}", instruction.source.word, instruction.source.info->name);
}

}  // namespace reef::edgetpu::sim
