#include "machine_status.h"

#include <fmt/format.h>

namespace reef::edgetpu::sim {
namespace {

std::string describe_any(const Blocked& blocked, const auto& counters, const auto& names) {
    switch (blocked.on) {
        case Blocked::On::counter:
            return fmt::format("waits for {} >= {}, which is {}",
                               std::string_view(names[blocked.unmet.counter].name),
                               blocked.unmet.needed, counters[blocked.unmet.counter]);
        case Blocked::On::ring_full:
            return "waits for room at the ring's receivers";
        case Blocked::On::ring_empty:
            return "waits for a message of the ring";
        case Blocked::On::mesh_full:
            return "waits for its neighbour to take words";
        case Blocked::On::mesh_empty:
            return "waits for words of its neighbour";
        case Blocked::On::host_empty:
            return "waits for data of the host";
        case Blocked::On::host_full:
            return "waits for the host to take data";
        case Blocked::On::row_full:
            return "waits for its next row to be used";
        case Blocked::On::nothing:
            break;
    }
    return {};
}

}  // namespace

std::string describe(const Blocked& blocked, const TileCounters& counters) {
    return describe_any(blocked, counters, spec::tile_counter_values);
}

std::string describe(const Blocked& blocked, const ScalarCounters& counters) {
    return describe_any(blocked, counters, spec::scalar_counter_values);
}

}  // namespace reef::edgetpu::sim
