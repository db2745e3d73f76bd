// What a fuzz target calls when the library broke a promise.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace reef::fuzz {

/// Aborts, which libFuzzer reports as a finding, unless `holds`.
inline void check(bool holds, std::string_view promise) {
    if (holds) return;
    fmt::print(stderr, "broken promise: {}\n", promise);
    std::abort();
}

}  // namespace reef::fuzz
