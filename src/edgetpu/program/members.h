// Which field every member of a typed instruction stands for, said once: a reader fills members, a
// writer fills fields, and a third visitor only notes which fields are members'.
//
// A visitor is called with the field's index and the member; nests, waits and signals with the
// index of their first field, since the fields of a record follow one another (isa.xml).
#pragma once

#include <type_traits>

#include "edgetpu/program/instruction.h"

namespace reef::edgetpu::program {

/// What a visitor may do with an operation: change it or not.
template <typename Io, typename T>
using Given = std::conditional_t<Io::reads, T, const T>;

// All instructions have their gate in one place, all but fences what tile instructions begin with.
namespace shared_field = spec::field::mac;

template <typename Io>
void gate(Io& io, Given<Io, Gate>& g) {
    io(shared_field::gate, g.enabled);
    io(shared_field::predicate, g.predicate);
    io(shared_field::sense, g.sense);
}

template <typename Io>
void tile_work(Io& io, Given<Io, TileWork>& w) {
    gate(io, w.gate);
    io(shared_field::tiles, w.tiles);
    io(shared_field::base_register, w.base_register);
    io(shared_field::tiles_register, w.tiles_register);
    io(shared_field::tiles_indirect, w.tiles_indirect);
    io(shared_field::seq, w.sequence);
    io(shared_field::caching, w.caching);
}

template <typename Io>
void nest(Io& io, unsigned first, Given<Io, LoopNest>& n, unsigned dimensions) {
    io.dimensions(first, n, dimensions);
    io(first++, n.base);
    for (unsigned d = 0; d < dimensions; ++d) {
        io(first++, n.step[d]);
        io(first++, n.count[d]);
    }
    io(first++, n.mask);
    io(first++, n.rotate_level);
    io(first++, n.rotate_size);
    io.last(first++, n.crop_count);
    io(first++, n.crop_level);
    io(first, n.crop_left_out);
}

/// Counts and a crop alone.
template <typename Io>
void loops(Io& io, unsigned first, Given<Io, LoopNest>& n, unsigned dimensions) {
    io.counts_alone(first, n, dimensions);
    for (unsigned d = 0; d < dimensions; ++d) io(first++, n.count[d]);
    io.last(first++, n.crop_count);
    io(first, n.crop_level);
}

template <typename Io>
void signal(Io& io, unsigned first, Given<Io, Signal>& s) {
    io(first, s.enabled);
    io(first + 1, s.level);
}

/// `fields`: 6 with a side, else 5.
template <typename Io, typename Waits>
void waits(Io& io, unsigned first, Waits& all, unsigned fields) {
    for (auto& wait : all) {
        io(first, wait.counter);
        io(first + 1, wait.level);
        io(first + 2, wait.start);
        io(first + 3, wait.step);
        io(first + 4, wait.enabled);
        if (fields > 5)
            io(first + 5, wait.destination);
        else
            io.absent(first, "a side", wait.destination);
        first += fields;
    }
}

template <typename Io>
void members(Io& io, Given<Io, Bundle>& o) {
    namespace n = spec::field::bundle;
    gate(io, o.gate);
    io(n::load_op, o.load.op);
    io(n::load_reg, o.load.reg);
    io(n::load_address, o.load.address);
    io(n::store_op, o.store.op);
    io(n::store_address, o.store.address);
    io(n::store_reg, o.store.reg);
    io(n::alu_op, o.alu.op);
    io(n::alu_dst, o.alu.dst);
    io(n::alu_src, o.alu.src);
    io(n::alu_operand, o.alu.operand);
    io(n::function_op, o.function.op);
    io(n::function_dst, o.function.dst);
    io(n::function_src, o.function.src);
}

template <typename Io>
void members(Io& io, Given<Io, Halt>& o) {
    gate(io, o.gate);
    io(spec::field::halt::continues, o.continues);
    io(spec::field::halt::last, o.last);
}

template <typename Io>
void members(Io& io, Given<Io, Branch>& o) {
    namespace n = spec::field::branch;
    gate(io, o.gate);
    io(n::condition_enable, o.condition.enabled);
    io(n::condition_predicate, o.condition.predicate);
    io(n::condition_sense, o.condition.sense);
    io(n::offset, o.offset);
}

template <typename Io>
void members(Io& io, Given<Io, Loop>& o) {
    gate(io, o.gate);
    io(spec::field::loop::count, o.count);
    io(spec::field::loop::body, o.body);
}

template <typename Io>
void members(Io& io, Given<Io, Start>& o) {
    gate(io, o.gate);
    io(spec::field::start::bits, o.bits);
}

template <typename Io>
void members(Io& io, Given<Io, End>& o) {
    gate(io, o.gate);
    io(spec::field::end::bits, o.bits);
}

template <typename Io>
void members(Io& io, Given<Io, Sync>& o) {
    namespace n = spec::field::sync;
    gate(io, o.gate);
    io(n::tiles, o.tiles);
    io(n::reset_counters, o.reset_counters);
    io(n::reset_value, o.reset_value);
    io(n::notified_count, o.notified_count);
    io(n::notified_tiles, o.notified_tiles);
    for (unsigned i = 0; i < o.expected.size(); ++i) io(n::expected0 + i, o.expected[i]);
    io(n::expected_counters, o.expected_counters);
    io(n::engines, o.engines);
}

template <typename Io>
void members(Io& io, Given<Io, Infeed>& o) {
    namespace n = spec::field::infeed;
    gate(io, o.gate);
    io(n::source, o.source);
    nest(io, n::dst_base, o.dst, 3);
    signal(io, n::signal_infeed_enable, o.infeed);
    waits(io, n::wait0_counter, o.wait, 5);
}

template <typename Io>
void members(Io& io, Given<Io, RingPush>& o) {
    namespace n = spec::field::ring_push;
    gate(io, o.gate);
    io(n::source, o.fifo);
    nest(io, n::src_base, o.src, 3);
    signal(io, n::signal_producer_enable, o.producer);
    signal(io, n::signal_pop_enable, o.pop);
    waits(io, n::wait0_counter, o.wait, 5);
    io(n::to_tiles, o.to_tiles);
    io(n::message, o.message_words);
}

template <typename Io>
void members(Io& io, Given<Io, RingPop>& o) {
    namespace n = spec::field::ring_pop;
    gate(io, o.gate);
    nest(io, n::dst_base, o.dst, 3);
    signal(io, n::signal_outfeed_enable, o.outfeed);
    waits(io, n::wait0_counter, o.wait, 5);
    io(n::message, o.message_words);
    io(n::to_host, o.to_host);
}

template <typename Io>
void tensor_loops(Io& io, Given<Io, TensorLoops>& o) {
    namespace n = spec::field::mac;
    tile_work(io, o.work);
    loops(io, n::loop_limit0, o.loops, 8);
    nest(io, n::in_base, o.in, 8);
    nest(io, n::out_base, o.out, 8);
    nest(io, n::par_base, o.par, 8);
    nest(io, n::acc_base, o.acc, 8);
    signal(io, n::signal_avdata_enable, o.avdata);
    signal(io, n::signal_parameters_enable, o.parameters);
    signal(io, n::signal_partial_sums_enable, o.partial_sums);
    waits(io, n::wait0_counter, o.wait, 5);
    io(n::par_zero_set, o.par_zero_set);
    io(n::acc_internal, o.acc_internal);
    io(n::in_16bit, o.in_16bit);
    io(n::par_16bit, o.par_16bit);
    io(n::in_bytewise, o.in_bytewise);
    io(n::single, o.single);
    io(n::single_par, o.single_par);
    io(n::par_zero_rows, o.par_zero_rows);
    io(n::par_zero, o.par_zero);
    io(n::in_zero, o.in_zero);
    io(n::zero_row_last, o.zero_row_last);
    io(n::zero_row_step, o.zero_row_step);
    io(n::zero_row_first, o.zero_row_first);
    io(n::group_level, o.group_level);
    io(n::reduction_mask, o.reduction_mask);
    io(n::last_lanes, o.last_lanes);
    io(n::lanes, o.lanes);
    io(n::table, o.table);
    io(n::table_normalised, o.table_normalised);
    io(n::out_16bit, o.out_16bit);
    io(n::scale, o.scale);
}

template <typename Io>
void members(Io& io, Given<Io, Tensor>& o) {
    namespace n = spec::field::mac;
    tensor_loops(io, o);
    io(n::clamp_max, o.clamp_max);
    io(n::clamp_min, o.clamp_min);
    io(n::initial, o.initial);
    io(n::out_zero, o.out_zero);
    io(n::bias, o.bias);
    io(n::lane_scale, o.lane_scale);
    io(n::table_odd, o.table_odd);
}

template <typename Io>
void members(Io& io, Given<Io, Resize>& o) {
    namespace n = spec::field::resize;
    tensor_loops(io, o);
    io(n::x_level, o.x.level);
    io(n::x_nearest, o.x.nearest);
    io(n::x_phase, o.x.phase);
    io(n::x_step, o.x.step);
    io(n::y_level, o.y.level);
    io(n::y_nearest, o.y.nearest);
    io(n::y_phase, o.y.phase);
    io(n::y_step, o.y.step);
    io(n::pixel_stride, o.pixel_stride);
    io(n::row_stride, o.row_stride);
    io(n::unknown_2093, o.unknown_2093);
}

template <typename Io>
void members(Io& io, Given<Io, RingSend>& o) {
    namespace n = spec::field::ring_send;
    tile_work(io, o.work);
    nest(io, n::src_base, o.src, 4);
    signal(io, n::signal_ring_write_enable, o.ring_write);
    signal(io, n::signal_producer_enable, o.producer);
    waits(io, n::wait0_counter, o.wait, 6);
    io(n::ring_b, o.ring);
    io(n::to_tiles, o.to_tiles);
    io(n::to_scalar, o.to_scalar);
}

template <typename Io>
void members(Io& io, Given<Io, RingReceive>& o) {
    namespace n = spec::field::ring_receive_a;
    tile_work(io, o.work);
    nest(io, n::dst_base, o.dst, 4);
    io(n::head_enable, o.head.enabled);
    io(n::head_level, o.head.level);
    io(n::head_base, o.head.base);
    io(n::head_limit, o.head.count);
    io(n::head_last, o.head.last);
    io(n::head_rows, o.head.rows);
    signal(io, n::signal_ring_read_enable, o.ring_read);
    waits(io, n::wait0_counter, o.wait, 6);
}

template <typename Io>
void members(Io& io, Given<Io, NarrowToWide>& o) {
    namespace n = spec::field::narrow_to_wide;
    tile_work(io, o.work);
    nest(io, n::src_base, o.src, 6);
    nest(io, n::dst_base, o.dst, 4);
    io(n::base_indirect, o.base_indirect);
    signal(io, n::signal_narrow_to_wide_enable, o.written);
    waits(io, n::wait0_counter, o.wait, 6);
    io(n::format, o.format);
    io(n::row_level, o.row_level);
}

template <typename Io>
void members(Io& io, Given<Io, WideToNarrow>& o) {
    namespace n = spec::field::wide_to_narrow;
    tile_work(io, o.work);
    nest(io, n::src_base, o.src, 4);
    nest(io, n::dst_base, o.dst, 6);
    io(n::skip_enable, o.skip.enabled);
    io(n::skip_level, o.skip.level);
    io(n::skip_base, o.skip.base);
    io(n::skip_limit, o.skip.count);
    io(n::skip_last, o.skip.last);
    signal(io, n::signal_written_enable, o.written);
    waits(io, n::wait0_counter, o.wait, 6);
    io(n::to_scaling, o.to_scaling);
    io(n::row_level, o.row_level);
}

template <typename Io>
void members(Io& io, Given<Io, Mesh>& o) {
    namespace n = spec::field::mesh_south;
    tile_work(io, o.work);
    nest(io, n::src_base, o.src, 4);
    nest(io, n::dst_base, o.dst, 4);
    signal(io, n::signal_out_enable, o.out);
    signal(io, n::signal_in_enable, o.in);
    waits(io, n::wait0_counter, o.wait, 6);
    io(n::fill, o.fills);
    io(n::fill_value, o.fill_value);
}

template <typename Io>
void members(Io& io, Given<Io, LoadTable>& o) {
    namespace n = spec::field::load_table;
    tile_work(io, o.work);
    unsigned field = n::segment0_c0;
    for (auto& segment : o.table.coefficients)
        for (auto& c : segment) io(field++, c);
    field = n::break0;
    for (auto& border : o.table.breaks) io(field++, border);
}

template <typename Io>
void members(Io& io, Given<Io, Fence>& o) {
    namespace n = spec::field::fence;
    gate(io, o.gate);
    io(n::tiles, o.tiles);
    io(n::seq, o.sequence);
    io(n::caching, o.caching);
    io(n::reset_counters, o.reset_counters);
    io(n::reset_value, o.reset_value);
    io(n::engines, o.engines);
    io(n::expected_counters, o.expected_counters);
    io(n::expected, o.expected);
    io(n::notify, o.notify);
}

}  // namespace reef::edgetpu::program
