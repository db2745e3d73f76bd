// What the Edge TPU's inspector says about a model: its compiled parts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reef/chip/inspector.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

/// Instructions of one executable by name, most frequent first; "data" for words that are none.
using InstructionCounts = std::vector<std::pair<std::string, std::size_t>>;
[[nodiscard]] InstructionCounts count_instructions(const Executable& executable);

/// Bytes that cross between host and chip for one inference, parameters loaded once not counted.
struct InferenceTraffic {
    std::int64_t instructions = 0;
    std::int64_t parameters = 0;
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
};
[[nodiscard]] InferenceTraffic traffic_of(const Package& package);

class ModelInspection final : public chip::Inspection {
  public:
    explicit ModelInspection(const model::Model& model);

    /// True as well when the packages cannot be read.
    [[nodiscard]] bool is_compiled() const override { return !placements_.empty(); }
    [[nodiscard]] std::string_view not_compiled() const override;
    [[nodiscard]] const chip::Placements& placements() const override { return placements_; }
    /// Parameter memory, traffic and executables of every compiled operator; of the DMA hints the
    /// first ones, or all.
    [[nodiscard]] std::vector<chip::Section> sections(chip::Detail detail) const override;
    /// {"compiled": ..., "packages": [...]}
    [[nodiscard]] chip::Object document() const override;

  private:
    Result<std::vector<CompiledOperator>> compiled_;  ///< empty for a plain model
    chip::Placements placements_;
};

class Inspector final : public chip::Inspector {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] std::string_view name() const override { return "Edge TPU"; }
    [[nodiscard]] std::unique_ptr<chip::Inspection> inspect(
        const model::Model& model) const override {
        return std::make_unique<ModelInspection>(model);
    }
};

}  // namespace reef::edgetpu
