#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/legalise.h"
#include "rk3588/compiler/plan.h"

namespace reef::rk3588::lowering {
namespace {

constexpr std::uint64_t alignment = 64;

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

std::map<ValueId, Life> lives_of(const Plan& plan) {
    std::map<ValueId, Life> lives;
    const auto touch = [&](ValueId v, std::int64_t when) { lives[plan.roots[v].value].at(when); };
    for (const auto& port : plan.program->inputs) touch(port.source, -1);
    // What runs at once is there at once.
    for (const Step& step : plan.steps) {
        const auto when = static_cast<std::int64_t>(step.stage);
        for (const ValueId in : step.inputs) touch(in, when);
        touch(step.output, when);
    }
    const auto end = static_cast<std::int64_t>(plan.steps.size());
    for (const auto& port : plan.program->outputs) touch(port.source, end);
    return lives;
}

std::uint64_t room(const Plan& plan, ValueId v) {
    const auto slack = plan.slack.find(v);
    const std::uint64_t bytes =
        plan.cube(v).bytes() + (slack == plan.slack.end() ? 0 : slack->second);
    return (bytes + alignment - 1) / alignment * alignment;
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

Status place(Plan& plan) {
    const auto lives = lives_of(plan);
    std::vector<ValueId> order;
    for (const auto& [v, life] : lives) order.push_back(v);
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](ValueId v) { return room(plan, v); });
    std::vector<std::uint64_t> places(plan.graph->values.size(), 0);
    std::vector<ValueId> placed;
    std::uint64_t top = 0;
    for (const ValueId v : order) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
        for (const ValueId other : placed)
            if (lives.at(v).meets(lives.at(other)))
                taken.emplace_back(places[other], places[other] + room(plan, other));
        places[v] = free_place(std::move(taken), room(plan, v));
        top = std::max(top, places[v] + room(plan, v));
        placed.push_back(v);
    }
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    if (top >= most)
        return fail(Cause::unsupported,
                    fmt::format("activations of {} bytes do not fit the chip's addresses", top),
                    model::place_of(plan.graph->subgraph(), plan.steps.front().node));
    plan.offsets.assign(places.begin(), places.end());
    plan.activation_bytes = static_cast<std::uint32_t>(top);
    return {};
}

}  // namespace reef::rk3588::lowering
