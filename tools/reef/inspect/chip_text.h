// What a chip says about a model, as text.
#pragma once

#include <string>
#include <vector>

#include "inspect/report.h"
#include "outputs/console.h"

namespace reef::tool {

/// The chip's name as fields are named.
[[nodiscard]] std::string label_of(const chip::Inspector& inspector);

/// The operators of a subgraph by where they run and why. `costs` has one entry per operator.
void print_placement(Console& console, const model::Subgraph& graph, const ChipReport& chip,
                     std::size_t subgraph, const std::vector<model::Cost>& costs);

/// Which operators of the first subgraph the chip's compiler takes, and why not the others.
void print_mapping(Console& console, const MappingReport& mapping);

void print_section(Console& console, const chip::Section& section);

}  // namespace reef::tool
