// The networks that are compared: files, and those that are known by their shapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::peers {

/// Before one of known_shapes() in place of a file's name.
inline constexpr std::string_view shape_prefix = "shape:";

struct Network {
    std::string name;
    model::Model model;
};
/// Without a custom operator at its end, a decoder, which no peer has.
[[nodiscard]] Result<Network> load_network(const std::string& path);
[[nodiscard]] std::string name_of_network(const std::string& path);

/// The plain quantised models of the reference data; none without REEF_SHARED.
[[nodiscard]] std::vector<std::string> known_models();

/// What is measured without reference data.
[[nodiscard]] std::vector<std::string> few_shapes();

}  // namespace reef::peers
