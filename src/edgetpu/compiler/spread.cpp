// Pass "spread": layers of small images by channels. Where a tile owns few pixels, a layer waits
// for its parameters, which come over a ring one row at a time. If instead each tile has the whole
// input and computes 64 channels of it (or a multiple), its rows never move.
#include <algorithm>
#include <map>
#include <set>

#include "edgetpu/compiler/cycles.h"
#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

/// Above it tiles have enough pixels of their own.
constexpr std::uint32_t most_pixels_of_image = 64;

std::uint32_t pixels_of(const Tensor& t) {
    return static_cast<std::uint32_t>(t.height * t.width);
}
/// Tiles that own differently many pixels have instructions of their own.
std::uint64_t classes_of(const Tensor& t) {
    const auto sizes = [](const Spans& spans) {
        std::set<std::int32_t> all;
        for (const Span& s : spans)
            if (!s.empty()) all.insert(s.begin == 0 ? -s.size() : s.size());
        return all.size();
    };
    return sizes(t.own_rows) * sizes(t.own_columns);
}

/// How a layer's channels are shared out.
struct Share {
    std::uint32_t groups = 0;  ///< of 64 channels, on a tile
    std::uint32_t tiles = 0;
    [[nodiscard]] std::int32_t channels() const {
        return static_cast<std::int32_t>(groups * lanes);
    }
};

Share share_of(std::int32_t channels) {
    const std::uint32_t groups = (static_cast<std::uint32_t>(channels) + lanes - 1) / lanes;
    const std::uint32_t of_tile = (groups + all_tiles - 1) / all_tiles;
    return {of_tile, (groups + of_tile - 1) / of_tile};
}

/// What a step can be: by pixels, as all steps, or by channels.
struct Candidate {
    std::size_t step = 0;
    const ConvolutionStep* conv = nullptr;  ///< else an average of all
    bool spread = false;
};

