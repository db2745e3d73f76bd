#include "reef/graph/run_control.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::graph {

std::chrono::milliseconds RunControl::left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return std::max(left, std::chrono::milliseconds(0));
}

Status RunControl::check() const {
    if (cancelled()) return fail(Cause::cancelled, "the run was cancelled");
    if (has_deadline() && Clock::now() >= end_)
        return fail(Cause::timed_out,
                    fmt::format("the run is over its deadline of {} ms", deadline().count()), {},
                    "allow the run more time, or none to let the device's own apply");
    return {};
}

}  // namespace reef::graph
