#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "compiler/legalise.h"
#include "rk3588/compiler/plan.h"

namespace reef::rk3588::lowering {
namespace {

constexpr std::uint64_t alignment = 64;
constexpr std::uint64_t most_activation_bytes = std::uint64_t{1} << 31;

/// When a value's cube holds something that is still wanted: from the stage that writes it to the
/// last one that reads it, -1 and the number of steps standing for the host.
struct Life {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = -1;
    void at(std::int64_t when) {
        first = std::min(first, when);
        last = std::max(last, when);
    }
    [[nodiscard]] bool meets(const Life& other) const {
        return first <= other.last && other.first <= last;
    }
};

std::uint64_t room(const Plan& plan, ValueId v) {
    const auto slack = plan.slack.find(v);
    const std::uint64_t bytes =
        plan.cube(v).bytes() + (slack == plan.slack.end() ? 0 : slack->second);
    return (bytes + alignment - 1) / alignment * alignment;
}

/// A value that has a place of its own.
struct PlacedValue {
    ValueId id = 0;
    Life life;
    std::uint64_t size = 0;
    std::uint64_t uses = 0;  ///< how often its bytes pass between the cores and memory

    /// Passes in one stage of its life.
    [[nodiscard]] double passes() const {
        return static_cast<double>(uses) / static_cast<double>(life.last - life.first + 1);
    }
};

std::vector<PlacedValue> placed_values(const Plan& plan) {
    std::map<ValueId, PlacedValue> values;
    const auto touch = [&](ValueId v, std::int64_t when, std::uint64_t uses) {
        const ValueId root = plan.roots[v].value;
        PlacedValue& value = values[root];
        value.id = root;
        value.life.at(when);
        value.uses += uses;
    };
    for (const auto& port : plan.program->inputs) touch(port.source, -1, 0);
    // What runs at once is there at once.
    for (const Step& step : plan.steps) {
        const auto when = static_cast<std::int64_t>(step.stage);
        const std::uint64_t uses = std::holds_alternative<PlacedStep>(step.kind) ? 0 : 1;
        for (const ValueId in : step.inputs) touch(in, when, uses);
        touch(step.output, when, uses);
    }
    const auto end = static_cast<std::int64_t>(plan.steps.size());
    for (const auto& port : plan.program->outputs) touch(port.source, end, 0);
    std::vector<PlacedValue> out;
    for (auto& [v, value] : values) {
        value.size = room(plan, v);
        out.push_back(value);
    }
    return out;
}

/// The lowest place where no value of the same time stands.
std::uint64_t free_place(std::vector<std::pair<std::uint64_t, std::uint64_t>> taken,
                         std::uint64_t size) {
    std::ranges::sort(taken);
    std::uint64_t at = 0;
    for (const auto& [begin, end] : taken) {
        if (at + size <= begin) break;
        at = std::max(at, end);
    }
    return at;
}

using Order = std::vector<std::size_t>;

Order by_size(const std::vector<PlacedValue>& values) {
    Order order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return values[i].size; });
    return order;
}

/// Those of one use in the order of their sizes that `first` says.
template <class Compare>
Order by_use(const std::vector<PlacedValue>& values, Compare first) {
    Order order = by_size(values);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        if (values[a].passes() != values[b].passes())
            return values[a].passes() > values[b].passes();
        return first(values[a].size, values[b].size);
    });
    return order;
}

/// By value, as placed_values() has them.
struct Placement {
    std::vector<std::uint64_t> places;
    std::uint64_t top = 0;
};

Placement placed_in(const std::vector<PlacedValue>& values, const Order& order) {
    Placement out{std::vector<std::uint64_t>(values.size(), 0), 0};
    std::vector<std::size_t> placed;
    for (const std::size_t v : order) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
        for (const std::size_t other : placed)
            if (values[v].life.meets(values[other].life))
                taken.emplace_back(out.places[other], out.places[other] + values[other].size);
        out.places[v] = free_place(std::move(taken), values[v].size);
        out.top = std::max(out.top, out.places[v] + values[v].size);
        placed.push_back(v);
    }
    return out;
}

/// Bytes that pass to and from so many first ones, about: with what rounds sizes up, and all of a
/// concatenation for each of its parts.
std::uint64_t saved(const std::vector<PlacedValue>& values, const Placement& placement,
                    std::uint64_t sram_bytes) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (placement.places[i] < sram_bytes)
            bytes += values[i].uses * std::min(values[i].size, sram_bytes - placement.places[i]);
    return bytes;
}

/// A place in the SRAM is worth what it saves in the time for which nobody else has it.
Placement placed_for(const std::vector<PlacedValue>& values, std::uint32_t sram_bytes) {
    Placement best = placed_in(values, by_size(values));
    if (sram_bytes == 0) return best;
    for (const auto& order :
         {by_use(values, std::ranges::greater{}), by_use(values, std::ranges::less{})}) {
        Placement other = placed_in(values, order);
        if (other.top < most_activation_bytes &&
            saved(values, other, sram_bytes) > saved(values, best, sram_bytes))
            best = std::move(other);
    }
    return best;
}

}  // namespace

Cube Plan::cube(ValueId id) const {
    const auto& v = value(id);
    Cube cube{offsets.empty() ? 0 : offset_of(id), static_cast<std::uint32_t>(v.height),
              static_cast<std::uint32_t>(v.width), static_cast<std::uint32_t>(v.channels),
              v.type == ElementType::uint8};
    if (const auto fold = folds.find(id); fold != folds.end()) cube.fold = fold->second;
    return cube;
}

void find_roots(Plan& plan) {
    plan.roots.resize(plan.graph->values.size());
    for (ValueId v = 0; v < plan.roots.size(); ++v) plan.roots[v] = {v, 0};
    // From the last one, so that parts of parts know where they end up.
    for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
        if (!std::holds_alternative<PlacedStep>(step->kind)) continue;
        const Root& whole = plan.roots[step->output];
        std::uint64_t offset = whole.offset;
        for (const ValueId part : step->inputs) {
            plan.roots[part] = {whole.value, static_cast<std::uint32_t>(offset)};
            offset += plan.cube(part).bytes();
        }
    }
}

Status place(Plan& plan, std::uint32_t sram_bytes) {
    const auto values = placed_values(plan);
    const Placement best = placed_for(values, sram_bytes);
    if (best.top >= most_activation_bytes)
        return fail(
            Cause::unsupported,
            fmt::format("activations of {} bytes do not fit the chip's addresses", best.top),
            model::place_of(plan.graph->subgraph(), plan.steps.front().node));
    plan.offsets.assign(plan.graph->values.size(), 0);
    for (std::size_t i = 0; i < values.size(); ++i)
        plan.offsets[values[i].id] = static_cast<std::uint32_t>(best.places[i]);
    plan.activation_bytes = static_cast<std::uint32_t>(best.top);
    plan.sram_bytes = std::min(sram_bytes, plan.activation_bytes);
    return {};
}

}  // namespace reef::rk3588::lowering
