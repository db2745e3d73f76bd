// Pass "windows": what each tile stores of a tensor is what it owns and what its readers need.
#include <algorithm>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

template <typename F>
Needs each_span(const Spans& spans, F&& read) {
    Needs needs{};
    for (unsigned i = 0; i < grid; ++i)
        if (!spans[i].empty()) needs[i] = read(spans[i]);
    return needs;
}

Span same(const Span& s) {
    return s;
}

/// Rows or columns that a window's results need, outside the image, too.
auto through(std::int32_t stride, std::int32_t front, std::int32_t reach) {
    return [=](const Span& s) {
        return Span{s.begin * stride - front, (s.end - 1) * stride - front + reach};
    };
}

std::int32_t half_down(std::int32_t x) {
    return x >= 0 ? x / 2 : -((1 - x) / 2);
}

struct NeedsOf {
    const Plan& plan;
    const Step& step;

    [[nodiscard]] const Tensor& out() const { return plan.tensors[step.out]; }
    template <typename F, typename G>
    std::vector<Need> of_first(F&& rows, G&& columns) const {
        return {
            {step.in[0], each_span(out().own_rows, rows), each_span(out().own_columns, columns)}};
    }
    [[nodiscard]] std::vector<Need> of_all() const {
        std::vector<Need> all;
        for (const TensorId in : step.in)
            all.push_back(
                {in, each_span(out().own_rows, same), each_span(out().own_columns, same)});
        return all;
    }
    [[nodiscard]] std::vector<Need> of_window(const Window& w) const {
        return of_first(through(w.stride_h, w.top, w.reach_h()),
                        through(w.stride_w, w.left, w.reach_w()));
    }

    std::vector<Need> operator()(const InputStep&) const { return {}; }
    [[nodiscard]] std::vector<Need> of_phase(const Window& w, const Phase& phase) const {
        const auto rows = through(w.stride_h, w.top, w.reach_h());
        const auto columns = through(w.stride_w, w.left, w.reach_w());
        const auto only = [](const Span& s, const auto& read) {
            return s.empty() ? Span{} : read(s);
        };
        auto needs = of_first(
            [&](const Span& s) { return only(Phase::of(s, phase.stride_h, phase.y), rows); },
            [&](const Span& s) { return only(Phase::of(s, phase.stride_w, phase.x), columns); });
        for (Needs* axis : {&needs[0].rows, &needs[0].columns})
            for (auto& need : *axis)
                if (need && need->empty()) need.reset();
        return needs;
    }

    std::vector<Need> operator()(const ConvolutionStep& s) const {
        return of_phase(s.window, s.phase);
    }
    std::vector<Need> operator()(const SumStep&) const { return of_all(); }
    std::vector<Need> operator()(const CombinationStep&) const { return of_all(); }
    std::vector<Need> operator()(const ProductStep&) const { return of_all(); }
    std::vector<Need> operator()(const CopyStep& s) const { return of_phase(s.window, s.phase); }
    std::vector<Need> operator()(const MaxStep& s) const { return of_window(s.window); }
    std::vector<Need> operator()(const AverageStep& s) const { return of_window(s.window); }
    std::vector<Need> operator()(const GlobalAverageStep&) const { return {}; }
    std::vector<Need> operator()(const SoftmaxStep&) const { return of_all(); }
    std::vector<Need> operator()(const RearrangeStep&) const { return {}; }
    std::vector<Need> operator()(const GatherStep&) const { return {}; }
    std::vector<Need> operator()(const LstmStep&) const { return {}; }
    std::vector<Need> operator()(const SpillStep&) const { return {}; }
    std::vector<Need> operator()(const FetchStep&) const { return {}; }
    std::vector<Need> operator()(const EnlargeStep& s) const {
        if (s.nearest) {
            const auto half = [](const Span& o) { return Span{o.begin / 2, (o.end + 1) / 2}; };
            return of_first(half, half);
        }
        const auto blended = [](const Span& o) {
            return Span{half_down(o.begin - 1), o.end / 2 + 1};
        };
        return of_first(blended, blended);
    }
};

bool widen(Span& span, const Span& by) {
    const Span wider{std::min(span.begin, by.begin), std::max(span.end, by.end)};
    if (wider == span) return false;
    span = wider;
    return true;
}

void widen(Spans& spans, const Needs& needs) {
    for (unsigned i = 0; i < grid; ++i)
        if (needs[i]) (void)widen(spans[i], *needs[i]);
}

bool make_equal(Spans& a, Spans& b) {
    bool changed = false;
    for (unsigned i = 0; i < grid; ++i) {
        changed |= widen(a[i], b[i]);
        changed |= widen(b[i], a[i]);
    }
    return changed;
}

void equal_operands(Plan& plan) {
    for (bool changed = true; changed;) {
        changed = false;
        for (const Step& step : plan.steps) {
            if (!walks_both(step)) continue;
            if (plan.tensors[step.in[0]].in_band) continue;
            Tensor &a = plan.tensors[step.in[0]], &b = plan.tensors[step.in[1]];
            if (&a == &b) continue;
            changed |= make_equal(a.window_rows, b.window_rows);
            changed |= make_equal(a.window_columns, b.window_columns);
        }
    }
}

/// What a tile hands on to the tile behind its neighbour lies in its window, too.
void close_windows(Spans& windows, const Spans& own, std::int32_t size) {
    for (unsigned i = 0; i + 1 < grid; ++i)
        if (windows[i].end > own[i + 1].end)
            windows[i + 1].end = std::max(windows[i + 1].end, std::min(windows[i].end, size));
    for (unsigned i = grid - 1; i > 0; --i)
        if (windows[i].begin < own[i - 1].begin)
            windows[i - 1].begin = std::min(windows[i - 1].begin, std::max(windows[i].begin, 0));
}

}  // namespace

std::vector<Need> needs_of(const Plan& plan, const Step& step) {
    return std::visit(NeedsOf{plan, step}, step.kind);
}

void find_windows(Plan& plan) {
    for (const Step& step : plan.steps) {
        for (const Need& need : needs_of(plan, step)) {
            if (plan.tensors[need.tensor].in_band) continue;
            widen(plan.tensors[need.tensor].window_rows, need.rows);
            widen(plan.tensors[need.tensor].window_columns, need.columns);
        }
    }
    equal_operands(plan);
    for (Tensor& t : plan.tensors) {
        if (t.in_band) continue;
        close_windows(t.window_rows, t.own_rows, t.height);
        close_windows(t.window_columns, t.own_columns, t.width);
    }
    for (Tensor& t : plan.tensors) {
        if (!t.band_of) continue;
        t.window_rows = plan.tensors[*t.band_of].window_rows;
        t.window_columns = plan.tensors[*t.band_of].window_columns;
    }
}

}  // namespace reef::edgetpu::lowering
