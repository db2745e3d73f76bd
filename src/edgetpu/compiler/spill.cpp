// Pass "spill": tensors that are made early and read late lie in the host's scratch memory in
// between.
#include <algorithm>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

/// Sent to the host in one program: the checks of programs follow 16 MiB, outputs included.
constexpr std::uint64_t most_sent_bytes = 8 << 20;

/// Two steps that touch a tensor, the outputs behind the last step, and none between them.
struct Gap {
    TensorId tensor = 0;
    std::size_t from = 0, to = 0;
    [[nodiscard]] bool passes_over(std::size_t step) const { return from < step && step < to; }
};

/// Which steps touch a tensor.
struct Touches {
    std::vector<std::size_t> steps;  ///< in their order
    std::optional<std::size_t> last_write;
    bool stays = false;
};

std::vector<Touches> touches_of(const Plan& plan) {
    std::vector<Touches> all(plan.tensors.size());
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        // An LSTM's states are written where they are read.
        const bool in_place = std::holds_alternative<LstmStep>(step.kind);
        for (const TensorId in : step.in) {
            const TensorId whole = plan.tensors[in].band_of.value_or(in);
            all[whole].steps.push_back(i);
            all[whole].stays |= in_place || whole != in;
        }
        const TensorId out = plan.tensors[step.out].band_of.value_or(step.out);
        all[out].steps.push_back(i);
        all[out].last_write = i;
        all[out].stays |= in_place;
    }
    for (const Port& port : plan.outputs) all[port.tensor].steps.push_back(plan.steps.size());
    return all;
}

bool computes_between(const Plan& plan, const Gap& gap) {
    for (std::size_t i = gap.from + 1; i < gap.to; ++i)
        if (!moves_to_host(plan.steps[i])) return true;
    return false;
}

std::uint64_t bytes_for_host(const Tensor& t) {
    std::uint64_t bytes = 0;
    for (unsigned tile = 0; tile < all_tiles; ++tile) bytes += t.sent_bytes(tile);
    return bytes;
}

/// Of tensors that the host still has room for.
std::vector<Gap> gaps_of(const Plan& plan) {
    std::vector<Gap> gaps;
    std::uint64_t sent = 0;
    for (const Step& step : plan.steps)
        if (std::holds_alternative<SpillStep>(step.kind)) sent += plan.tensors[step.out].host_bytes;
    const auto touches = touches_of(plan);
    for (TensorId id = 0; id < touches.size(); ++id) {
        const Tensor& t = plan.tensors[id];
        const auto& [steps, last_write, stays] = touches[id];
        if (stays || !last_write || t.layout != Layout::pixels || t.in_band || t.band_of) continue;
        if (sent + bytes_for_host(t) > most_sent_bytes) continue;
        for (std::size_t i = 1; i < steps.size(); ++i) {
            const Gap gap{id, steps[i - 1], steps[i]};
            if (gap.from >= *last_write && computes_between(plan, gap)) gaps.push_back(gap);
        }
    }
    return gaps;
}

class Spiller {
  public:
    explicit Spiller(Plan& plan) : plan_(plan) {}

    /// What follows the gap reads a copy that is fetched in front of it.
    void spill(Gap gap) {
        const TensorId there = on_host(gap);
        Tensor copy = plan_.tensors[gap.tensor];
        copy.window_rows = copy.own_rows;
        copy.window_columns = copy.own_columns;
        plan_.tensors.push_back(std::move(copy));
        const TensorId back = plan_.tensors.size() - 1;
        for (std::size_t i = gap.to; i < plan_.steps.size(); ++i)
            std::ranges::replace(plan_.steps[i].in, gap.tensor, back);
        for (Port& port : plan_.outputs)
            if (port.tensor == gap.tensor) port.tensor = back;
        const std::size_t reader = std::min(gap.to, plan_.steps.size() - 1);
        insert(gap.to,
               {.node = plan_.steps[reader].node, .in = {there}, .out = back, .kind = FetchStep{}});
    }

  private:
    /// The tensor's bytes there; where there are none yet, behind the step that completes it.
    TensorId on_host(Gap& gap) {
        std::size_t written = 0;
        for (std::size_t i = 0; i < gap.to; ++i) {
            const Step& step = plan_.steps[i];
            const bool in = std::ranges::find(step.in, gap.tensor) != step.in.end();
            if (in && std::holds_alternative<SpillStep>(step.kind)) return step.out;
            if (plan_.tensors[step.out].band_of.value_or(step.out) != gap.tensor) continue;
            if (std::holds_alternative<FetchStep>(step.kind)) return step.in[0];
            written = i;
        }
        Tensor there = plan_.tensors[gap.tensor];
        there.host_bytes = static_cast<std::uint32_t>(bytes_for_host(there));
        there.layout = Layout::host;
        there.own_rows = there.own_columns = there.window_rows = there.window_columns = {};
        plan_.tensors.push_back(std::move(there));
        const TensorId id = plan_.tensors.size() - 1;
        insert(written + 1, {.node = plan_.steps[written].node,
                             .in = {gap.tensor},
                             .out = id,
                             .kind = SpillStep{}});
        ++gap.to;
        return id;
    }

    void insert(std::size_t at, Step step) {
        plan_.steps.insert(plan_.steps.begin() + static_cast<std::ptrdiff_t>(at), std::move(step));
    }

    Plan& plan_;
};

/// Over the step where most is in use: the smallest that makes it fit, else the largest.
std::optional<Gap> most_helpful(const Plan& plan) {
    const Pressure now = pressure_in(plan);
    Plan wide = plan;
    find_windows(wide);
    const std::uint64_t excess =
        now.bytes - std::min<std::uint64_t>(now.bytes, plan.most_narrow_bytes);
    std::optional<Gap> best;
    std::uint64_t best_bytes = 0;
    for (const Gap& gap : gaps_of(plan)) {
        if (!gap.passes_over(now.step)) continue;
        const std::uint64_t bytes = wide.tensors[gap.tensor].bytes();
        const bool better =
            best_bytes < excess ? bytes > best_bytes : bytes >= excess && bytes < best_bytes;
        if (best && !better) continue;
        best = gap;
        best_bytes = bytes;
    }
    return best;
}

}  // namespace

std::optional<Plan> spilled(Plan plan) {
    constexpr int most_spills = 64;
    for (int i = 0; i < most_spills && !fits(plan); ++i) {
        const auto gap = most_helpful(plan);
        if (!gap) break;
        Spiller(plan).spill(*gap);
    }
    return in_bands(plan);
}

Plan with_all_spilled(Plan plan) {
    for (auto gaps = gaps_of(plan); !gaps.empty(); gaps = gaps_of(plan))
        Spiller(plan).spill(gaps.front());
    return plan;
}

}  // namespace reef::edgetpu::lowering
