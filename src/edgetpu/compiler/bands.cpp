// Pass "bands": activations that do not fit are computed a band of rows at a time.
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t most_bands = 24;
/// Prefixes that are tried behind the first that fits: later ones compute more than once.
constexpr std::size_t tries_behind = 4;
/// Numbers of bands whose beginning fits, with which the rest of a network is tried: what fits
/// together may still find no places, and more bands leave more room.
constexpr int tries_of_beginning = 4;

std::size_t inputs_of(const Plan& plan) {
    return plan.inputs.size();
}

/// Steps [begin, end).
struct Stretch {
    std::size_t begin = 0, end = 0;
};

/// Whether other steps write what the stretch makes, or one instruction would walk an operand in
/// bands and another that is whole.
bool is_mixed(const Plan& plan, const Stretch& s, const std::vector<bool>& made) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const bool inside = s.begin <= i && i < s.end;
        if (!inside && made[step.out]) return true;
        if (inside && walks_both(step) && made[step.in[0]] != made[step.in[1]]) return true;
    }
    return false;
}

/// Whether the stretch gives nothing to other steps, and to the host, but its last result.
bool is_closed(const Plan& plan, const Stretch& s) {
    const TensorId last = plan.steps[s.end - 1].out;
    std::vector<bool> made(plan.tensors.size(), false);
    for (std::size_t i = s.begin; i < s.end; ++i) {
        const Step& step = plan.steps[i];
        if (needs_whole_image(step) || moves_to_host(step) || plan.tensors[step.out].in_band ||
            plan.tensors[step.out].band_of)
            return false;
        made[step.out] = true;
        // A result of several steps is not cut.
        if (i + 1 < s.end && step.out == last) return false;
    }
    if (is_mixed(plan, s, made)) return false;
    made[last] = false;
    for (std::size_t i = s.end; i < plan.steps.size(); ++i)
        for (const TensorId in : plan.steps[i].in)
            if (made[in]) return false;
    return std::ranges::none_of(plan.outputs, [&](const Port& p) { return made[p.tensor]; });
}

bool is_nowhere(const Spans& spans) {
    return std::ranges::all_of(spans, [](const Span& s) { return s.empty(); });
}

/// Widens a window, and what of the image lies in it. Whether that changed anything.
bool take_in(Spans& windows, Spans& own, const Needs& needs, std::int32_t size) {
    bool changed = false;
    for (unsigned i = 0; i < grid; ++i) {
        if (!needs[i] || needs[i]->empty()) continue;
        const Span& n = *needs[i];
        const Span wide = windows[i].empty() ? n
                                             : Span{std::min(windows[i].begin, n.begin),
                                                    std::max(windows[i].end, n.end)};
        if (wide == windows[i]) continue;
        windows[i] = wide;
        own[i] = {std::max(wide.begin, 0), std::min(wide.end, size)};
        changed = true;
    }
    return changed;
}

Needs as_needs(const Spans& spans) {
    Needs needs{};
    for (unsigned i = 0; i < grid; ++i) needs[i] = spans[i];
    return needs;
}

/// The steps of a stretch for one band.
class BandMaker {
  public:
    BandMaker(Plan& plan, const Stretch& stretch)
        : plan_(plan), stretch_(stretch), made_(plan.tensors.size(), false) {
        for (std::size_t i = stretch.begin; i < stretch.end; ++i) made_[plan.steps[i].out] = true;
    }

    void add(std::int32_t band, std::int32_t bands, std::vector<Step>& to) {
        copies_.clear();
        const TensorId last = plan_.steps[stretch_.end - 1].out;
        const TensorId part = copy_of(last);
        {
            Tensor& t = plan_.tensors[part];
            const Tensor& whole = plan_.tensors[last];
            t.band_of = last;
            t.in_band = false;
            t.own_columns = whole.own_columns;
            for (unsigned i = 0; i < grid; ++i) {
                const auto [begin, stop] = whole.own_rows[i];
                const std::int32_t size = stop - begin;
                t.own_rows[i] = {begin + band * size / bands, begin + (band + 1) * size / bands};
            }
        }
        std::vector<Step> steps;
        for (std::size_t i = stretch_.begin; i < stretch_.end; ++i) {
            Step& step = steps.emplace_back(plan_.steps[i]);
            step.out = copy_of(step.out);
            // What the stretch does not make is there as a whole.
            for (TensorId& in : step.in)
                if (made_[in]) in = copy_of(in);
        }
        while (widen_once(steps)) {
        }
        for (Step& step : steps)
            if (!is_nowhere(plan_.tensors[step.out].own_rows)) to.push_back(std::move(step));
    }

