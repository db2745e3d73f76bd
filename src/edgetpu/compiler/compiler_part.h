// The compiler as the command finds it.
#pragma once

#include "reef/chip/checker.h"
#include "reef/chip/compiler.h"

namespace reef::edgetpu {

class CompilerPart final : public chip::Compiler {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] std::vector<std::string_view> passes() const override;
    [[nodiscard]] std::vector<chip::CompilerSetting> settings() const override;
    [[nodiscard]] Result<chip::Compilation> compile(
        const model::Model& model, const chip::CompileOptions& options) const override;
    [[nodiscard]] Result<std::vector<chip::Compilation>> compile_together(
        std::span<const model::Model> models, const chip::CompileOptions& options) const override;
    [[nodiscard]] Result<std::vector<chip::CompiledOperator>> mapping(
        const model::Model& model, const chip::CompileOptions& options) const override;
    [[nodiscard]] std::optional<chip::VendorCompiler> vendor() const override;
};

class TargetCheckerPart final : public chip::TargetChecker {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] std::string_view name() const override { return "Edge TPU"; }
    [[nodiscard]] Result<chip::CheckReport> check(const model::Model& model) const override;
};

}  // namespace reef::edgetpu
