#include "gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

namespace reef::edgetpu::layers {
namespace {

/// The reduction steps that executions look at: equal for those whose loops have one order.
struct Pattern {
    std::vector<std::uint32_t> taps;
    std::uint64_t steps = 0;
    std::vector<std::optional<Place>> distances;  ///< by tap

    [[nodiscard]] bool complete() const {
        return std::ranges::all_of(distances, [](const auto& d) { return d.has_value(); });
    }
};

/// Distinct coordinates, equally far apart.
struct Axis {
    std::int32_t first = 0;
    std::int32_t step = 1;
    std::int32_t count = 1;

    static std::optional<Axis> of(const std::set<std::int32_t>& values) {
        Axis axis{
            .first = *values.begin(), .step = 1, .count = static_cast<std::int32_t>(values.size())};
        if (values.size() < 2) return axis;
        axis.step = *std::next(values.begin()) - axis.first;
        if (*values.rbegin() != axis.first + (axis.count - 1) * axis.step) return std::nullopt;
        for (const auto value : values)
            if ((value - axis.first) % axis.step != 0) return std::nullopt;
        return axis;
    }
    [[nodiscard]] std::int32_t index(std::int32_t value) const { return (value - first) / step; }
};

class Gathering {
  public:
    /// `source`: the only one whose reads say where results are.
    Gathering(const Trace& trace, const Places& places, TracedLayer& layer,
              std::optional<std::int32_t> source = {})
        : trace_(trace), places_(places), layer_(layer), source_(source) {}

    std::string run() {
        const Execution& first = execution(0);
        const bool resizes = first.op->kind == sim::TensorKind::resize;
        if (resizes && !first.op->resize.x.nearest) return "it blends pixels of another grid";
        layer_.element_bytes = first.element_bytes();
        make_patterns();
        if (auto problem = resizes ? place_repeated() : lay_over(); !problem.empty())
            return problem;
        for (const auto step : {&Gathering::align_patterns, &Gathering::check_order,
                                &Gathering::find_rows, &Gathering::find_channels, &Gathering::fill})
            if (auto problem = (this->*step)(); !problem.empty()) return problem;
        return {};
    }

  private:
    [[nodiscard]] const Execution& execution(std::size_t i) const {
        return trace_.executions[layer_.executions[i]];
    }

    /// What tap `tap` of the position reads.
    [[nodiscard]] std::optional<Place> read(std::size_t i, std::size_t tap,
                                            std::size_t position) const {
        const Execution& from = execution(i);
        const Origin origin = from.lanes.empty() ? from.inputs[tap * from.positions() + position]
                                                 : from.lane(tap, position, 0);
        if (source_ && places_.source_of(origin) != source_) return std::nullopt;
        return places_.of(origin);
    }

    void make_patterns() {
        std::map<std::pair<std::vector<std::uint32_t>, std::uint64_t>, std::size_t> known;
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            const auto& taps = from.lanes.empty() ? from.taps : from.lane_taps;
            const std::uint64_t steps = from.shape->steps / from.shape->positions;
            const auto [at, fresh] = known.try_emplace({taps, steps}, patterns_.size());
            if (fresh) patterns_.push_back({taps, steps, {}});
            patterns_[at->second].distances.resize(taps.size());
            pattern_of_.push_back(at->second);
            origins_.emplace_back(from.positions());
        }
    }

    /// They are asked for several times, and to find one takes longer than all else that is done
    /// with it.
    void find_reads() {
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const std::size_t taps = patterns_[pattern_of_[i]].taps.size();
            auto& reads = reads_.emplace_back(execution(i).positions() * taps);
            for (std::size_t at = 0; at < reads.size(); ++at)
                reads[at] = read(i, at % taps, at / taps);
        }
    }

    /// use(execution, position, tap, place) for reads whose places are known, of all positions, tap
    /// by tap.
    template <typename Use>
    void for_each_read(const Use& use) const {
        for (std::size_t i = 0; i < reads_.size(); ++i) {
            const std::size_t taps = patterns_[pattern_of_[i]].taps.size();
            for (std::size_t at = 0; at < reads_[i].size(); ++at)
                if (const auto& place = reads_[i][at]) use(i, at / taps, at % taps, *place);
        }
    }

    /// Begins with the tap that most results know.
    void choose_first_taps() {
        for (std::size_t at = 0; at < patterns_.size(); ++at) {
            std::vector<std::size_t> known(patterns_[at].taps.size());
            for_each_read([&](std::size_t i, std::size_t, std::size_t tap, const Place&) {
                if (pattern_of_[i] == at) ++known[tap];
            });
            const auto most = std::ranges::max_element(known);
            if (most != known.end() && *most > 0)
                patterns_[at].distances[static_cast<std::size_t>(most - known.begin())] = Place{};
        }
    }

