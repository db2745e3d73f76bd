#include "tile_events.h"

#include <algorithm>

namespace reef::edgetpu::check {
namespace {

using program::LoopNest;
using program::Signal;
using program::Wait;
namespace tile_counter = spec::value::tile_counter;
namespace scalar_counter = spec::value::scalar_counter;

/// What each instruction counts, over the passes of which nest.
struct Productions {
    Few<Production> out{};

    void add(const Signal& signal, const LoopNest& nest, unsigned counter) {
        if (signal.enabled) out.add({counter, nest.passes_from(signal.level)});
    }
    void operator()(const program::RingSend& o) {
        add(o.ring_write, o.src, tile_counter::RING_WRITE_);
        add(o.producer, o.src,
            o.ring == program::Ring::b ? tile_counter::RING_PRODUCER_B_
                                       : tile_counter::RING_PRODUCER_A_);
    }
    void operator()(const program::RingReceive& o) {
        add(o.ring_read, o.dst,
            o.ring == program::Ring::a ? tile_counter::RING_READ_A_ : tile_counter::RING_READ_B_);
    }
    void operator()(const program::NarrowToWide& o) {
        add(o.written, o.dst, tile_counter::NARROW_TO_WIDE_);
    }
    void operator()(const program::WideToNarrow& o) {
        add(o.written, o.dst,
            o.to_scaling ? tile_counter::WIDE_TO_SCALING_ : tile_counter::WIDE_TO_NARROW_);
    }
    void operator()(const program::Mesh& o) {
        // What goes south arrives from the north.
        static constexpr unsigned out_counters[] = {
            tile_counter::MESH_SOUTH_OUT_, tile_counter::MESH_WEST_OUT_,
            tile_counter::MESH_NORTH_OUT_, tile_counter::MESH_EAST_OUT_};
        static constexpr unsigned in_counters[] = {
            tile_counter::MESH_NORTH_IN_, tile_counter::MESH_EAST_IN_, tile_counter::MESH_SOUTH_IN_,
            tile_counter::MESH_WEST_IN_};
        add(o.out, o.src, out_counters[static_cast<unsigned>(o.to)]);
        add(o.in, o.dst, in_counters[static_cast<unsigned>(o.to)]);
    }
    void operator()(const program::TensorLoops& o) {
        add(o.avdata, o.out, tile_counter::AVDATA_);
        add(o.parameters, o.par, tile_counter::PARAMETERS_);
        add(o.partial_sums, o.loops, tile_counter::PARTIAL_SUMS_);
    }
    void operator()(const program::Infeed& o) {
        add(o.infeed, o.dst,
            o.activations() ? scalar_counter::AVDATA_POP_ : scalar_counter::PARAMETER_POP_);
    }
    void operator()(const program::RingPush& o) {
        static constexpr unsigned pop_counters[] = {scalar_counter::PARAMETER_INFEED_,
                                                    scalar_counter::AVDATA_INFEED_,
                                                    scalar_counter::SCALAR_INFEED_};
        add(o.producer, o.src, scalar_counter::PRODUCER_A_);
        if (const auto fifo = static_cast<std::size_t>(o.fifo); fifo < std::size(pop_counters))
            add(o.pop, o.src, pop_counters[fifo]);
    }
    void operator()(const program::RingPop& o) {
        add(o.outfeed, o.dst, scalar_counter::RING_OUTFEED_);
    }
    void operator()(const program::Bundle&) {}
    void operator()(const program::Halt&) {}
    void operator()(const program::Branch&) {}
    void operator()(const program::Loop&) {}
    void operator()(const program::Sync&) {}
    void operator()(const program::Start&) {}
    void operator()(const program::End&) {}
    void operator()(const program::LoadTable&) {}
    void operator()(const program::Fence&) {}
};

/// The nest whose passes a wait counts.
template <typename Op>
const LoopNest& nest_of_wait(const Op& o, const Wait& wait) {
    if constexpr (requires { o.loops; }) {
        return o.loops;
    } else if constexpr (!requires { o.dst; }) {
        return o.src;
    } else if constexpr (!requires { o.src; }) {
        return o.dst;
    } else {
        return wait.destination ? o.dst : o.src;
    }
}

Demand demand_of(const Wait& wait, const LoopNest& nest, unsigned number) {
    constexpr std::uint64_t most_passes = std::uint64_t{1} << 40;
    const auto passes = std::clamp<std::uint64_t>(nest.passes_from(wait.level), 1, most_passes);
    const std::int64_t growth = std::int64_t{wait.step} * static_cast<std::int64_t>(passes - 1);
    return {wait.counter, wait.start, wait.start + growth, number, wait.destination};
}

}  // namespace

unsigned engine_of(const program::Operation& operation) {
    return std::visit([](const auto& o) { return program::engine_of_kind(o); }, operation);
}

Few<Production> productions_of(const program::Operation& operation) {
    Productions productions;
    std::visit(productions, operation);
    return productions.out;
}

Few<Demand> demands_of(const program::Operation& operation) {
    Few<Demand> out;
    std::visit(
        [&](const auto& o) {
            if constexpr (requires { o.wait; })
                for (unsigned i = 0; i < o.wait.size(); ++i)
                    if (o.wait[i].enabled)
                        out.add(demand_of(o.wait[i], nest_of_wait(o, o.wait[i]), i));
        },
        operation);
    return out;
}

}  // namespace reef::edgetpu::check
