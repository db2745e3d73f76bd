// The frame of both programs: start, steps, end; and the one that loads the parameters.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "edgetpu/compiler/conform.h"
#include "edgetpu/compiler/emission.h"
#include "edgetpu/compiler/forms.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::uint32_t parameter_unit = spec::parameter_unit_bytes;

constexpr std::uint32_t both_producers =
    1U << scalar_counter::PRODUCER_A_ | 1U << scalar_counter::PRODUCER_B_;

Meta base_of(BaseAddress base, AddressHalf half) {
    return {.base = base, .name = {}, .half = half};
}

void set_base(Emitter& code, unsigned low, unsigned high, BaseAddress base) {
    code.set_address(low, base_of(base, AddressHalf::lower_32_bits));
    code.set_address(high, base_of(base, AddressHalf::upper_32_bits));
}

/// Reads the row that nothing needs: one that is cached and never read is most often a mistake.
void emit_anchor(Emission& e) {
    const auto& anchor = e.plan.layers.back().pieces.front();
    program::WideToNarrow read;
    read.src = nest(4, static_cast<std::int32_t>(anchor.row), {{1, 1}});
    read.dst = rotating(nest(6, 64, {{1, 32}, {64, 1}}), 2, 32);
    read.written = signal_at(2);
    read.wait[0] = room_for(counter::AVDATA_, 2, -1, 1);
    read.to_scaling = true;
    read.row_level = 1;
    e.code.tile(static_cast<TileSet>(1U << anchor.tile), read);
    e.code.full_stop();
}

struct PartName {
    std::string_view operator()(const InputStep&) const { return "input"; }
    std::string_view operator()(const ConvolutionStep&) const { return "convolution"; }
    std::string_view operator()(const SumStep&) const { return "sum"; }
    std::string_view operator()(const CombinationStep&) const { return "combination"; }
    std::string_view operator()(const ProductStep&) const { return "product"; }
    std::string_view operator()(const CopyStep& s) const {
        return s.function == Function::none ? "copy" : "function";
    }
    std::string_view operator()(const RearrangeStep&) const { return "rearrangement"; }
    std::string_view operator()(const MaxStep&) const { return "maximum"; }
    std::string_view operator()(const AverageStep&) const { return "average"; }
    std::string_view operator()(const GlobalAverageStep&) const { return "average of all"; }
    std::string_view operator()(const SoftmaxStep&) const { return "softmax"; }
    std::string_view operator()(const EnlargeStep&) const { return "enlargement"; }
    std::string_view operator()(const GatherStep&) const { return "gather"; }
    std::string_view operator()(const LstmStep&) const { return "lstm"; }
    std::string_view operator()(const SpillStep&) const { return "spill"; }
    std::string_view operator()(const FetchStep&) const { return "fetch"; }
};

std::string_view part_name(const Step& step) {
    return std::visit(PartName{}, step.kind);
}

/// Halos that could not be sent behind the step that made the tensor are when it is first read.
void emit_step(Emission& e, const Step& step, std::size_t number) {
    if (!reads_own(e.plan, step)) {
        for (const TensorId in : step.in) {
            if (e.bordered[in] || !e.tensor(in).has_halo()) continue;
            e.bordered[in] = true;
            e.code.begin_part("halo");
            emit_halo(e, in);
        }
    }
    e.code.begin_part(part_name(step));
    std::visit([&](const auto& kind) { emit(e, step, kind); }, step.kind);
    e.code.begin_part("halo");
    emit_halo_of(e, step, number);
    send_ahead(e, number);
    e.code.begin_part("stop");
    e.code.full_stop();
}

// -- Parameters

std::size_t bytes_of(const ParameterLayer& layer, const ParameterLayer::Piece& piece) {
    return std::min(std::size_t{piece.count} * layer.row_bytes, layer.bytes - piece.offset);
}

/// Layers with the same row on every tile come first.
template <typename F>
void each_layer(const Plan& plan, F&& visit) {
    for (const bool spread : {true, false})
        for (const ParameterLayer& layer : plan.layers)
            if (layer.spread == spread) visit(layer);
}