    std::string lay_over() {
        find_reads();
        choose_first_taps();
        bool changed = true;
        while (changed) {
            changed = false;
            for_each_read([&](std::size_t i, std::size_t p, std::size_t tap, const Place& place) {
                auto& origin = origins_[i][p];
                auto& distance = patterns_[pattern_of_[i]].distances[tap];
                if (origin.has_value() == distance.has_value()) return;
                if (distance)
                    origin = place - *distance;
                else
                    distance = place - *origin;
                changed = true;
            });
        }
        std::size_t odd = 0;
        for_each_read([&](std::size_t i, std::size_t p, std::size_t tap, const Place& place) {
            const auto& distance = patterns_[pattern_of_[i]].distances[tap];
            if (!distance || !(*origins_[i][p] + *distance == place)) ++odd;
        });
        reads_ = {};
        if (odd != 0) return fmt::format("{} reads do not lie on one grid", odd);
        std::size_t lost = 0;
        for (const auto& origins : origins_)
            lost += static_cast<std::size_t>(std::ranges::count_if(
                origins, [](const auto& origin) { return !origin.has_value(); }));
        if (lost == 0 || take_for_one_pixel()) return {};
        return fmt::format("{} results read nothing whose place is known", lost);
    }

    /// Results of products with weights that all read the same bytes are channels of one pixel,
    /// wherever those bytes are.
    bool take_for_one_pixel() {
        std::set<std::pair<std::uint32_t, Origin>> reads;
        const Execution& first = execution(0);
        for (std::size_t tap = 0; tap < first.taps.size(); ++tap)
            reads.emplace(first.taps[tap], first.inputs[tap * first.positions()]);
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            if (!from.lanes.empty() || from.taps != first.taps) return false;
            for (std::size_t p = 0; p < from.positions(); ++p) {
                if (from.parameters[p] == no_origin) return false;
                for (std::size_t tap = 0; tap < from.taps.size(); ++tap)
                    if (!reads.contains({from.taps[tap], from.inputs[tap * from.positions() + p]}))
                        return false;
            }
            std::ranges::fill(origins_[i], Place{});
        }
        return std::ranges::any_of(reads, [](const auto& at) { return at.second != no_origin; });
    }

    /// Of an axis: where a result is in quarter pixels of its tile's source, and the pixel there.
    struct Quarters {
        std::int32_t at = 0, pixel = 0;
        static Quarters of(const sim::Resize::Axis& axis, std::uint64_t index) {
            constexpr std::int32_t half_a_pixel = 2;
            const auto at = static_cast<std::int32_t>(axis.phase + axis.step * index);
            return {at, (at + half_a_pixel) / quarters_of_pixel};
        }
        /// The same of the whole source, whose pixel that is.
        [[nodiscard]] std::int32_t from(std::int32_t source) const {
            return quarters_of_pixel * (source - pixel) + at;
        }
        static constexpr std::int32_t quarters_of_pixel = 4;
    };

    /// Pixels that are the nearest to several results: those stand at quarters of a pixel.
    std::string place_repeated() {
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            const sim::TensorOp& op = *from.op;
            for (std::size_t p = 0; p < from.positions(); ++p) {
                const auto source = read(i, 0, p);
                if (!source) return "it repeats pixels whose place is not known";
                std::uint64_t rest = p;
                std::array<std::uint64_t, 8> index{};
                for (std::size_t d = 0; d < index.size(); ++d) {
                    index[d] = rest % op.loops.count[d];
                    rest /= op.loops.count[d];
                }
                const auto x = Quarters::of(op.resize.x, index[op.resize.x.level]);
                const auto y = Quarters::of(op.resize.y, index[op.resize.y.level]);
                origins_[i][p] = Place{y.from(source->y), x.from(source->x), source->c};
            }
        }
        return {};
    }

    /// The corner of the window is the same place in all patterns.
    std::string align_patterns() {
        if (patterns_.size() < 2 || execution(0).op->kind == sim::TensorKind::resize) return {};
        for (std::size_t at = 0; at < patterns_.size(); ++at) {
            const Pattern& pattern = patterns_[at];
            if (!pattern.complete()) return "its tiles run different loops over incomplete windows";
            Place corner = *pattern.distances.front();
            for (const auto& distance : pattern.distances)
                corner = {std::min(corner.y, distance->y), std::min(corner.x, distance->x),
                          std::min(corner.c, distance->c)};
            for (std::size_t i = 0; i < origins_.size(); ++i)
                if (pattern_of_[i] == at)
                    for (auto& origin : origins_[i]) origin = *origin + corner;
        }
        return {};
    }

    static constexpr std::array coordinates = {&Place::y, &Place::x, &Place::c};

    /// Bytes that were put into another order on their way (a tensor beside itself, halves that
    /// changed places) are at places that do not say where the results are. An instruction's loops
    /// go over places in their order, and so do tiles over their parts.
    std::string check_order() {
        constexpr std::string_view problem = "what it reads was put into another order";
        std::map<unsigned, std::array<std::set<std::int32_t>, coordinates.size()>> of_tiles;
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const auto& origins = origins_[i];
            for (std::size_t k = 0; k < coordinates.size(); ++k) {
                auto& of_tile = of_tiles[execution(i).tile][k];
                std::int32_t last = (*origins.front()).*coordinates[k];
                for (const auto& origin : origins) {
                    const std::int32_t at = (*origin).*coordinates[k];
                    if (at < last && at != (*origins.front()).*coordinates[k])
                        return std::string(problem);
                    if (at != last || &origin == &origins.front()) of_tile.insert(at);
                    last = at;
                }
            }
        }
        for (const auto& [tile, mine] : of_tiles)
            for (const auto& [other, theirs] : of_tiles) {
                if (other <= tile) continue;
                const bool beside = mine[0] == theirs[0] && *theirs[1].begin() < *mine[1].begin();
                const bool below = mine[1] == theirs[1] && *theirs[0].begin() < *mine[0].begin();
                if (beside || below) return std::string(problem);
            }
        return {};
    }

    std::string find_rows() {
        std::set<std::int32_t> ys;
        std::set<std::int32_t> xs;
        for (const auto& origins : origins_) {
            // Of most results two coordinates are those of the one before.
            const Place* before = nullptr;
            for (const auto& origin : origins) {
                if (before == nullptr || before->y != origin->y) ys.insert(origin->y);
                if (before == nullptr || before->x != origin->x) xs.insert(origin->x);
                if (before == nullptr || before->c != origin->c) channels_read_.insert(origin->c);
                before = &*origin;
            }
        }
        const auto rows = Axis::of(ys);
        const auto columns = Axis::of(xs);
        if (!rows || !columns) return "its results are not equally far apart";
        layer_.height = rows->count;
        layer_.width = columns->count;
        for (auto& origins : origins_) {
            auto& places = layer_.places.emplace_back();
            for (const auto& origin : origins)
                places.push_back({rows->index(origin->y), columns->index(origin->x), origin->c});
        }
        return {};
    }

    std::string find_channels() {
        const bool by_lane = !execution(0).lanes.empty();
        for (std::size_t i = 0; i < layer_.executions.size(); ++i)
            if (execution(i).lanes.empty() == by_lane)
                return "some of its instructions take activations for parameters, others do not";
        if (by_lane) return channels_by_lane();
        return channels_read_.size() == 1 ? channels_by_parameters() : channels_by_source();
    }

    /// A step of the position that reads no border. Precondition: there is one.
    [[nodiscard]] std::size_t inside_tap(std::size_t i, std::size_t position) const {
        std::size_t tap = 0;
        while (!read(i, tap, position)) ++tap;
        return tap;
    }

    /// Each lane has its own source, and what has none is nothing of the tensor: a product of two
    /// tensors is computed word by word with one operand's word in the first lane of a row.
    std::string channels_by_lane() {
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            auto& channels =
                layer_.lane_channels.emplace_back(from.positions() * from.most_lanes());
            for (std::size_t p = 0; p < from.positions(); ++p) {
                const std::size_t tap = inside_tap(i, p);
                const auto first = *read(i, tap, p);
                for (unsigned lane = 0; lane < from.lanes_of(p); ++lane) {
                    const Origin origin = from.lane(tap, p, lane);
                    if (origin == no_origin) {
                        channels[p * from.most_lanes() + lane] = no_channel;
                        continue;
                    }
                    const auto place = places_.of(origin);
                    if (!place) return fmt::format("lane {} reads nothing that is known", lane);
                    if (place->y != first.y || place->x != first.x)
                        return "its lanes read different pixels";
                    channels[p * from.most_lanes() + lane] = place->c;
                    layer_.channels = std::max(layer_.channels, place->c + 1);
                }
            }
        }
        return {};
    }

    /// Every result reads all channels: which it is, its parameters say.
    std::string channels_by_parameters() {
        std::map<Origin, unsigned> lanes;
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            for (std::size_t p = 0; p < from.positions(); ++p) {
                unsigned& most = lanes[from.parameters[p]];
                most = std::max(most, from.lanes_of(p));
            }
        }
        if (lanes.size() > 1 && lanes.contains(no_origin))
            return "some of its parameters are constants, others are not";
        std::map<Origin, std::int32_t> begins;
        for (const auto& [origin, count] : lanes) {
            begins[origin] = layer_.channels;
            layer_.channels += static_cast<std::int32_t>(count);
        }
        for (std::size_t i = 0; i < layer_.executions.size(); ++i)
            for (std::size_t p = 0; p < execution(i).positions(); ++p)
                layer_.places[i][p].c = begins[execution(i).parameters[p]];
        return {};
    }

    /// Results keep the channels of what they read.
    std::string channels_by_source() {
        const std::int32_t first = *channels_read_.begin();
        const auto axis = Axis::of(channels_read_);
        if (!axis) return "the channels that its results read are not equally far apart";
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            for (std::size_t p = 0; p < from.positions(); ++p) {
                auto& place = layer_.places[i][p];
                if (static_cast<std::int32_t>(from.lanes_of(p)) > axis->step)
                    return fmt::format("its results of {} lanes read every {} channels",
                                       from.lanes_of(p), axis->step);
                place.c -= first;
                layer_.channels = std::max(layer_.channels,
                                           place.c + static_cast<std::int32_t>(from.lanes_of(p)));
            }
        }
        return {};
    }

    std::string fill() {
        const std::size_t width = layer_.element_bytes;
        const std::size_t elements = static_cast<std::size_t>(layer_.height) *
                                     static_cast<std::size_t>(layer_.width) *
                                     static_cast<std::size_t>(layer_.channels);
        std::size_t results = 0;
        for (std::size_t i = 0; i < layer_.executions.size(); ++i)
            results += execution(i).results.size() / width;
        const double wanted = double{1} * layer_.height * layer_.width * layer_.channels;
        if (wanted > static_cast<double>(results))
            return fmt::format("{} results are fewer than {}x{}x{} elements", results,
                               layer_.height, layer_.width, layer_.channels);
        if (source_ && !stands_alone())
            return "results of one place in one of its sources stand apart in others";
        layer_.tensor.resize(elements * width);
        std::vector<bool> filled(elements);
        std::size_t contradictions = 0;
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            for (std::size_t p = 0; p < from.positions(); ++p)
                for (unsigned lane = 0; lane < from.lanes_of(p); ++lane) {
                    if (is_idle(i, p, lane)) continue;
                    const std::size_t at = element_at(i, p, lane);
                    const std::byte* value = &from.results[from.offset_of(p) + lane * width];
                    std::byte* element = &layer_.tensor[at * width];
                    if (filled[at] && std::memcmp(element, value, width) != 0) ++contradictions;
                    filled[at] = true;
                    std::memcpy(element, value, width);
                }
        }
        if (contradictions != 0)
            return fmt::format("{} elements are stored twice, with different values",
                               contradictions);
        const auto holes = std::ranges::count(filled, false);
        if (holes != 0)
            return fmt::format("nothing stores {} elements of {}x{}x{}", holes, layer_.height,
                               layer_.width, layer_.channels);
        return {};
    }

    /// Results in one place read the same, whatever source it is of.
    bool stands_alone() const {
        std::map<std::array<std::int32_t, 3>, std::vector<std::optional<Place>>> reads_of;
        for (std::size_t i = 0; i < layer_.executions.size(); ++i) {
            const Execution& from = execution(i);
            const std::size_t lane_taps = from.lanes.empty() ? 0 : from.lane_taps.size();
            for (std::size_t p = 0; p < from.positions(); ++p) {
                std::vector<std::optional<Place>> reads;
                for (std::size_t tap = 0; tap < from.taps.size(); ++tap)
                    reads.push_back(places_.of(from.inputs[tap * from.positions() + p]));
                for (std::size_t tap = 0; tap < lane_taps; ++tap)
                    reads.push_back(places_.of(from.lane(tap, p, 0)));
                const Place& at = layer_.places[i][p];
                const auto [known, fresh] = reads_of.try_emplace({at.y, at.x, at.c}, reads);
                if (!fresh && known->second != reads) return false;
            }
        }
        return true;
    }

    bool is_idle(std::size_t i, std::size_t p, unsigned lane) const {
        return !layer_.lane_channels.empty() &&
               layer_.lane_channels[i][p * execution(i).most_lanes() + lane] == no_channel;
    }

    std::size_t element_at(std::size_t i, std::size_t p, unsigned lane) const {
        const Place& place = layer_.places[i][p];
        const std::int32_t c = layer_.lane_channels.empty()
                                   ? place.c + static_cast<std::int32_t>(lane)
                                   : layer_.lane_channels[i][p * execution(i).most_lanes() + lane];
        const auto pixel =
            static_cast<std::size_t>(place.y) * static_cast<std::size_t>(layer_.width) +
            static_cast<std::size_t>(place.x);
        return pixel * static_cast<std::size_t>(layer_.channels) + static_cast<std::size_t>(c);
    }

    const Trace& trace_;
    const Places& places_;
    TracedLayer& layer_;
    std::optional<std::int32_t> source_;
    std::vector<Pattern> patterns_;
    std::vector<std::size_t> pattern_of_;                     ///< by execution
    std::vector<std::vector<std::optional<Place>>> reads_;    ///< by execution, position and tap
    std::vector<std::vector<std::optional<Place>>> origins_;  ///< by execution and position
    std::set<std::int32_t> channels_read_;
};

}  // namespace