  private:
    TensorId copy_of(TensorId id) {
        const auto [at, fresh] = copies_.try_emplace(id, plan_.tensors.size());
        if (!fresh) return at->second;
        Tensor copy = plan_.tensors[id];
        copy.own_rows = copy.own_columns = copy.window_rows = copy.window_columns = {};
        copy.in_band = true;
        plan_.tensors.push_back(std::move(copy));
        return at->second;
    }

    bool widen_once(const std::vector<Step>& steps) {
        bool changed = false;
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
            if (is_nowhere(plan_.tensors[step->out].own_rows)) continue;
            auto needs = needs_of(plan_, *step);
            if (walks_both(*step))
                for (const std::size_t i : {0, 1}) {
                    const Tensor& other = plan_.tensors[step->in[1 - i]];
                    needs.push_back(
                        {step->in[i], as_needs(other.window_rows), as_needs(other.window_columns)});
                }
            for (const Need& need : needs) {
                Tensor& t = plan_.tensors[need.tensor];
                if (!t.in_band) continue;
                changed |= take_in(t.window_rows, t.own_rows, need.rows, t.height);
                changed |= take_in(t.window_columns, t.own_columns, need.columns, t.width);
            }
        }
        return changed;
    }

    Plan& plan_;
    Stretch stretch_;
    std::vector<bool> made_;  ///< tensors, in the stretch
    std::map<TensorId, TensorId> copies_;
};

