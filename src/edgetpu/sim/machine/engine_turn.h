// What a turn of any engine is, of a tile or of the scalar core.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "edgetpu/sim/tile/tile.h"

namespace reef::edgetpu::sim {

/// Cases of a variant, one lambda each.
template <typename... Case>
struct Cases : Case... {
    using Case::operator()...;
};

/// One turn of the engine's instruction; nothing to do is done.
template <typename Activity, typename AnyWork>
Outcome take_turn(Activity& activity, AnyWork& work) {
    return std::visit(
        [&](auto& engine) -> Outcome {
            if constexpr (requires { engine.advance(work); })
                return engine.advance(work);
            else
                return Outcome::done;
        },
        activity);
}

inline std::unexpected<Error> stopped(const Fault& fault, std::string place) {
    constexpr std::string_view usual = "no known program does this";
    return fail(Cause::bad_input, fault.what, std::move(place),
                fault.hint.empty() ? std::string(usual) : fault.hint);
}

}  // namespace reef::edgetpu::sim