class Spreader {
  public:
    Spreader(Plan plan, bool maps) : plan_(std::move(plan)), maps_(maps) {
        for (const Step& step : plan_.steps)
            if (const auto* conv = std::get_if<ConvolutionStep>(&step.kind))
                ++plan_.layers[conv->layer].uses;
        for (ParameterLayer& layer : plan_.layers)
            once_.push_back(std::exchange(layer.uses, 0) == 1);
        for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
            const Step& step = plan_.steps[i];
            writers_[step.out].push_back(i);
            for (const TensorId in : step.in) readers_[in].push_back(i);
        }
        for (const Port& port : plan_.outputs) given_.insert(port.tensor);
    }

    Plan run() {
        for (std::size_t i = 0; i < plan_.steps.size(); ++i)
            if (can_spread(i)) {
                const auto* conv = std::get_if<ConvolutionStep>(&plan_.steps[i].kind);
                candidate_of_[i] = candidates_.size();
                candidates_.push_back({i, conv, true});
            }
        choose();
        note_cycles();
        return rewritten();
    }

  private:
    [[nodiscard]] const Tensor& in(std::size_t step) const {
        return plan_.tensors[plan_.steps[step].in[0]];
    }
    [[nodiscard]] const Tensor& out(std::size_t step) const {
        return plan_.tensors[plan_.steps[step].out];
    }
    [[nodiscard]] const compiler::Convolution& layer_of(const ConvolutionStep& conv) const {
        return *plan_.layers[conv.layer].source;
    }
    [[nodiscard]] bool only_given(TensorId id) const {
        return given_.contains(id) && !readers_.contains(id);
    }

    [[nodiscard]] bool can_spread(std::size_t i) const {
        const Step& step = plan_.steps[i];
        const Tensor &from = in_or_out(i), &to = out(i);
        if (from.in_band || to.in_band || from.band_of || to.band_of || pixels_of(from) == 0 ||
            writers_.at(step.out).size() != 1)
            return false;
        if (std::holds_alternative<GlobalAverageStep>(step.kind))
            return maps_ && from.channels > static_cast<std::int32_t>(lanes) &&
                   pixels_of(from) <= most_pixels_of_image;
        const auto* conv = std::get_if<ConvolutionStep>(&step.kind);
        return conv != nullptr && once_[conv->layer] && can_spread(i, *conv);
    }
    [[nodiscard]] bool can_spread(std::size_t i, const ConvolutionStep& conv) const {
        const Tensor &from = in(i), &to = out(i);
        const auto& layer = layer_of(conv);
        if (!(conv.phase == Phase{}) || to.channels <= static_cast<std::int32_t>(lanes))
            return false;
        if (conv.depthwise) {
            // A tile's rows of 16 bytes are whole units of 64.
            const auto rows = static_cast<std::uint32_t>(
                conv.window.kernel_h * conv.window.kernel_w + (layer.per_channel() ? 3 : 1));
            return maps_ && to.channels == from.channels && to.words() * rows % 4 == 0 &&
                   std::max(pixels_of(from), pixels_of(to)) <= most_pixels_of_image;
        }
        const bool pixel = pixels_of(from) == 1 && pixels_of(to) == 1 &&
                           conv.window.kernel_h * conv.window.kernel_w == 1;
        if (!maps_)
            return pixel && only_given(plan_.steps[i].out) &&
                   to.channels <= static_cast<std::int32_t>(lanes * all_tiles);
        return std::max(pixels_of(from), pixels_of(to)) <= most_pixels_of_image;
    }
    [[nodiscard]] const Tensor& in_or_out(std::size_t i) const {
        return plan_.steps[i].in.empty() ? out(i) : in(i);
    }

    // -- Cycles

    [[nodiscard]] bool is_spread(std::size_t step) const {
        const auto known = candidate_of_.find(step);
        return known != candidate_of_.end() && candidates_[known->second].spread;
    }
    [[nodiscard]] bool is_spread_tensor(TensorId id) const {
        const auto writers = writers_.find(id);
        return writers != writers_.end() && is_spread(writers->second.front());
    }
    [[nodiscard]] bool wants_whole(std::size_t step) const {
        const auto* conv = std::get_if<ConvolutionStep>(&plan_.steps[step].kind);
        return is_spread(step) && conv != nullptr && !conv->depthwise;
    }

    [[nodiscard]] std::uint64_t cycles_by_pixel(const Candidate& c) const {
        const Tensor &from = in(c.step), &to = out(c.step);
        if (c.conv == nullptr)
            return cycles_to_gather(from) +
                   step_cycles(std::uint64_t{pixels_of(from)} * from.words());
        const auto taps = static_cast<std::uint64_t>(c.conv->window.kernel_h) *
                          static_cast<std::uint64_t>(c.conv->window.kernel_w);
        const std::uint64_t rows =
            c.conv->depthwise ? to.words() * taps : taps * from.words() * ((to.words() + 15) / 16);
        return std::max(ring_cycles(rows), step_cycles(rows * to.most_pixels())) +
               instruction_cycles(classes_of(to) * words_of_tensor + 4 * words_of_copy);
    }
    [[nodiscard]] std::uint64_t cycles_by_channel(const Candidate& c) const {
        const Tensor &from = in(c.step), &to = out(c.step);
        const Share share = share_of(to.channels);
        const std::uint64_t words = 2 * (words_of_tensor + words_of_copy);
        if (c.conv == nullptr)
            return step_cycles(std::uint64_t{pixels_of(from)} * share.groups * 16) +
                   instruction_cycles(words);
        const auto taps = static_cast<std::uint64_t>(c.conv->window.kernel_h) *
                          static_cast<std::uint64_t>(c.conv->window.kernel_w);
        const std::uint64_t rows = c.conv->depthwise ? taps * 16 : taps * from.words();
        return step_cycles(rows * share.groups * pixels_of(to)) + instruction_cycles(words);
    }
    /// From where its pixels are to other tiles.
    [[nodiscard]] static std::uint64_t cycles_to_gather(const Tensor& t) {
        if (pixels_of(t) == 1) return cycles_to_send_pixel(t);
        std::uint64_t rows = 0, tiles = 0;
        for (unsigned tile = 0; tile < all_tiles; ++tile) {
            const Area own = t.own(tile);
            if (own.empty()) continue;
            ++tiles;
            rows += (static_cast<std::uint64_t>(own.rows.size() * own.columns.size()) * t.words() +
                     63) /
                    64;
        }
        return ring_cycles(rows) +
               instruction_cycles(tiles * words_of_send +
                                  classes_of(t) * (2 * words_of_copy + words_of_receive) +
                                  words_of_stop);
    }
    [[nodiscard]] static std::uint64_t cycles_to_collect(const Tensor& t) {
        const Share share = share_of(t.channels);
        const std::uint64_t rows =
            (std::uint64_t{pixels_of(t)} * share.groups * 16 + 63) / 64 * share.tiles;
        return ring_cycles(rows) +
               instruction_cycles(share.tiles * words_of_send +
                                  2 * (2 * words_of_copy + words_of_receive) + words_of_stop);
    }
    /// From the whole of it to what tiles own.
    [[nodiscard]] static std::uint64_t cycles_to_share_out(const Tensor& t) {
        return step_cycles(std::uint64_t{t.most_pixels()} * t.words()) +
               instruction_cycles(all_tiles * words_of_tensor + words_of_stop);
    }

    /// Of what brings a tensor from its writer to its readers.
    [[nodiscard]] std::uint64_t cycles_between(TensorId id) const {
        const Tensor& t = plan_.tensors[id];
        const auto readers = readers_.find(id);
        bool whole = false, pixels = given_.contains(id) && pixels_of(t) != 1;
        if (readers != readers_.end())
            for (const std::size_t reader : readers->second) {
                whole |= wants_whole(reader);
                pixels |= !is_spread(reader);
            }
        if (!is_spread_tensor(id)) return whole ? cycles_to_gather(t) : 0;
        std::uint64_t cycles = whole || pixels ? cycles_to_collect(t) : 0;
        if (pixels && pixels_of(t) > 1) cycles += cycles_to_share_out(t);
        if (pixels && pixels_of(t) == 1 && whole) cycles += cycles_to_collect(t);
        return cycles;
    }
    [[nodiscard]] std::uint64_t cycles_of_all() const {
        std::uint64_t cycles = 0;
        std::set<TensorId> tensors;
        for (const Candidate& c : candidates_) {
            cycles += c.spread ? cycles_by_channel(c) : cycles_by_pixel(c);
            tensors.insert({plan_.steps[c.step].in[0], plan_.steps[c.step].out});
        }
        for (const TensorId id : tensors) cycles += cycles_between(id);
        return cycles;
    }

    /// Steps that read what lies by channels need a writer that leaves it so.
    void drop_those_without_channels() {
        for (Candidate& c : candidates_)
            if (c.spread && (c.conv == nullptr || c.conv->depthwise))
                c.spread = is_spread_tensor(plan_.steps[c.step].in[0]);
    }

    /// From all that can be to the fewest cycles, by turning one or what follows one.
    void choose() {
        drop_those_without_channels();
        std::uint64_t least = cycles_of_all();
        const auto try_to = [&](std::size_t first, std::size_t end, bool spread) {
            const auto before = candidates_;
            for (std::size_t i = first; i < end; ++i) candidates_[i].spread = spread;
            drop_those_without_channels();
            if (const std::uint64_t cycles = cycles_of_all(); cycles < least) {
                least = cycles;
                return true;
            }
            candidates_ = before;
            return false;
        };
        for (bool better = true; better;) {
            better = false;
            for (const bool spread : {false, true})
                for (std::size_t i = 0; i < candidates_.size(); ++i)
                    for (std::size_t n : {1, 2, 3})
                        if (i + n <= candidates_.size()) better |= try_to(i, i + n, spread);
        }
    }

    void note_cycles() {
        for (const Candidate& c : candidates_) {
            if (c.conv == nullptr) continue;
            ParameterLayer& layer = plan_.layers[c.conv->layer];
            layer.cycles_together = cycles_by_pixel(c);
            layer.cycles_spread = cycles_by_channel(c) + cycles_between(plan_.steps[c.step].in[0]);
            layer.spread = c.spread;
            if (c.spread) layer.share_groups = groups_of_share(c);
        }
    }
    /// Groups of a depthwise layer are of 4 channels.
    [[nodiscard]] std::uint32_t groups_of_share(const Candidate& c) const {
        const std::uint32_t groups = share_of(out(c.step).channels).groups;
        return c.conv->depthwise ? groups * lanes / 4 : groups;
    }

    // -- The steps anew

    Plan rewritten() {
        std::vector<Step> old = std::move(plan_.steps);
        plan_.steps.clear();
        for (std::size_t i = 0; i < old.size(); ++i) {
            Step& step = old[i];
            const bool spread = is_spread(i);
            const bool from_whole = spread && std::holds_alternative<ConvolutionStep>(step.kind) &&
                                    !std::get<ConvolutionStep>(step.kind).depthwise;
            for (TensorId& in : step.in) {
                if (from_whole)
                    in = whole(in, step.node, tiles_of(step.out));
                else if (spread)
                    in = channels_.at(in);
                else
                    by_pixel(in, step.node);
            }
            if (spread) step.out = by_channel(step.out);
            plan_.steps.push_back(std::move(step));
        }
        for (Port& port : plan_.outputs) {
            const auto spread = channels_.find(port.tensor);
            if (spread == channels_.end()) continue;
            if (pixels_of(plan_.tensors[port.tensor]) == 1 && !made_.contains(port.tensor))
                port.tensor = spread->second;
            else
                by_pixel(port.tensor, plan_.steps.back().node);
        }
        return std::move(plan_);
    }

    [[nodiscard]] std::uint16_t tiles_of(TensorId out) const {
        return static_cast<std::uint16_t>((1U << share_of(plan_.tensors[out].channels).tiles) - 1);
    }

    TensorId like(TensorId id, Layout layout) {
        Tensor t = plan_.tensors[id];
        t.lie_as(layout);
        plan_.tensors.push_back(std::move(t));
        return plan_.tensors.size() - 1;
    }

    TensorId by_channel(TensorId id) {
        const TensorId made = like(id, Layout::channels);
        Tensor& t = plan_.tensors[made];
        const Share share = share_of(t.channels);
        t.all_channels = t.channels;
        t.channels = share.channels();
        t.spread_tiles = share.tiles;
        return channels_[id] = made;
    }

    /// Every reader adds its tiles to those that get it.
    TensorId whole(TensorId id, std::size_t node, std::uint16_t tiles) {
        const auto [at, fresh] = whole_.try_emplace(id, std::pair<TensorId, std::size_t>{});
        auto& [made, step] = at->second;
        if (fresh) {
            const auto spread = channels_.find(id);
            made = like(id, Layout::whole);
            step = plan_.steps.size();
            plan_.steps.push_back({.node = node,
                                   .in = {spread == channels_.end() ? id : spread->second},
                                   .out = made,
                                   .kind = GatherStep{}});
        }
        auto& gather = std::get<GatherStep>(plan_.steps[step].kind);
        gather.to = static_cast<std::uint16_t>(gather.to | tiles);
        return made;
    }

    /// A tensor that lies by channels, to the tiles that own its pixels.
    void by_pixel(TensorId id, std::size_t node) {
        const auto spread = channels_.find(id);
        if (spread == channels_.end() || !made_.insert(id).second) return;
        if (pixels_of(plan_.tensors[id]) == 1) {
            plan_.steps.push_back(
                {.node = node, .in = {spread->second}, .out = id, .kind = GatherStep{1}});
            return;
        }
        constexpr float infinite = std::numeric_limits<float>::infinity();
        const TensorId from = whole(id, node, every_tile);
        const std::int32_t zero = plan_.tensors[id].zero;
        plan_.steps.push_back(
            {.node = node,
             .in = {from},
             .out = id,
             .kind = CopyStep{.scaling = {zero, zero, 1.0F, {-infinite, infinite}}}});
    }

    Plan plan_;
    bool maps_;
    std::vector<bool> once_;  ///< layers of one step
    std::map<TensorId, std::vector<std::size_t>> writers_, readers_;
    std::set<TensorId> given_;
    std::vector<Candidate> candidates_;
    std::map<std::size_t, std::size_t> candidate_of_;  ///< by step
    std::map<TensorId, TensorId> channels_;
    std::map<TensorId, std::pair<TensorId, std::size_t>> whole_;  ///< and its step
    std::set<TensorId> made_;  ///< tensors brought back to where their pixels are
};

}  // namespace

Plan spread_channels(Plan plan, bool maps) {
    return Spreader(std::move(plan), maps).run();
}

}  // namespace reef::edgetpu::lowering
