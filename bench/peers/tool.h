// Programs of other projects that time a model themselves, when they are installed.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace reef::peers {

struct Tool {
    std::string name;  ///< "LiteRT"
    std::vector<std::string> command;
    /// Behind it in what the program prints stands its average.
    std::string before_average;
    double milliseconds = 1;  ///< of the unit in which it prints
};

/// The tools that run the model, with `threads`: LiteRT's `benchmark_model`, found by the variable
/// REEF_LITERT_BENCHMARK or on the PATH.
[[nodiscard]] std::vector<Tool> installed_tools(const std::string& model, int threads);

/// The average of one round in milliseconds; nothing when the program fails or prints none.
[[nodiscard]] std::optional<double> average_of(const Tool& tool);

}  // namespace reef::peers
