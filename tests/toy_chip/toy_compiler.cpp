#include "toy_chip/toy_compiler.h"

#include <memory>
#include <string>
#include <vector>

#include "cpu/prepare/arithmetic.h"
#include "reef/chip/compiler.h"
#include "reef/runtime/arithmetic.h"
#include "toy_chip/toy_program.h"

namespace reef::toy {
namespace {

constexpr std::string_view wrong = "wrong";

class ToyCompiler final : public chip::Compiler {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::vector<std::string_view> passes() const override { return {}; }
    [[nodiscard]] std::vector<chip::CompilerSetting> settings() const override {
        return {{.name = std::string(wrong), .sentence = "Add 1 to what is only moved"}};
    }
    [[nodiscard]] Result<chip::Compilation> compile(
        const model::Model& model, const chip::CompileOptions& options) const override {
        const std::uint32_t addend = options.settings.contains(std::string(wrong)) ? 1 : 0;
        chip::Compilation done;
        done.model = model;
        auto& graph = done.model.subgraphs.front();
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            model::Operator& op = graph.operators[i];
            done.operators.push_back(
                {i, op.code.name(), op.code.builtin == model::Op::reshape, "toys only move bytes"});
            if (!done.operators.back().on_chip) continue;
            done.operators.back().reason.clear();
            const auto& tensor = graph.tensors[static_cast<std::size_t>(op.inputs.front())];
            const auto bytes = static_cast<std::uint32_t>(tensor.byte_count().value_or(0));
            const auto program =
                encode({{Opcode::take, bytes}, {Opcode::add, addend}, {Opcode::give, bytes}});
            op.code = {.builtin = model::Op::custom, .custom = std::string(operator_name)};
            op.inputs.resize(1);
            op.options = {};
            op.custom_options = SharedBytes::copy_of(program);
        }
        return done;
    }
};

/// Where bytes only move, every arithmetic is TFLite's.
class ToyArithmetic final : public runtime::ChipArithmetic {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] const cpu::Arithmetic& arithmetic() const override { return arithmetic_; }
    [[nodiscard]] std::string_view sentence() const override { return "bytes only move"; }

  private:
    cpu::Arithmetic arithmetic_ = {
        .name = "toy",
        .machine = "the toy",
        .forms = {},
        .reasons_for_tflite = [](const model::Model&, const model::Subgraph& graph,
                                 const std::vector<bool>&) {
            return std::vector<std::string>(graph.operators.size(), "toys only move bytes");
        }};
};

}  // namespace

void add_compiler(runtime::Registry& registry) {
    registry.add_part<chip::Compiler>(std::make_unique<ToyCompiler>());
    registry.add_part<runtime::ChipArithmetic>(std::make_unique<ToyArithmetic>());
}

}  // namespace reef::toy
