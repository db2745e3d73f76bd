// Pass "ahead": where the next layer's parameters lie while a layer computes.
#include <algorithm>
#include <numeric>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

/// Rows of each tile that are used for it at most: what is left for parameters of other models that
/// share the chip.
constexpr std::uint32_t most_scratch_rows = 1024;
/// Fewer are not worth it.
constexpr std::uint32_t least_scratch_rows = 64;
/// Some rows of every tile are lost to layers that lie on one tile.
constexpr std::uint32_t lost_rows = 48;

std::uint32_t rows_stored(const ParameterLayer& layer) {
    return static_cast<std::uint32_t>((layer.bytes + layer.row_bytes - 1) / layer.row_bytes);
}

/// Of the tile that has most: rows that cannot lie on another.
std::uint64_t most_fixed_rows(const Plan& plan) {
    std::array<std::uint64_t, all_tiles> rows{};
    for (const ParameterLayer& layer : plan.layers)
        for (unsigned i = 0; layer.spread && i < layer.share_tiles(); ++i)
            rows[layer.first_tile + i] += layer.share_rows();
    return std::ranges::max(rows);
}

/// Rows of each tile that no parameters need.
std::uint32_t free_rows(const Plan& plan) {
    if (plan.beside.scratch_rows != 0) return plan.beside.scratch_rows;
    std::uint64_t stored = 0;
    for (const ParameterLayer& layer : plan.layers) stored += rows_stored(layer);
    const std::uint64_t needed = std::max(stored / all_tiles + lost_rows, most_fixed_rows(plan));
    if (needed >= spec::parameter_rows) return 0;
    return std::min<std::uint32_t>(most_scratch_rows,
                                   static_cast<std::uint32_t>(spec::parameter_rows - needed));
}

/// As many groups at once as fit, in equal shares: all of them, or a divisor.
void widen(ParameterLayer& layer, std::uint32_t rows) {
    LayerSchedule& s = layer.schedule;
    for (std::uint32_t groups = s.groups; groups > 2; --groups) {
        if (s.groups % groups != 0) continue;
        s.groups_ahead = groups;
        if (s.scratch_rows(layer.positions) <= rows) return;
    }
    s.groups_ahead = 0;
}

}  // namespace

void plan_ahead(Plan& plan) {
    const std::uint32_t rows = free_rows(plan);
    if (rows < least_scratch_rows) return;
    plan.ahead = true;
    const std::uint32_t half = rows / 2;
    bool below = false;
    for (ParameterLayer& layer : plan.layers) {
        if (layer.spread || layer.uses == 0) continue;
        LayerSchedule& s = layer.schedule;
        if (s.scratch_rows(layer.positions) <= half) {
            widen(layer, half);
            layer.scratch_end = spec::parameter_rows - static_cast<std::int32_t>(below ? half : 0);
        }
        below = !below;
        s.place_scratch(layer.scratch_end, layer.positions);
    }
}

}  // namespace reef::edgetpu::lowering
