// What a chip's inspector finds out about a model, compiled for the chip or not.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reef/chip/part.h"
#include "reef/chip/report.h"
#include "reef/model/graph.h"

namespace reef::chip {

struct OperatorPlacement {
    bool on_chip = false;
    std::string reason;
};

/// By subgraph and operator.
using Placements = std::vector<std::vector<OperatorPlacement>>;

/// What one chip says about one model. Keeps what it needs of the model.
class Inspection {
  public:
    Inspection() = default;
    Inspection(const Inspection&) = delete;
    Inspection& operator=(const Inspection&) = delete;
    virtual ~Inspection() = default;

    /// Operators of the model are compiled for this chip, even if what is compiled cannot be read.
    [[nodiscard]] virtual bool is_compiled() const = 0;
    /// Of a model that is not: that it is not, and how it would be. One clause.
    [[nodiscard]] virtual std::string_view not_compiled() const = 0;
    /// Of a compiled model: where each operator runs, and why; empty otherwise.
    [[nodiscard]] virtual const Placements& placements() const = 0;
    /// Of a compiled model: what its programs are made of.
    [[nodiscard]] virtual std::vector<Section> sections(Detail detail) const = 0;
    [[nodiscard]] virtual Object document() const = 0;
};

/// Of a family of chips, enrolled as a part of it.
class Inspector : public Part {
  public:
    /// The chip's, for people.
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual std::unique_ptr<Inspection> inspect(const model::Model& model) const = 0;
};

}  // namespace reef::chip
