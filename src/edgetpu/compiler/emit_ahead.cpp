// Parameters of the next layer on their way while a step computes.
#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

/// Counters have 16 bits, a stream 16384 words: sometimes everything stops.
constexpr std::uint64_t most_events = 16384;
constexpr std::size_t most_words = 8192;

/// Steps without rings.
struct UsesNoRing {
    bool operator()(const InputStep&) const { return false; }
    bool operator()(const ConvolutionStep&) const { return false; }
    bool operator()(const GlobalAverageStep&) const { return false; }
    bool operator()(const RearrangeStep&) const { return false; }
    bool operator()(const SoftmaxStep&) const { return false; }
    bool operator()(const GatherStep&) const { return false; }
    bool operator()(const LstmStep&) const { return false; }
    bool operator()(const SpillStep&) const { return false; }
    bool operator()(const FetchStep&) const { return false; }
    bool operator()(const SumStep&) const { return true; }
    bool operator()(const CombinationStep&) const { return true; }
    bool operator()(const ProductStep&) const { return true; }
    bool operator()(const CopyStep&) const { return true; }
    bool operator()(const MaxStep&) const { return true; }
    bool operator()(const AverageStep&) const { return true; }
    bool operator()(const EnlargeStep&) const { return true; }
};
/// ... that read no parameters from rows that take turns, and leave their counter alone.
struct CountsNoParameters {
    bool operator()(const ProductStep&) const { return false; }
    bool operator()(const MaxStep&) const { return false; }
    bool operator()(const auto&) const { return true; }
};

bool shares_scratch(const ParameterLayer& a, const ParameterLayer& b) {
    return a.schedule.head < b.scratch_end && b.schedule.head < a.scratch_end;
}

const ParameterLayer* layer_of(const Plan& plan, const Step& step) {
    const auto* conv = std::get_if<ConvolutionStep>(&step.kind);
    return conv == nullptr ? nullptr : &plan.layers[conv->layer];
}

program::Ring ring_of(const ParameterLayer& layer) {
    return layer.relayed ? program::Ring::a : program::Ring::b;
}

/// The step that computes the next layer, if nothing before it is in the way.
std::optional<std::size_t> next_layer(const Emission& e, std::size_t step) {
    const Plan& plan = e.plan;
    bool counts = false;
    for (std::size_t i = step + 1; i < plan.steps.size(); ++i) {
        const Step& next = plan.steps[i];
        if (const auto* layer = layer_of(plan, next)) {
            if (layer->spread || layer->streamed) return std::nullopt;
            if (counts &&
                (!layer->schedule.is_whole() || e.code.awaits_consumption(ring_of(*layer))))
                return std::nullopt;
            return i;
        }
        if (!std::visit(UsesNoRing{}, next.kind)) return std::nullopt;
        counts |= !std::visit(CountsNoParameters{}, next.kind);
    }
    return std::nullopt;
}

}  // namespace

void send_ahead(Emission& e, std::size_t number) {
    const Plan& plan = e.plan;
    if (!plan.ahead || e.ahead) return;
    const auto* layer = layer_of(plan, plan.steps[number]);
    if (layer != nullptr && (layer->spread || layer->streamed)) return;
    // Its stop waits for the host's transfer and the scalar core's engines.
    if (moves_to_host(plan.steps[number])) return;
    const auto next = next_layer(e, number);
    if (!next || e.code.words_since_stop() > most_words) return;
    const Step& step = plan.steps[*next];
    const auto& kind = std::get<ConvolutionStep>(step.kind);
    const ParameterLayer& coming = plan.layers[kind.layer];
    // Two relays would share the scalar core's memory.
    if (layer != nullptr && (shares_scratch(*layer, coming) || (layer->relayed && coming.relayed)))
        return;
    Emission::Ahead ahead{.early = true};
    const auto ring = ring_of(coming);
    // An input's rows are still being received there.
    if (ring == program::Ring::a && std::holds_alternative<InputStep>(plan.steps[number].kind))
        return;
    for (unsigned t = 0; t < all_tiles; ++t) {
        const auto received = e.code.ring_events(t, ring), consumed = e.code.consumed_events(t);
        if (received > most_events || consumed > most_events) return;
        ahead.received[t] = static_cast<std::int32_t>(received);
        ahead.consumed[t] = static_cast<std::int32_t>(consumed);
    }
    e.code.begin_part("ahead");
    load(e, step, kind, ahead);
    e.ahead = ahead;
    e.code.let_fly(Emitter::Flight{.ring = ring, .relayed = coming.relayed});
}

}  // namespace reef::edgetpu::lowering
