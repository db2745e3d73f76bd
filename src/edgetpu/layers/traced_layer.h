// A tensor that instructions compute, and where in it each result belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edgetpu/trace/byte_trace.h"

namespace reef::edgetpu::layers {

using trace::Execution;
using trace::no_origin;
using trace::Origin;
using trace::Trace;

/// An element of a layer's tensor or of an input.
struct Place {
    std::int32_t y = 0, x = 0, c = 0;
    friend bool operator==(const Place&, const Place&) = default;
    friend Place operator-(const Place& a, const Place& b) {
        return {a.y - b.y, a.x - b.x, a.c - b.c};
    }
    friend Place operator+(const Place& a, const Place& b) {
        return {a.y + b.y, a.x + b.x, a.c + b.c};
    }
};

inline constexpr std::int32_t no_channel = -1;

/// Executions with the same arithmetic on the same sources, none of which reads another.
struct TracedLayer {
    std::vector<std::size_t> executions;  ///< indices into Trace::executions
    /// What they read: layers by index, below this one's; input i is -1 - i.
    std::vector<std::int32_t> sources;
    std::string problem;  ///< why its tensor is not known; empty when it is

    // Of a tensor that is known:
    std::int32_t height = 0, width = 0, channels = 0;
    unsigned element_bytes = 1;
    /// By execution and position: the place of lane 0.
    std::vector<std::vector<Place>> places;
    /// By execution, position and lane, where channels do not follow each other; else empty. Lanes
    /// that compute nothing of the tensor have no_channel.
    std::vector<std::vector<std::int32_t>> lane_channels;
    std::vector<std::byte> tensor;  ///< [y][x][c]
};

}  // namespace reef::edgetpu::layers
