// How many random networks or operators a test draws, and which.
#pragma once

#include <cstdlib>

namespace reef::test {

struct DrawnSeeds {
    unsigned first = 1, count = 0;
    [[nodiscard]] unsigned end() const { return first + count; }
};

[[nodiscard]] inline DrawnSeeds seeds_from(const char* first, const char* count,
                                           unsigned standard) {
    const auto number = [](const char* name, unsigned otherwise) {
        const char* text = std::getenv(name);
        return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
    };
    return {number(first, 1), number(count, standard)};
}

/// Networks: REEF_COMPILER_SEEDS from REEF_COMPILER_FIRST on. `standard`: how many where nothing
/// else is asked for.
[[nodiscard]] inline DrawnSeeds drawn_seeds(unsigned standard) {
    return seeds_from("REEF_COMPILER_FIRST", "REEF_COMPILER_SEEDS", standard);
}

/// Operators: REEF_SEEDS from REEF_FIRST_SEED on.
[[nodiscard]] inline DrawnSeeds operator_seeds(unsigned standard) {
    return seeds_from("REEF_FIRST_SEED", "REEF_SEEDS", standard);
}

}  // namespace reef::test