Places::Places(const Trace& trace, const std::vector<TracedLayer>& layers)
    : trace_(&trace), layers_(&layers), at_(trace.executions.size()) {
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
        for (std::size_t i = 0; i < layers[layer].executions.size(); ++i)
            at_[layers[layer].executions[i]] = {layer, i};
}

std::optional<Place> Places::of(Origin origin) const {
    if (origin == no_origin) return std::nullopt;
    const auto& inputs = trace_->programs.back().executable.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!trace_->inputs[i].contains(origin)) continue;
        const auto elements = static_cast<std::size_t>(inputs[i].y_dim) *
                              static_cast<std::size_t>(inputs[i].x_dim) *
                              static_cast<std::size_t>(inputs[i].z_dim);
        const std::size_t width = std::max<std::size_t>(1, trace_->inputs[i].size / elements);
        const auto at = static_cast<std::int32_t>((origin - trace_->inputs[i].first) / width);
        const std::int32_t pixel = at / inputs[i].z_dim;
        return Place{pixel / inputs[i].x_dim, pixel % inputs[i].x_dim, at % inputs[i].z_dim};
    }
    const Execution* execution = trace_->find(origin);
    if (execution == nullptr) return std::nullopt;
    const At& at = at_[static_cast<std::size_t>(execution - trace_->executions.data())];
    const TracedLayer& layer = (*layers_)[at.layer];
    if (!layer.problem.empty() || layer.tensor.empty()) return std::nullopt;
    const std::size_t offset = origin - execution->first_result;
    const std::uint64_t position = execution->position_at(offset);
    const auto lane =
        static_cast<unsigned>((offset - execution->offset_of(position)) / layer.element_bytes);
    if (lane >= execution->lanes_of(position)) return std::nullopt;
    Place place = layer.places[at.execution][position];
    if (layer.lane_channels.empty())
        place.c += static_cast<std::int32_t>(lane);
    else
        place.c = layer.lane_channels[at.execution][position * execution->most_lanes() + lane];
    if (place.c == no_channel) return std::nullopt;
    return place;
}

std::optional<std::int32_t> Places::source_of(Origin origin) const {
    if (const Execution* execution = trace_->find(origin)) {
        const auto at = static_cast<std::size_t>(execution - trace_->executions.data());
        return static_cast<std::int32_t>(at_[at].layer);
    }
    for (std::size_t i = 0; i < trace_->inputs.size(); ++i)
        if (trace_->inputs[i].contains(origin)) return -1 - static_cast<std::int32_t>(i);
    return std::nullopt;
}

void gather(const Trace& trace, const Places& places, TracedLayer& layer) {
    const TracedLayer before = layer;
    layer.problem = Gathering(trace, places, layer).run();
    if (layer.problem.empty() || layer.sources.size() < 2) return;
    // What was enlarged on its way to a CONCATENATION is read in steps of half a pixel, of which
    // the other sources know nothing.
    for (const std::int32_t source : layer.sources) {
        TracedLayer alone = before;
        if (!Gathering(trace, places, alone, source).run().empty()) continue;
        layer = std::move(alone);
        return;
    }
}

}  // namespace reef::edgetpu::layers
