#include "inputs/chips.h"

#include <fmt/format.h>

#include <vector>

#include "reef/runtime/registry.h"

namespace reef::tool {

using runtime::Registry;

Error not_compiled() {
    const std::string chips = chip_names();
    return {.cause = Cause::bad_input,
            .what = fmt::format("the model is not compiled: it has no program for the {}", chips),
            .place = {},
            .hint = fmt::format("give the file that the {} compiler wrote", chips)};
}

Error no_part(std::string_view family, std::string_view verb) {
    return {.cause = Cause::unsupported,
            .what = fmt::format("the {} has nothing for {}", chip_name(family), verb),
            .place = {},
            .hint = {}};
}

std::string with_example_chip(std::string_view text) {
    constexpr std::string_view placeholder = "CHIP";
    const auto simulated = Registry::of_process().devices_with(runtime::Capability::simulated);
    const std::string family =
        simulated.empty() ? "chip" : simulated.front().substr(0, simulated.front().find(':'));
    std::string out;
    while (true) {
        const std::size_t at = text.find(placeholder);
        out += text.substr(0, at);
        if (at == std::string_view::npos) return out;
        out += family;
        text.remove_prefix(at + placeholder.size());
    }
}

}  // namespace reef::tool
