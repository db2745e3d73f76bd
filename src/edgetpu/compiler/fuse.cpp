// Pass "fuse": elementwise work is done by the step whose result it takes.
#include <algorithm>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

bool is_one_pixel(const Window& w) {
    return w == Window{};
}

/// Values as they are, or limited, to a place among the output's channels.
bool only_limits(const Plan& plan, const Step& step) {
    const auto* copy = std::get_if<CopyStep>(&step.kind);
    if (copy == nullptr || copy->function != Function::none || copy->filled_words != 0 ||
        copy->last_bytes != 0 || copy->first_from_channel != 0 || !is_one_pixel(copy->window) ||
        !(copy->phase == Phase{}))
        return false;
    const Tensor &in = plan.tensors[step.in[0]], &out = plan.tensors[step.out];
    return in.scale == out.scale && copy->scaling.in_zero == copy->scaling.out_zero &&
           in.height == out.height && in.width == out.width &&
           copy->first_channel + in.channels <= out.channels;
}

/// The scaling from a step's sums to its result, where that is all that limits it.
struct ScalingOf {
    Scaling* operator()(ConvolutionStep& s) const { return &s.scaling; }
    Scaling* operator()(SumStep& s) const { return &s.scaling; }
    Scaling* operator()(ProductStep& s) const { return &s.scaling; }
    Scaling* operator()(CombinationStep& s) const { return &s.scaling; }
    Scaling* operator()(CopyStep& s) const {
        return s.function == Function::none ? &s.scaling : nullptr;
    }
    Scaling* operator()(auto&) const { return nullptr; }
};

/// How many words of a pixel a copy takes follows from its tensors: all of its input's, or it
/// stays.
bool can_be_placed(const Plan& plan, const Step& step) {
    if (const auto* copy = std::get_if<CopyStep>(&step.kind))
        return copy->first_from_channel == 0 && copy->filled_words == 0 && copy->last_bytes == 0 &&
               plan.tensors[step.in[0]].words() <= plan.tensors[step.out].words();
    return std::holds_alternative<ConvolutionStep>(step.kind) ||
           std::holds_alternative<SumStep>(step.kind) ||
           std::holds_alternative<ProductStep>(step.kind) ||
           std::holds_alternative<CombinationStep>(step.kind);
}

class Fuser {
  public:
    explicit Fuser(Plan plan) : plan_(std::move(plan)) {}

    Plan run() {
        for (std::size_t i = 0; i < plan_.steps.size();) {
            if (!fuse(i))
                ++i;
            else
                plan_.steps.erase(plan_.steps.begin() + static_cast<std::ptrdiff_t>(i));
        }
        return std::move(plan_);
    }

  private:
    /// What a step limits more than the type of its result does.
    [[nodiscard]] static bool has_limits(const Scaling& s, float scale) {
        const auto whole = clamp_limits(scale, s.out_zero, 0, 255, ActivationLimits::none);
        return s.clamp.min > whole.min || s.clamp.max < whole.max;
    }

    [[nodiscard]] bool only_read_by(TensorId id, std::size_t reader) const {
        for (std::size_t i = 0; i < plan_.steps.size(); ++i)
            if (i != reader && compiler::holds(plan_.steps[i].in, id)) return false;
        return std::ranges::none_of(plan_.outputs, [&](const Port& p) { return p.tensor == id; });
    }

    /// Whether the steps in front of step `number` do its work now.
    bool fuse(std::size_t number) {
        const Step& copy = plan_.steps[number];
        if (!only_limits(plan_, copy) || !only_read_by(copy.in[0], number)) return false;
        const auto& kind = std::get<CopyStep>(copy.kind);
        const TensorId from = copy.in[0];
        const bool limits = has_limits(kind.scaling, plan_.tensors[copy.out].scale);
        std::vector<Step*> writers;
        for (Step& step : plan_.steps)
            if (step.out == from) writers.push_back(&step);
        const auto takes = [&](Step* w) {
            const Scaling* scaling = std::visit(ScalingOf{}, w->kind);
            return can_be_placed(plan_, *w) &&
                   (!limits || (scaling != nullptr && scaling->out_zero == kind.scaling.out_zero));
        };
        if (writers.empty() || !std::ranges::all_of(writers, takes)) return false;
        for (Step* writer : writers) {
            if (limits) limit(*std::visit(ScalingOf{}, writer->kind), kind.scaling.clamp);
            place(*writer, copy.out, kind.first_channel);
        }
        return true;
    }

    static void limit(Scaling& scaling, const ClampLimits& by) {
        scaling.clamp.min = std::max(scaling.clamp.min, by.min);
        scaling.clamp.max = std::min(scaling.clamp.max, by.max);
    }
    static void place(Step& step, TensorId out, std::int32_t channel) {
        step.out = out;
        if (auto* copy = std::get_if<CopyStep>(&step.kind))
            copy->first_channel += channel;
        else
            step.first_channel += channel;
    }

    Plan plan_;
};

}  // namespace

Plan fused(Plan plan) {
    return Fuser(std::move(plan)).run();
}

}  // namespace reef::edgetpu::lowering
