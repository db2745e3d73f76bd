// Who computes what: steps and shares of steps for the cores, by what each way costs.
#include <algorithm>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/plan.h"

namespace reef::rk3588::lowering {
namespace {

std::uint64_t cost_of_step(const Plan& plan, const Step& step) {
    return cycles_of(work_of(plan, step));
}

bool is_placed(const Step& step) {
    return std::holds_alternative<PlacedStep>(step.kind);
}

/// First cores have at least as many tasks as later ones: drivers start them in rounds.
void order_cores(std::vector<Piece>& pieces) {
    std::vector<std::size_t> tasks;
    for (const Piece& piece : pieces) {
        tasks.resize(std::max(tasks.size(), static_cast<std::size_t>(piece.core) + 1));
        tasks[static_cast<std::size_t>(piece.core)] += piece.tiles.size();
    }
    for (Piece& piece : pieces) {
        const std::size_t own = tasks[static_cast<std::size_t>(piece.core)];
        std::int32_t place = 0;
        for (std::size_t other = 0; other < tasks.size(); ++other)
            if (tasks[other] > own ||
                (tasks[other] == own && other < static_cast<std::size_t>(piece.core)))
                ++place;
        piece.core = place;
    }
    std::ranges::stable_sort(pieces, {}, &Piece::core);
}

void divide(const Plan& plan, Step& step, ConvolutionStep& conv, std::int32_t cores) {
    std::uint64_t best = cost_of_step(plan, step);
    std::vector<Piece> chosen = conv.pieces;
    for (std::int32_t count = 2; count <= cores; ++count)
        for (const Split split : {Split::rows, Split::channels}) {
            auto pieces = pieces_of(conv.shape, conv.task_channels, split, count);
            if (pieces.empty()) continue;
            order_cores(pieces);
            conv.pieces = std::move(pieces);
            const std::uint64_t cost = cost_of_step(plan, step);
            if (cost >= best) continue;
            best = cost;
            chosen = conv.pieces;
        }
    conv.pieces = std::move(chosen);
}

template <class Shared>
void divide(const Plan& plan, Step& step, Shared& shared, std::int32_t cores) {
    const auto surfaces = static_cast<std::int32_t>(plan.cube(step.output).atoms());
    std::uint64_t best = cost_of_step(plan, step);
    std::int32_t chosen = 1;
    for (std::int32_t count = 2; count <= std::min(cores, surfaces); ++count) {
        shared.cores = count;
        const std::uint64_t cost = cost_of_step(plan, step);
        if (cost >= best) continue;
        best = cost;
        chosen = count;
    }
    shared.cores = chosen;
}

void divide(const Plan&, Step&, PlacedStep&, std::int32_t) {}

/// One of them computes what the other reads, or both stand in one place.
bool depends(const Plan& plan, const Step& later, const Step& earlier) {
    const ValueId made = plan.roots[earlier.output].value;
    if (plan.roots[later.output].value == made && is_placed(later)) return true;
    return std::ranges::any_of(later.inputs,
                               [&](ValueId in) { return plan.roots[in].value == made; });
}

std::size_t tasks_of(const Plan& plan, const Step& step) {
    std::size_t tasks = 0;
    for (const Work& work : work_of(plan, step)) tasks += work.tasks;
    return tasks;
}

/// The steps from `first` on that may run at once, each whole on a core of its own: how many are
/// worth it.
std::size_t together(const Plan& plan, const Plan& undivided, std::size_t first,
                     std::int32_t cores) {
    std::vector<Work> works;
    std::uint64_t apart = 0;
    std::size_t count = 0, best = 1;
    for (std::size_t i = first; i < plan.steps.size() && count < static_cast<std::size_t>(cores);
         ++i, ++count) {
        const Step& step = plan.steps[i];
        if (is_placed(step)) break;
        for (std::size_t before = first; before < i; ++before)
            if (depends(plan, step, plan.steps[before])) return best;
        apart += cost_of_step(plan, step);
        works.push_back(work_of(undivided, undivided.steps[i]).front());
        if (count > 0 && cycles_of(works) < apart) best = count + 1;
    }
    return best;
}

}  // namespace

Rows surfaces_of_core(std::int32_t channels, std::int32_t cores, std::int32_t core) {
    const auto atom = static_cast<std::int32_t>(spec::atom_bytes);
    const std::int32_t all = (channels + atom - 1) / atom, each = all / cores, more = all % cores;
    return {core * each + std::min(core, more), each + (core < more ? 1 : 0)};
}

void divide(Plan& plan, std::int32_t cores) {
    if (cores == 1) {
        for (std::size_t i = 0; i < plan.steps.size(); ++i) plan.steps[i].stage = i;
        return;
    }
    const Plan undivided = plan;
    for (Step& step : plan.steps)
        std::visit([&](auto& kind) { divide(plan, step, kind, cores); }, step.kind);
    std::size_t stage = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++stage) {
        const std::size_t count = together(plan, undivided, i, cores);
        if (count > 1) {
            std::vector<std::size_t> order(count);
            for (std::size_t n = 0; n < count; ++n) {
                plan.steps[i + n] = undivided.steps[i + n];
                order[n] = i + n;
            }
            std::ranges::stable_sort(order, std::ranges::greater{},
                                     [&](std::size_t s) { return tasks_of(plan, plan.steps[s]); });
            for (std::size_t core = 0; core < count; ++core)
                plan.steps[order[core]].core = static_cast<std::int32_t>(core);
        }
        for (const std::size_t end = i + count; i < end; ++i) plan.steps[i].stage = stage;
    }
}

}  // namespace reef::rk3588::lowering
