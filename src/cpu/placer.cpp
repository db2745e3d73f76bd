#include "reef/cpu/placer.h"

#include <fmt/format.h>

#include <vector>

#include "base/simd.h"
#include "cpu/prepare/arithmetic.h"
#include "cpu/prepare/byte_function.h"
#include "cpu/prepare/custom_options.h"
#include "cpu/prepare/kernel.h"
#include "graph/placer.h"

namespace reef::cpu {
namespace {

class CpuPlacer final : public graph::Placer {
  public:
    explicit CpuPlacer(const KernelOptions& options)
        : options_{.kernels = options.kernels},
          arithmetic_(options.arithmetic),
          in_arithmetic_(options.in_arithmetic) {}

    [[nodiscard]] Status complete_shapes(model::Subgraph& graph) const override {
        return resolve_custom_output_shapes(graph);
    }
    [[nodiscard]] Status begin(const model::Model& model, const model::Subgraph& graph,
                               int threads) override;
    [[nodiscard]] Result<graph::Placed> place(const OperatorView& op) override;
    [[nodiscard]] bool has(const OperatorView& op) const override {
        return find_kernel(op.op().code) != nullptr;
    }
    [[nodiscard]] bool runs_at_any_time() const override { return true; }
    [[nodiscard]] std::optional<Error> refusal(const OperatorView& op) const override;

  private:
    PrepareOptions options_;
    const Arithmetic* arithmetic_;
    std::vector<bool> in_arithmetic_;              ///< by operator; empty: all
    std::vector<std::string> reasons_for_tflite_;  ///< by operator, with an arithmetic
};

Status CpuPlacer::begin(const model::Model& model, const model::Subgraph& graph, int threads) {
    apply_simd_choice();
    options_.threads = threads;
    if (arithmetic_ == nullptr) return {};
    if (!in_arithmetic_.empty() && in_arithmetic_.size() != graph.operators.size())
        return fail(Cause::bad_argument,
                    fmt::format("`in_arithmetic` names {} operators, the model has {}",
                                in_arithmetic_.size(), graph.operators.size()));
    reasons_for_tflite_ = arithmetic_->reasons_for_tflite(model, graph, in_arithmetic_);
    for (std::size_t op = 0; op < in_arithmetic_.size(); ++op)
        if (!in_arithmetic_[op])
            reasons_for_tflite_[op] = "the compiled model leaves it to the CPU";
    return {};
}

/// As a table, where it combines a tensor with a function of the same.
PreparedKernel prepare_in_context(const OperatorView& op, Prepare prepare,
                                  const PrepareOptions& options) {
    if (options.kernels == KernelSet::fast)
        if (const auto function = byte_function_of(op)) {
            const auto& before = op.graph().operators[function->before];
            const KernelEntry* entry = find_kernel(before.code);
            if (entry != nullptr)
                if (auto table =
                        prepare_byte_function(op, *function, entry->prepare, prepare, options))
                    return table;
        }
    return prepare(op, options);
}

Result<graph::Placed> CpuPlacer::place(const OperatorView& op) {
    const model::OperatorCode& code = op.op().code;
    const KernelEntry* entry = find_kernel(code);
    if (entry == nullptr) return graph::Placed{};
    graph::Placed placed;
    Prepare prepare = entry->prepare;
    std::string in_arithmetic;
    if (arithmetic_ != nullptr) {
        const std::string& reason = reasons_for_tflite_[op.index()];
        if (reason.empty()) {
            const ArithmeticForm* form = arithmetic_->find(code.builtin);
            if (form == nullptr) return arithmetic_->unknown(code.name());
            prepare = form->prepare;
            if (!form->copies) in_arithmetic = fmt::format(" {}", arithmetic_->name);
            placed.reason =
                fmt::format("as {} computes it: {}", arithmetic_->machine, form->supports);
        } else {
            placed.reason = fmt::format("TFLite's arithmetic: {}", reason);
        }
    }
    placed.kernel = REEF_TRY(arithmetic_ == nullptr ? prepare_in_context(op, prepare, options_)
                                                    : prepare(op, options_));
    placed.name = placed.kernel->name() + in_arithmetic;
    return placed;
}

std::optional<Error> CpuPlacer::refusal(const OperatorView& op) const {
    const model::OperatorCode& code = op.op().code;
    return Error{
        Cause::unsupported,
        fmt::format("no CPU kernel for {}", code.name()),
        {},
        "convert the model without it, or run it on a device that has it; `reef ops` lists "
        "the operators with a kernel"};
}

}  // namespace

std::shared_ptr<graph::Placer> placer(const KernelOptions& options) {
    return std::make_shared<CpuPlacer>(options);
}

}  // namespace reef::cpu
