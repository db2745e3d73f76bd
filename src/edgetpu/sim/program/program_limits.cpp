// What an instruction may ask of the machine. Known programs stay far within; hostile ones do not.
#include <fmt/format.h>

#include <algorithm>

#include "program.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

constexpr std::size_t tile_counters = std::size(spec::tile_counter_values);
constexpr std::size_t scalar_counters = std::size(spec::scalar_counter_values);

std::unexpected<Error> beyond(std::string what, std::string_view most) {
    return fail(Cause::unsupported, "not modelled: " + std::move(what), {},
                fmt::format("known programs stay below {}", most));
}

Status check_waits(std::span<const Wait> waits, std::size_t counters) {
    for (const auto& wait : waits)
        if (wait.counter >= counters)
            return beyond(fmt::format("a wait for counter {}", wait.counter),
                          fmt::format("{}, the number of counters", counters));
    return {};
}

Status check_message(unsigned bytes) {
    if (bytes <= row_bytes) return {};
    return beyond(fmt::format("ring messages of {} bytes", bytes), "the size of a row, 256");
}

Status check_tensor(const TensorOp& op) {
    if (std::max(op.lanes, op.last_lanes) > lane_count)
        return beyond(fmt::format("{} lanes", std::max(op.lanes, op.last_lanes)), "65");
    for (const Nest* nest : {&op.loops, &op.in, &op.out, &op.par, &op.acc}) {
        if (nest->longest_walk() > most_visits)
            return beyond("a loop nest of more visits than 2^40", "2^32");
        if (nest->crop_level != 0 && nest->crop_count > nest->count[0])
            return beyond("a crop that makes a pass longer", "the pass itself");
    }
    return {};
}

}  // namespace

Status check_limits(const Operation& operation) {
    return std::visit(
        [](const auto& op) -> Status {
            using Op = std::decay_t<decltype(op)>;
            constexpr bool scalar = std::is_same_v<Op, Infeed> || std::is_same_v<Op, RingPush> ||
                                    std::is_same_v<Op, RingPop>;
            if constexpr (requires { op.waits; })
                REEF_CHECK(check_waits(op.waits.view(), scalar ? scalar_counters : tile_counters));
            if constexpr (requires { op.message_bytes; })
                REEF_CHECK(check_message(op.message_bytes));
            if constexpr (std::is_same_v<Op, TensorOp>) REEF_CHECK(check_tensor(op));
            return {};
        },
        operation);
}

}  // namespace reef::edgetpu::sim
