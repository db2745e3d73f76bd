// Syncs: what holds the scalar core until others are done.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "edgetpu/isa/names.h"
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
        if ((sync.notified_tiles >> t & 1U) != 0 && notifications_[t] < sync.notified_count)
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
        if ((sync.notified_tiles >> t & 1U) != 0) notifications_[t] -= sync.notified_count;
    if (monitor_) witness_sync(sync);
    scalar_.counters.reset(sync.reset_counters, sync.reset_value);
}

// Everything that a sync waits for; tiles that have yet to notify it as often stand together.
std::string Machine::waits_of(const Sync& sync) const {
    std::vector<std::string> waits;
    std::map<std::uint32_t, std::uint16_t> tiles_by_notifications;
    for (unsigned t = 0; t < tile_count; ++t)
        if ((sync.notified_tiles >> t & 1U) != 0 && notifications_[t] < sync.notified_count)
            tiles_by_notifications[notifications_[t]] |= static_cast<std::uint16_t>(1U << t);
    for (const auto& [notified, tiles] : tiles_by_notifications)
        waits.push_back(sync.notified_count == 1
                            ? "a notification of " + tiles_text(tiles)
                            : fmt::format("{} notifications of {}, of which {} came",
                                          sync.notified_count, tiles_text(tiles), notified));
    for (unsigned e = 0; e < scalar_engine_count; ++e)
        if (const auto& engine = scalar_engines_[e]; waits_for_engine(sync, e) && !engine.idle())
            waits.push_back(place_of(engine.current != nullptr
                                         ? *engine.current
                                         : *engine.queue[engine.next].instruction));
    for (unsigned c = 0; c < sync.expected.size(); ++c)
        if (const auto expected = static_cast<std::uint16_t>(sync.expected[c]);
            (sync.expected_counters >> c & 1U) != 0 && !scalar_.counters.reached(c, expected))
            waits.push_back(fmt::format("{} >= {}, which is {}",
                                        std::string_view(spec::scalar_counter_values[c].name),
                                        expected, scalar_.counters[c]));
    return waits.empty() ? std::string()
                         : fmt::format("waits for {}", fmt::join(waits, " and for "));
}

}  // namespace reef::edgetpu::sim
