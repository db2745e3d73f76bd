#include "happens_before.h"

#include <algorithm>

namespace reef::edgetpu::sim {

// A value counts as reached up to 2^15 events later: older ones are never asked for. Values are
// modulo 2^16, so that start stays what it is.
void Events::count(Release event) {
    constexpr std::size_t values = 1U << 16U;
    if (counted.size() == 2 * values) counted.erase(counted.begin(), counted.begin() + values);
    counted.push_back(std::move(event));
}

const Release& Events::that_reached(std::uint16_t needed) const {
    const auto value = static_cast<std::uint16_t>(start + counted.size());
    const auto beyond = static_cast<std::uint16_t>(value - needed);
    return beyond >= counted.size() ? set : counted[counted.size() - beyond - 1];
}

HappensBefore::HappensBefore() : clocks_(actor_count) {
    for (std::size_t a = 0; a < actor_count; ++a) clocks_[a].known[a] = 1;
}

// Whoever knows an actor's time learned it from a release that carried all of the actor's
// knowledge.
bool HappensBefore::knows(Actor actor, const Release& release) const {
    if (release.known == nullptr) return true;
    const Clock& mine = clocks_[actor].known;
    if (release.actor != Release::several) return mine[release.actor] >= release.time;
    return std::ranges::equal(mine, *release.known, std::greater_equal{});
}

Release HappensBefore::release(Actor actor) {
    State& state = clocks_[actor];
    if (state.shared == nullptr) state.shared = std::make_shared<const Clock>(state.known);
    return {state.shared, actor, state.known[actor]++};
}

Release HappensBefore::release_after(const Release& before, Actor actor) {
    auto all = std::make_shared<Clock>(clocks_[actor].known);
    ++clocks_[actor].known[actor];
    if (before.known != nullptr)
        std::ranges::transform(*all, *before.known, all->begin(),
                               [](auto a, auto b) { return std::max(a, b); });
    return {std::move(all), Release::several, 0};
}

void HappensBefore::join(Actor actor, const Release& release) {
    if (knows(actor, release)) return;
    State& state = clocks_[actor];
    for (std::size_t a = 0; a < actor_count; ++a)
        state.known[a] = std::max(state.known[a], (*release.known)[a]);
    if (release.actor != Release::several)
        state.known[release.actor] = std::max(state.known[release.actor], release.time);
    state.shared.reset();
}

void HappensBefore::barrier() {
    Clock all;
    for (std::size_t a = 0; a < actor_count; ++a) all[a] = clocks_[a].known[a];
    for (std::size_t a = 0; a < actor_count; ++a) {
        clocks_[a].known = all;
        ++clocks_[a].known[a];
        clocks_[a].shared.reset();
    }
}

}  // namespace reef::edgetpu::sim