Plan cut(const Plan& plan, const Stretch& s, std::int32_t bands) {
    Plan out = plan;
    BandMaker maker(out, s);
    const auto at = [&](std::size_t i) {
        return out.steps.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::vector<Step> steps(at(0), at(s.begin));
    for (std::int32_t band = 0; band < bands; ++band) maker.add(band, bands, steps);
    steps.insert(steps.end(), at(s.end), out.steps.end());
    out.steps = std::move(steps);
    return out;
}

/// A tile's part of the last result has no more rows.
std::int32_t most_bands_of(const Plan& plan, const Stretch& s) {
    std::int32_t rows = 0;
    for (const Span& own : plan.tensors[plan.steps[s.end - 1].out].own_rows)
        rows = std::max(rows, own.size());
    return std::clamp(rows, 2, most_bands);
}

/// Work in steps of a tile, and bytes from the host, in cycles: for comparing cuts.
std::uint64_t cost_of(const Plan& plan) {
    constexpr std::uint64_t bytes_per_cycle = 16;
    std::uint64_t cost = 0;
    for (const Step& step : plan.steps) {
        const Tensor& out = plan.tensors[step.out];
        std::uint64_t work = std::uint64_t{out.most_pixels()} * out.words();
        if (const auto* conv = std::get_if<ConvolutionStep>(&step.kind)) {
            work *= static_cast<std::uint64_t>(conv->window.kernel_h) *
                    static_cast<std::uint64_t>(conv->window.kernel_w);
            if (!conv->depthwise) work = work * plan.tensors[step.in[0]].words() / 16 + 1;
        } else if (std::holds_alternative<InputStep>(step.kind)) {
            work += out.input_bytes() / bytes_per_cycle;
        }
        cost += work;
    }
    return cost;
}

/// The cut with the least work of those that begin with the inputs; none where nothing fits.
std::optional<Plan> in_bands_from_the_start(const Plan& plan) {
    std::optional<Plan> best;
    std::uint64_t least = 0;
    std::size_t left = tries_behind;
    for (std::size_t end = inputs_of(plan) + 1; end <= plan.steps.size() && left > 0; ++end) {
        if (!is_closed(plan, {0, end})) continue;
        bool found = false;
        const std::int32_t most = most_bands_of(plan, {0, end});
        for (std::int32_t bands = 2; bands <= most && !found; ++bands) {
            Plan trial = cut(plan, {0, end}, bands);
            if (!fits(trial)) continue;
            found = true;
            const std::uint64_t cost = cost_of(trial);
            if (best && cost >= least) continue;
            least = cost;
            best = std::move(trial);
        }
        if (best && !found) break;
        if (best) --left;
    }
    return best;
}

/// The cut around the step where most is in use that leaves least of it there and beside: of those
/// that leave no more than there is, that of the least work. None where no cut helps.
std::optional<Plan> relieved(const Plan& plan, const Pressure& now) {
    constexpr std::size_t reach = 4;
    constexpr auto numbers = std::to_array<std::int32_t>({2, 4, 12});
    std::optional<Plan> best;
    std::pair least{std::numeric_limits<std::uint64_t>::max(), std::uint64_t{0}};
    const std::size_t first = now.step - std::min(now.step, reach);
    const std::size_t past = std::min(plan.steps.size(), now.step + reach);
    for (std::size_t begin = first; begin <= now.step; ++begin)
        for (std::size_t end = now.step + 1; end <= past; ++end) {
            const Stretch stretch{begin, end};
            if (end - begin < 2 || !is_closed(plan, stretch)) continue;
            const std::int32_t most = most_bands_of(plan, stretch);
            for (const std::int32_t number : numbers) {
                const std::int32_t bands = std::min(number, most);
                Plan trial = cut(plan, stretch, bands);
                const std::size_t added = trial.steps.size() - plan.steps.size();
                const std::uint64_t bytes =
                    pressure_in(trial, begin - std::min<std::size_t>(begin, 1),
                                std::min(end + 1, plan.steps.size()) + added)
                        .bytes;
                const std::pair left{std::max<std::uint64_t>(bytes, plan.most_narrow_bytes),
                                     cost_of(trial)};
                if (bytes < now.bytes && left < least) {
                    least = left;
                    best = std::move(trial);
                }
                if (bytes <= plan.most_narrow_bytes || bands == most) break;
            }
        }
    return best;
}

/// One stretch in bands after the other, where most is in use; none where that does not make it
/// fit. `stuck`: the node for which too much is in use then.
std::optional<Plan> in_bands_in_the_midst(Plan plan, std::size_t* stuck = nullptr) {
    constexpr int most_stretches = 6;
    for (int i = 0; i < most_stretches; ++i) {
        const Pressure now = pressure_in(plan);
        auto less = relieved(plan, now);
        if (!less) {
            if (stuck != nullptr && now.bytes > plan.most_narrow_bytes)
                *stuck = plan.steps[now.step].node;
            return std::nullopt;
        }
        plan = std::move(*less);
        if (fits(plan)) return plan;
    }
    return std::nullopt;
}

/// Whether steps [0, end) would fit by themselves.
bool beginning_fits(Plan plan, std::size_t end) {
    const std::uint64_t most = plan.most_narrow_bytes;
    plan.steps.resize(end);
    return pressure_in(std::move(plan)).bytes <= most;
}

/// The inputs and what follows them in bands, then stretches in the midst. The cut with the least
/// work; none where nothing fits.
std::optional<Plan> in_bands_here_and_there(const Plan& plan) {
    std::optional<Plan> best;
    std::size_t left = tries_behind, stuck = 0;
    for (std::size_t end = inputs_of(plan) + 1; end <= plan.steps.size() && left > 0; ++end) {
        // No beginning that ends in front of what did not fit makes that fit.
        if (plan.steps[end - 1].node < stuck || !is_closed(plan, {0, end})) continue;
        int tries = tries_of_beginning;
        bool found = false;
        const std::int32_t most = most_bands_of(plan, {0, end});
        for (std::int32_t bands = 2; bands <= most && tries > 0 && !found; ++bands) {
            if (plan.steps[end - 1].node < stuck) break;
            Plan trial = cut(plan, {0, end}, bands);
            const std::size_t behind = plan.steps.size() - end;
            if (!beginning_fits(trial, trial.steps.size() - behind)) continue;
            --tries;
            auto done = in_bands_in_the_midst(std::move(trial), &stuck);
            found = done.has_value();
            if (done && (!best || cost_of(*done) < cost_of(*best))) best = std::move(done);
        }
        if (best) --left;
    }
    return best;
}

}  // namespace

bool fits(Plan plan) {
    find_windows(plan);
    return place_tensors(plan).has_value();
}

Pressure pressure_in(Plan plan) {
    const std::size_t end = plan.steps.size();
    return pressure_in(std::move(plan), 0, end);
}
Pressure pressure_in(Plan plan, std::size_t begin, std::size_t end) {
    find_windows(plan);
    return pressure_of(std::move(plan), begin, end);
}

std::optional<Plan> in_bands(const Plan& plan) {
    if (fits(plan)) return plan;
    if (auto done = in_bands_from_the_start(plan)) return done;
    if (auto done = in_bands_in_the_midst(plan)) return done;
    return in_bands_here_and_there(plan);
}

}  // namespace reef::edgetpu::lowering
