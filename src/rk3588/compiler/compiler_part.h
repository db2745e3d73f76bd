// The compiler and its predicates as the command knows them.
#pragma once

#include "reef/chip/checker.h"
#include "reef/chip/compiler.h"

namespace reef::rk3588 {

class CompilerPart final : public chip::Compiler {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] std::vector<std::string_view> passes() const override;
    [[nodiscard]] std::vector<chip::CompilerSetting> settings() const override;
    [[nodiscard]] Result<chip::Compilation> compile(
        const model::Model& model, const chip::CompileOptions& options) const override;
    [[nodiscard]] Result<std::vector<chip::CompiledOperator>> mapping(
        const model::Model& model, const chip::CompileOptions& options) const override;
};

class TargetCheckerPart final : public chip::TargetChecker {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] std::string_view name() const override { return "RK3588"; }
    [[nodiscard]] Result<chip::CheckReport> check(const model::Model& model) const override;
};

}  // namespace reef::rk3588
