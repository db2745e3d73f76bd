#include "edgetpu/compiler/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "reef/edgetpu/compiler.h"

namespace reef::edgetpu {
namespace lowering {
namespace {

constexpr auto spilling_names =
    std::to_array<std::string_view>({"never", "needed", "faster", "always"});

struct NamedImprovement {
    std::string_view name;
    bool Improvements::*member;
    bool is_pass;
};
constexpr auto named_improvements = std::to_array<NamedImprovement>({
    {"fuse", &Improvements::fuse, true},
    {"spread", &Improvements::spread, true},
    {"ahead", &Improvements::ahead, true},
    {"halo", &Improvements::halo, false},
    {"input", &Improvements::input, false},
});

const NamedImprovement* improvement_named(std::string_view name) {
    const auto found = std::ranges::find(named_improvements, name, &NamedImprovement::name);
    return found == named_improvements.end() ? nullptr : &*found;
}

}  // namespace

Status check_settings(const chip::CompileOptions& options) {
    constexpr auto all =
        std::to_array({setting::without, setting::spill, setting::runtime_version});
    for (const auto& [name, value] : options.settings)
        if (std::ranges::find(all, name) == all.end())
            return fail(Cause::bad_argument, fmt::format("no setting '{}'", name), {},
                        fmt::format("those are {}", fmt::join(all, ", ")));
    return {};
}

Status check_printed(const chip::CompileOptions& options) {
    for (const std::string& name : {options.print_after, options.print_before}) {
        const NamedImprovement* one = improvement_named(name);
        if (one == nullptr || one->is_pass) continue;
        return fail(
            Cause::bad_argument,
            fmt::format("'{}' is a part of the pass emit and leaves nothing of its own", name), {},
            "print what emit leaves, with and without it");
    }
    return {};
}

Result<Improvements> improvements_of(const chip::CompileOptions& options) {
    Improvements all;
    if (options.schedule != chip::Schedule::overlapped)
        for (const auto& one : named_improvements) all.*one.member = false;
    // What these do needs instructions that no known program has.
    if (options.known_forms_only) all.spread = all.ahead = all.halo = all.input = false;
    const auto without = options.settings.find(std::string(setting::without));
    if (without == options.settings.end()) return all;
    if (options.schedule != chip::Schedule::overlapped)
        return fail(Cause::bad_argument, "this schedule has none of the passes that are left out",
                    std::string(setting::without), "leave passes out of the schedule overlapped");
    std::string_view rest = without->second;
    while (!rest.empty()) {
        const auto name = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        const NamedImprovement* one = improvement_named(name);
        if (one == nullptr)
            return fail(Cause::bad_argument, fmt::format("no pass '{}' can be left out", name), {},
                        fmt::format("those are {}", fmt::join(improvements(), ", ")));
        all.*one->member = false;
    }
    return all;
}

Result<Spilling> spilling_of(const chip::CompileOptions& options) {
    const auto given = options.settings.find(std::string(setting::spill));
    if (given == options.settings.end()) return Spilling::needed;
    const auto known = std::ranges::find(spilling_names, given->second);
    if (known == spilling_names.end())
        return fail(Cause::bad_argument, fmt::format("tensors spill '{}'", given->second),
                    std::string(setting::spill),
                    fmt::format("give one of {}", fmt::join(spilling_names, ", ")));
    if (options.schedule == chip::Schedule::vendor)
        return fail(Cause::bad_argument, "what is known of the vendor's schedule spills nothing",
                    std::string(setting::spill), "ask for another schedule");
    return static_cast<Spilling>(known - spilling_names.begin());
}

}  // namespace lowering

std::vector<std::string> improvements() {
    std::vector<std::string> names;
    for (const auto& one : lowering::named_improvements) names.emplace_back(one.name);
    return names;
}

std::vector<std::string> spillings() {
    return {lowering::spilling_names.begin(), lowering::spilling_names.end()};
}

}  // namespace reef::edgetpu
