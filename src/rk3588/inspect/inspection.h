// What the RK3588's inspector says about a model: its compiled programs.
#pragma once

#include <string>
#include <vector>

#include "reef/chip/inspector.h"
#include "rk3588/artifact/artifact.h"

namespace reef::rk3588 {

/// A compiled program and where it stands in the model.
struct InspectedProgram {
    std::size_t subgraph = 0, index = 0;  ///< of the operator that holds it
    Artifact artifact;
};

class ModelInspection final : public chip::Inspection {
  public:
    explicit ModelInspection(const model::Model& model);

    /// True as well when the programs cannot be read.
    [[nodiscard]] bool is_compiled() const override { return !placements_.empty(); }
    [[nodiscard]] std::string_view not_compiled() const override;
    [[nodiscard]] const chip::Placements& placements() const override { return placements_; }
    /// Sizes, tasks, memory and unproven forms of every program; of its tasks and tensors the first
    /// ones, or all.
    [[nodiscard]] std::vector<chip::Section> sections(chip::Detail detail) const override;
    /// {"compiled": ..., "programs": [...]}
    [[nodiscard]] chip::Object document() const override;

  private:
    Result<std::vector<InspectedProgram>> programs_;  ///< empty for a plain model
    chip::Placements placements_;
};

class Inspector final : public chip::Inspector {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] std::string_view name() const override { return "RK3588"; }
    [[nodiscard]] std::unique_ptr<chip::Inspection> inspect(
        const model::Model& model) const override {
        return std::make_unique<ModelInspection>(model);
    }
};

}  // namespace reef::rk3588
