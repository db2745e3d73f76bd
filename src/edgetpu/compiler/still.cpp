// Pass "spread", its second half: layers of one pixel and up to 64 channels read their parameters
// where they lie, as the vendor's do. One tile has the pixel; where its rows are taken, another
// gets the input and sends the result back.
#include <algorithm>
#include <map>

#include "edgetpu/compiler/cycles.h"
#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

/// Of a tile, for such layers: the others are left to layers that are sent, on their way.
constexpr std::uint32_t most_still_rows = 1280;

class RowKeeper {
  public:
    explicit RowKeeper(const Plan& plan) : plan_(plan), uses_(plan.layers.size(), 0) {
        for (const Step& step : plan.steps)
            if (const auto index = layer_index_of(step)) ++uses_[*index];
        for (unsigned t = 0; t < all_tiles; ++t)
            room_[t] = most_still_rows - std::min(most_still_rows, plan.beside.first_rows[t]);
    }

    std::optional<Plan> run() {
        const std::vector<Step> old = std::move(plan_.steps);
        plan_.steps.clear();
        bool any = false;
        for (const Step& step : old) {
            const auto* conv = std::get_if<ConvolutionStep>(&step.kind);
            const auto tile = conv == nullptr ? std::nullopt : tile_for(step, *conv);
            if (!tile) {
                plan_.steps.push_back(step);
                continue;
            }
            any = true;
            room_[*tile] -= rows_of(*conv);
            ParameterLayer& layer = plan_.layers[conv->layer];
            layer.spread = true;
            layer.first_tile = *tile;
            layer.cycles_together = cycles_sent(*conv);
            layer.cycles_spread = cycles_still(step, *conv, *tile);
            if (*tile == home)
                plan_.steps.push_back(step);
            else
                compute_on(*tile, step);
        }
        if (!any) return std::nullopt;
        return std::move(plan_);
    }

  private:
    /// The tile that has an image of one pixel.
    static constexpr unsigned home = 0;

    [[nodiscard]] const compiler::Convolution& source(const ConvolutionStep& conv) const {
        return *plan_.layers[conv.layer].source;
    }
    [[nodiscard]] std::uint32_t rows_of(const ConvolutionStep& conv) const {
        const auto& layer = source(conv);
        const auto taps = static_cast<std::uint32_t>(conv.window.kernel_h * conv.window.kernel_w);
        return taps * ((static_cast<std::uint32_t>(layer.in_channels) + 3) / 4) +
               (layer.per_channel() ? 3 : 1);
    }
    [[nodiscard]] bool is_of_pixel(TensorId id) const {
        const Tensor& t = plan_.tensors[id];
        return t.height * t.width == 1 && t.layout == Layout::pixels && !t.in_band && !t.band_of;
    }
    [[nodiscard]] bool can_lie_still(const Step& step, const ConvolutionStep& conv) const {
        const Tensor& from = plan_.tensors[step.in[0]];
        return !conv.depthwise && conv.phase == Phase{} && uses_[conv.layer] == 1 &&
               !plan_.layers[conv.layer].spread && is_of_pixel(step.out) && !from.in_band &&
               !from.band_of && source(conv).out_channels <= static_cast<std::int32_t>(lanes);
    }

    [[nodiscard]] std::uint64_t cycles_sent(const ConvolutionStep& conv) const {
        return ring_cycles(rows_of(conv));
    }
    [[nodiscard]] std::uint64_t cycles_still(const Step& step, const ConvolutionStep& conv,
                                             unsigned tile) const {
        const std::uint64_t computing = step_cycles(rows_of(conv));
        if (tile == home) return computing;
        return computing + cycles_to_send_pixel(plan_.tensors[step.in[0]]) +
               cycles_to_send_pixel(plan_.tensors[step.out]);
    }

    /// Where rows are left, and it takes less time.
    [[nodiscard]] std::optional<unsigned> tile_for(const Step& step,
                                                   const ConvolutionStep& conv) const {
        if (!can_lie_still(step, conv)) return std::nullopt;
        for (unsigned tile = home; tile < all_tiles; ++tile) {
            if (room_[tile] < rows_of(conv)) continue;
            if (tile != home && !is_of_pixel(step.in[0])) return std::nullopt;
            if (cycles_still(step, conv, tile) < cycles_sent(conv)) return tile;
            return std::nullopt;
        }
        return std::nullopt;
    }

    /// Once for all layers of a tile that read it.
    TensorId brought_to(unsigned tile, TensorId id, std::size_t node) {
        const auto [at, fresh] = brought_.try_emplace({id, tile}, plan_.tensors.size());
        if (fresh) {
            plan_.tensors.push_back(plan_.tensors[id]);
            plan_.tensors.back().lie_as(Layout::whole);
            plan_.steps.push_back({.node = node,
                                   .in = {id},
                                   .out = at->second,
                                   .kind = GatherStep{static_cast<std::uint16_t>(1U << tile)}});
        }
        return at->second;
    }

    void compute_on(unsigned tile, const Step& step) {
        const auto& conv = std::get<ConvolutionStep>(step.kind);
        const TensorId in = brought_to(tile, step.in[0], step.node);
        const TensorId result = plan_.tensors.size();
        plan_.tensors.push_back(plan_.tensors[step.out]);
        Tensor& t = plan_.tensors.back();
        t.lie_as(Layout::channels);
        t.channels = t.all_channels = source(conv).out_channels;
        t.first_tile = tile;
        t.spread_tiles = 1;
        plan_.steps.push_back({.node = step.node, .in = {in}, .out = result, .kind = conv});
        plan_.steps.push_back({.node = step.node,
                               .in = {result},
                               .out = step.out,
                               .kind = GatherStep{1U << home},
                               .first_channel = step.first_channel});
    }

    Plan plan_;
    std::vector<unsigned> uses_;  ///< of layers, by steps
    std::array<std::uint32_t, all_tiles> room_{};
    std::map<std::pair<TensorId, unsigned>, TensorId> brought_;
};

}  // namespace

std::optional<Plan> with_still_rows(const Plan& plan) {
    return RowKeeper(plan).run();
}

}  // namespace reef::edgetpu::lowering