/// One layer behind the other, as its pieces are.
std::vector<std::byte> parameters_of(const Plan& plan, bool streamed) {
    std::size_t bytes = 0;
    each_layer(plan, [&](const ParameterLayer& layer) {
        if (layer.streamed == streamed) bytes += layer.bytes;
    });
    std::vector<std::byte> all(bytes);
    MutableBytes rest(all);
    each_layer(plan, [&](const ParameterLayer& layer) {
        if (layer.streamed != streamed) return;
        write_rows(layer, rest.first(layer.bytes));
        rest = rest.subspan(layer.bytes);
    });
    return all;
}

program::RingReceive receive_of(const ParameterLayer::Piece& piece) {
    program::RingReceive receive;
    receive.ring = program::Ring::a;
    receive.dst = nest(4, static_cast<std::int32_t>(piece.row), {{1, piece.count}});
    if (piece.count == 1) receive.dst.mask = 0;
    return receive;
}

void write_caching_program(std::uint32_t bytes, Emitter& code, const LoadPieces& load) {
    code.start();
    set_base(code, 1, 0, BaseAddress::parameter);
    code.copy(3, 1);
    code.copy(2, 0);
    code.copy(4, 3);
    code.copy(5, 2);
    code.transfer({4, 5}, {6, 7}, bytes, spec::DmaTag::parameters_);
    const std::uint32_t units = bytes / parameter_unit;
    program::Infeed infeed;
    infeed.source = spec::InfeedSource::parameters_;
    infeed.dst = fifo_pass(0, units, spec::parameter_fifo_units, spec::parameter_fifo_units / 2);
    infeed.infeed = signal_at(0);
    const auto fifo = static_cast<std::uint32_t>(spec::parameter_fifo_units);
    infeed.wait[0] = wait_for(scalar_counter::PARAMETER_INFEED_, 0,
                              1 - static_cast<std::int32_t>(std::min(units, fifo)), 1);
    code.scalar(infeed);
    load(code);
    code.fence(0, notification::end_);
    code.wait_for_tiles();
    code.end({2, 3}, {4, 5}, {6, 7});
}

/// Of the step that an instruction belongs to; behind the last it belongs to the outputs.
std::string place_of_code(const Emission& e, const std::vector<std::size_t>& ends,
                          std::size_t instruction) {
    const auto at = std::ranges::upper_bound(ends, instruction) - ends.begin();
    const auto last = static_cast<std::ptrdiff_t>(e.plan.steps.size()) - 1;
    return place_of(e.plan, e.plan.steps[static_cast<std::size_t>(std::min(at, last))]);
}

/// A number that no field holds: the step that asked for it does not fit.
Error at_step(Error error, const Emission& e, const std::vector<std::size_t>& ends) {
    if (!e.code.refused() || ends.empty()) return error;
    return {Cause::unsupported,
            fmt::format("it is too large for the chip's instructions ({})", error.message()),
            place_of_code(e, ends, *e.code.refused()),
            {}};
}

Status check_forms(const Emission& e, const std::vector<std::size_t>& ends) {
    const auto found = REEF_TRY(first_unproven(e.code));
    if (!found) return {};
    return fail(Cause::unsupported,
                fmt::format("its {} needs an instruction that no known program has: {}",
                            e.code.part_of(found->instruction), found->form),
                place_of_code(e, ends, found->instruction));
}

}  // namespace

void begin_computing(Emission& e) {
    e.code.start();
    set_base(e.code, parameter_address.first, parameter_address.second, BaseAddress::parameter);
    set_base(e.code, 3, 2, BaseAddress::scratch);
    e.code.reset_scalar(1U << scalar_counter::AVDATA_POP_ | 1U << scalar_counter::AVDATA_INFEED_,
                        0);
    e.code.fence(0, notification::core_);
    e.code.wait_for_tiles();
}

