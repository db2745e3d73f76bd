// How many random networks a test draws: REEF_COMPILER_SEEDS from REEF_COMPILER_FIRST on.
#pragma once

#include <cstdlib>

namespace reef::test {

struct DrawnSeeds {
    unsigned first = 1, count = 0;
    [[nodiscard]] unsigned end() const { return first + count; }
};

/// `standard`: how many where nothing else is asked for.
[[nodiscard]] inline DrawnSeeds drawn_seeds(unsigned standard) {
    const auto number = [](const char* name, unsigned otherwise) {
        const char* text = std::getenv(name);
        return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
    };
    return {number("REEF_COMPILER_FIRST", 1), number("REEF_COMPILER_SEEDS", standard)};
}

}  // namespace reef::test
