// How long compiled programs would take on a chip: an estimate, not a measurement.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/chip/report.h"
#include "reef/model/graph.h"

namespace reef::chip {

/// Work over time, for a picture of the programs.
struct WorkPicture {
    struct Lane {
        std::size_t process = 0;  ///< index
        std::string name;         ///< who works: "tile 3 OP"
    };
    struct Span {
        std::size_t lane = 0;  ///< index
        std::string name;      ///< of the instruction
        std::size_t word = 0;  ///< its place in the stream
        double begin_us = 0;
        double duration_us = 0;
    };
    std::vector<std::string> processes;  ///< one a program
    std::vector<Lane> lanes;
    std::vector<Span> spans;
};

struct Estimate {
    std::vector<Section> sections;
    Object document;
    WorkPicture picture;
};

/// Of a family of chips, enrolled as a part of it.
class Estimator : public Part {
  public:
    /// Of all operators compiled for the chip, one after the other; nothing without one.
    /// Errors: those of reading the programs.
    [[nodiscard]] virtual Result<std::optional<Estimate>> estimate(
        const model::Model& model) const = 0;
};

}  // namespace reef::chip