// Bytes for the chip come on one way: what is asked for before it can be taken holds back what is
// taken sooner, inputs and the next stream's instructions.
void ask_for_parameters(Emission& e, std::uint32_t offset, std::uint32_t bytes) {
    constexpr std::pair at{5U, 4U};
    e.code.copy_address(at, parameter_address, offset);
    e.code.copy(6, at.first);
    e.code.copy(7, at.second);
    e.code.transfer({6, 7}, {8, 9}, bytes, spec::DmaTag::parameters_, offset);
}

void emit_identity(Emission& e, std::int32_t first, std::int32_t row) {
    for (unsigned i = 0; i < 4; ++i) {
        program::Mesh fill;
        fill.to = program::Direction::north;
        fill.src = nest(4, 0, {});
        fill.dst = nest(4, first + static_cast<std::int32_t>(i), {{1, 1}});
        fill.dst.mask = 0;
        fill.fills = true;
        fill.fill_value = 1U << 8 * i;
        if (i == 3) fill.in = signal_at(1);
        e.code.tile(every_tile, fill);
    }
    program::NarrowToWide copy;
    copy.src = nest(6, first, {{1, 4}});
    copy.dst = nest(4, row, {{1, 1}});
    copy.dst.mask = 0;
    copy.written = signal_at(1);
    copy.wait[0] = wait_for(counter::MESH_SOUTH_IN_, 1, 1, 0);
    copy.row_level = 1;
    e.code.tile(every_tile, copy);
}

void end_computing(Emission& e, std::uint32_t counters) {
    e.code.fence(all_but_producers);
    program::Sync sync;
    sync.tiles = every_tile;
    sync.reset_counters = sync.expected_counters = counters;
    const auto& counted = spec::instructions[spec::op::sync].fields[spec::field::sync::expected0];
    sync.expected[scalar_counter::PRODUCER_A_] = wrapped(e.messages_a, counted);
    sync.expected[scalar_counter::PRODUCER_B_] = wrapped(e.messages_b, counted);
    sync.engines = Emitter::awaited_engines;
    e.code.scalar(sync);
    e.code.fence(counters << (counter::RING_PRODUCER_A_ - scalar_counter::PRODUCER_A_),
                 notification::core_);
    e.code.wait_for_tiles();
    e.code.fence(0, notification::end_);
    e.code.wait_for_tiles();
    e.code.end({4, 5}, {6, 7}, {8, 9});
}

Emission::Emission(const Plan& placed)
    : plan(placed),
      bordered(placed.tensors.size(), false),
      halo_read(placed.tensors.size(), false),
      last_writer(placed.tensors.size(), 0) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        last_writer[step.out] = i;
        if (reads_own(plan, step)) continue;
        for (const TensorId in : step.in) halo_read[in] = true;
    }
}

bool reads_own(const Plan& plan, const Step& step) {
    if (plan.tensors[step.out].in_band) return false;
    return walks_both(step) || moves_to_host(step) ||
           std::holds_alternative<ProductStep>(step.kind) ||
           std::holds_alternative<GatherStep>(step.kind) ||
           std::holds_alternative<LstmStep>(step.kind);
}

program::Tensor word_copy() {
    program::Tensor op;
    op.acc_internal = true;
    op.lanes = op.last_lanes = 4;
    op.scale = 1;
    op.clamp_max = std::numeric_limits<float>::infinity();
    op.clamp_min = -op.clamp_max;
    return op;
}

void apply(program::Tensor& op, const Scaling& scaling) {
    op.in_zero = scaling.in_zero;
    op.out_zero = scaling.out_zero;
    op.scale = scaling.scale;
    op.clamp_max = scaling.clamp.max;
    op.clamp_min = scaling.clamp.min;
}

program::Table table_of(const spec::Polynomials& function) {
    program::Table table;
    for (std::size_t s = 0; s < table.coefficients.size(); ++s)
        for (std::size_t k = 0; k < table.coefficients[s].size(); ++k)
            table.coefficients[s][k] = function.coefficients[s][k];
    for (std::size_t i = 0; i < table.breaks.size(); ++i) table.breaks[i] = function.breaks[i];
    return table;
}

