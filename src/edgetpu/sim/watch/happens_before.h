// What is known to come before what: vector clocks over everything that acts in the machine.
//
// An actor's time counts its releases: moments at which others can come to know what it did. A
// release carries all that its actor knew then. Two accesses are ordered when the later one's actor
// had come to know the earlier one's time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "edgetpu/sim/program/memory.h"

namespace reef::edgetpu::sim {

/// Engines of a tile, in the order of the description's tile_engine.
inline constexpr unsigned tile_engine_count = 10;
enum ScalarEngine : unsigned { infeed, push, pop, scalar_engine_count };

/// Everything that acts on its own.
using Actor = std::uint16_t;
[[nodiscard]] constexpr Actor tile_actor(unsigned tile, unsigned engine) {
    return static_cast<Actor>(tile * tile_engine_count + engine);
}
[[nodiscard]] constexpr Actor scalar_actor(unsigned engine) {
    return static_cast<Actor>(tile_count * tile_engine_count + engine);
}
inline constexpr Actor core_actor = scalar_actor(scalar_engine_count);
/// Hands a tile's instructions to its engines and executes its fences.
[[nodiscard]] constexpr Actor dispatch_actor(unsigned tile) {
    return static_cast<Actor>(core_actor + 1 + tile);
}
inline constexpr std::size_t actor_count = dispatch_actor(tile_count);

using Clock = std::array<std::uint32_t, actor_count>;

struct Release {
    /// Of several actors at once: `known` holds all of it.
    static constexpr Actor several = 0xffff;

    std::shared_ptr<const Clock> known;
    Actor actor = several;
    std::uint32_t time = 0;  ///< of the actor, which `known` may have older
};

/// The events of a counter since it was set, in their order.
struct Events {
    std::uint16_t start = 0;
    Release set;
    std::vector<Release> counted;

    void count(Release event);
    /// The event that brought the counter to `needed`; what set it, when that was enough.
    /// Precondition: the counter has reached it.
    [[nodiscard]] const Release& that_reached(std::uint16_t needed) const;
};

class HappensBefore {
  public:
    HappensBefore();

    [[nodiscard]] std::uint32_t now(Actor actor) const { return clocks_[actor].known[actor]; }
    [[nodiscard]] bool knows(Actor actor, Actor other, std::uint32_t time) const {
        return clocks_[actor].known[other] >= time;
    }
    [[nodiscard]] bool knows(Actor actor, const Release& release) const;
    Release release(Actor actor);
    /// What others released up to `before`, and now this one.
    Release release_after(const Release& before, Actor actor);
    void join(Actor actor, const Release& release);
    /// Everything so far comes before everything that follows.
    void barrier();

  private:
    struct State {
        Clock known{};
        std::shared_ptr<const Clock> shared;  ///< copy of known; only the own time may be older
    };
    std::vector<State> clocks_;
};

}  // namespace reef::edgetpu::sim
