// Syncs: what holds the scalar core until others are done.
#include <fmt/format.h>

#include "machine.h"

namespace reef::edgetpu::sim {
namespace {

/// Bits of a sync's engines, by ScalarEngine.
constexpr std::array<unsigned, scalar_engine_count> sync_bits = {
    1U << spec::value::scalar_engine::INFEED_,
    1U << spec::value::scalar_engine::AVDATA_POP_ |
        1U << spec::value::scalar_engine::PARAMETER_POP_,
    1U << spec::value::scalar_engine::OUTFEED_};

}  // namespace

bool Machine::waits_for_engine(const Sync& sync, unsigned engine) {
    return (sync.engines & sync_bits[engine]) != 0;
}

bool Machine::sync_ready(const Sync& sync) const {
    for (unsigned t = 0; t < tile_count; ++t)
        if ((sync.notified_tiles >> t & 1U) != 0 && units_[t]->notifications < sync.notified_count)
            return false;
    for (unsigned e = 0; e < scalar_engine_count; ++e)
        if (waits_for_engine(sync, e) && !scalar_engines_[e].idle()) return false;
    for (unsigned c = 0; c < sync.expected.size(); ++c)
        if ((sync.expected_counters >> c & 1U) != 0 &&
            !scalar_.counters.reached(c, static_cast<std::uint16_t>(sync.expected[c])))
            return false;
    return true;
}

// The scalar core comes to know what it waited for.
void Machine::witness_sync(const Sync& sync) {
    for (unsigned t = 0; t < tile_count; ++t)
        if ((sync.notified_tiles >> t & 1U) != 0) monitor_->awaited(t, sync.notified_count);
    for (unsigned e = 0; e < scalar_engine_count; ++e)
        if (waits_for_engine(sync, e))
            monitor_->join(core_actor, monitor_->release(scalar_actor(e)));
    for (unsigned c = 0; c < sync.expected.size(); ++c)
        if ((sync.expected_counters >> c & 1U) != 0)
            monitor_->scalar_waited(core_actor, nullptr, c,
                                    static_cast<std::uint16_t>(sync.expected[c]));
    monitor_->scalar_counters_set(sync.reset_counters,
                                  static_cast<std::uint16_t>(sync.reset_value));
}

void Machine::finish_sync(const Sync& sync) {
    for (unsigned t = 0; t < tile_count; ++t)
        if ((sync.notified_tiles >> t & 1U) != 0) units_[t]->notifications -= sync.notified_count;
    if (monitor_) witness_sync(sync);
    scalar_.counters.reset(sync.reset_counters, sync.reset_value);
}

// The first thing that a sync waits for.
std::string Machine::waits_of(const Sync& sync) const {
    for (unsigned t = 0; t < tile_count; ++t)
        if ((sync.notified_tiles >> t & 1U) != 0 && units_[t]->notifications < sync.notified_count)
            return fmt::format("waits for tile {} to notify it", t);
    for (unsigned e = 0; e < scalar_engine_count; ++e)
        if (waits_for_engine(sync, e) && !scalar_engines_[e].idle())
            return fmt::format(
                "waits for {}",
                place_of(scalar_engines_[e].current != nullptr
                             ? *scalar_engines_[e].current
                             : *scalar_engines_[e].queue[scalar_engines_[e].next].instruction));
    for (unsigned c = 0; c < sync.expected.size(); ++c)
        if ((sync.expected_counters >> c & 1U) != 0 &&
            !scalar_.counters.reached(c, static_cast<std::uint16_t>(sync.expected[c])))
            return describe(
                {Blocked::On::counter,
                 {static_cast<std::uint8_t>(c), static_cast<std::uint16_t>(sync.expected[c])}},
                scalar_.counters);
    return {};
}

}  // namespace reef::edgetpu::sim