void emit_constants(Emission& e, const std::array<std::uint32_t, 16>& words, std::int32_t row) {
    constexpr std::int32_t first_word = 4;
    for (std::size_t i = 0; i < words.size(); ++i) {
        program::Mesh fill;
        fill.to = program::Direction::north;
        fill.src = nest(4, 0, {});
        fill.dst = nest(4, first_word + static_cast<std::int32_t>(i), {{1, 1}});
        fill.dst.mask = 0;
        fill.fills = true;
        fill.fill_value = words[i];
        e.code.tile(every_tile, fill);
    }
    e.code.fence();
    program::NarrowToWide copy;
    copy.src = nest(6, first_word, {{1, 4}, {4, 4}});
    copy.dst = nest(4, row, {{1, 4}});
    copy.written = signal_at(1);
    copy.row_level = 1;
    e.code.tile(every_tile, copy);
    e.code.fence();
}

program::RingPush push_of_parameters(const ParameterLayer& layer,
                                     const ParameterLayer::Piece& piece, std::int64_t first) {
    program::RingPush push;
    push.fifo = spec::Fifo::parameters_;
    push.src = fifo_pass(first, static_cast<std::int64_t>(bytes_of(layer, piece) / parameter_unit),
                         spec::parameter_fifo_units, spec::parameter_fifo_units / 2);
    push.pop = signal_at(0);
    push.wait[0] = wait_for(scalar_counter::PARAMETER_POP_, 0, wrapped(first + 1), 1);
    push.to_tiles = static_cast<TileSet>(1U << piece.tile);
    push.message_words = layer.row_bytes / 4;
    return push;
}

void load_pieces(const Plan& plan, Emitter& code) {
    std::int64_t first = 0;
    each_layer(plan, [&](const ParameterLayer& layer) {
        for (const auto& piece : layer.pieces) {
            code.tile(static_cast<TileSet>(1U << piece.tile), receive_of(piece));
            code.scalar(push_of_parameters(layer, piece, first));
            first += static_cast<std::int64_t>(bytes_of(layer, piece) / parameter_unit);
        }
    });
}

Result<Programs> finish(Emission& e, const std::vector<std::size_t>& ends,
                        const EmitOptions& options, const LoadPieces& load) {
    auto computing = e.code.finish();
    if (!computing) return std::unexpected(at_step(std::move(computing).error(), e, ends));
    if (options.known_forms_only) REEF_CHECK(check_forms(e, ends));
    Programs programs{.computing = std::move(*computing),
                      .caching = {},
                      .cached = {},
                      .streamed = {},
                      .outputs = std::move(e.outputs),
                      .forms = {}};
    if (options.list_forms) REEF_CHECK(count_forms(e.code, programs.forms));
    if (options.only_computing) return programs;
    programs.cached = parameters_of(e.plan, false);
    programs.streamed = parameters_of(e.plan, true);
    if (!programs.cached.empty()) {
        Emitter code(true);
        write_caching_program(static_cast<std::uint32_t>(programs.cached.size()), code, load);
        if (options.list_forms) REEF_CHECK(count_forms(code, programs.forms));
        programs.caching = REEF_TRY(code.finish());
    }
    return programs;
}

Result<Programs> emit(const Plan& plan, const EmitOptions& options) {
    REEF_CHECK(check_emittable(plan));
    Emission e(plan);
    if (options.known_forms_only) e.code.prefer_known_forms(conform);
    begin_computing(e);
    emit_identity(e, 0, identity_row);
    e.code.fence();
    if (plan.anchored) emit_anchor(e);
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        emit_step(e, plan.steps[i], i);
        ends.push_back(e.code.size());
    }
    e.code.begin_part("output");
    for (const Port& port : plan.outputs) {
        emit_output(e, port);
        e.code.full_stop();
    }
    e.code.begin_part("end");
    end_computing(e, both_producers);
    return finish(e, ends, options, [&](Emitter& code) { load_pieces(plan, code); });
}

}  // namespace reef::edgetpu::lowering
