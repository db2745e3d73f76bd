// Pass "bands": activations that do not fit are computed a band of rows at a time.
#include <algorithm>
#include <map>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t most_bands = 24;
/// Prefixes that are tried behind the first that fits: later ones compute more than once.
constexpr std::size_t tries_behind = 4;

std::size_t inputs_of(const Plan& plan) {
    return plan.inputs.size();
}

/// Whether steps before `end` give nothing to later ones, and to the host, but their last result.
bool is_closed(const Plan& plan, std::size_t end) {
    const TensorId last = plan.steps[end - 1].out;
    std::vector<bool> made(plan.tensors.size(), false);
    for (std::size_t i = 0; i < end; ++i) {
        if (needs_whole_image(plan.steps[i])) return false;
        made[plan.steps[i].out] = true;
        // A result of several steps is not cut.
        if (i + 1 < end && plan.steps[i].out == last) return false;
    }
    made[last] = false;
    for (std::size_t i = end; i < plan.steps.size(); ++i)
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

/// The steps before `end` for one band.
class BandMaker {
  public:
    BandMaker(Plan& plan, std::size_t end) : plan_(plan), end_(end) {}

    void add(std::int32_t band, std::int32_t bands, std::vector<Step>& to) {
        copies_.clear();
        const TensorId last = plan_.steps[end_ - 1].out;
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
        for (std::size_t i = 0; i < end_; ++i) {
            Step& step = steps.emplace_back(plan_.steps[i]);
            step.out = copy_of(step.out);
            for (TensorId& in : step.in) in = copy_of(in);
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
                changed |= take_in(t.window_rows, t.own_rows, need.rows, t.height);
                changed |= take_in(t.window_columns, t.own_columns, need.columns, t.width);
            }
        }
        return changed;
    }

    Plan& plan_;
    std::size_t end_;
    std::map<TensorId, TensorId> copies_;
};

Plan cut(const Plan& plan, std::size_t end, std::int32_t bands) {
    Plan out = plan;
    BandMaker maker(out, end);
    std::vector<Step> steps;
    for (std::int32_t band = 0; band < bands; ++band) maker.add(band, bands, steps);
    steps.insert(steps.end(), out.steps.begin() + static_cast<std::ptrdiff_t>(end),
                 out.steps.end());
    out.steps = std::move(steps);
    return out;
}

bool fits(Plan plan) {
    find_windows(plan);
    return place_tensors(plan).has_value();
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

}  // namespace

Plan in_bands(Plan plan) {
    if (fits(plan)) return plan;
    std::optional<Plan> best;
    std::uint64_t least = 0;
    std::size_t left = tries_behind;
    for (std::size_t end = inputs_of(plan) + 1; end <= plan.steps.size() && left > 0; ++end) {
        if (!is_closed(plan, end)) continue;
        bool found = false;
        for (std::int32_t bands = 2; bands <= most_bands && !found; ++bands) {
            Plan trial = cut(plan, end, bands);
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
    return best ? std::move(*best) : std::move(plan);
}

}  // namespace reef::edgetpu::lowering
