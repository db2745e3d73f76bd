#include <fmt/format.h>

#include <random>

#include "seeds.h"

namespace reef::fuzz {

/// For each number of an operator the bytes of one case, and none, which leaves the case to chance.
Result<Seeds> cpu_operator_seeds() {
    constexpr int operators = 128;
    constexpr int bytes = 400;
    Seeds seeds;
    std::mt19937 random(1);
    for (int i = 0; i < operators; ++i) {
        std::vector<std::byte> contents{static_cast<std::byte>(i)};
        seeds.emplace_back(fmt::format("{}_chance", i), contents);
        for (int b = 0; b < bytes; ++b) contents.push_back(static_cast<std::byte>(random()));
        seeds.emplace_back(fmt::format("{}_bytes", i), std::move(contents));
    }
    return seeds;
}

}  // namespace reef::fuzz
