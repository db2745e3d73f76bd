#include "reef/cpu/placer.h"

#include <fmt/format.h>

#include <vector>

#include "base/simd.h"
#include "cpu/custom_options.h"
#include "cpu/edgetpu_forms.h"
#include "cpu/float_requantisation.h"
#include "cpu/kernel.h"
#include "graph/placer.h"
#include "reef/model/tflite.h"

namespace reef::cpu {
namespace {

class CpuPlacer final : public graph::Placer {
  public:
    explicit CpuPlacer(const KernelOptions& options)
        : options_{.kernels = options.kernels, .arithmetic = options.arithmetic} {}

    [[nodiscard]] Status complete_shapes(model::Subgraph& graph) const override {
        return resolve_custom_output_shapes(graph);
    }
    [[nodiscard]] Status begin(const model::Model& model, const model::Subgraph& graph,
                               int threads) override;
    [[nodiscard]] Result<graph::Placed> place(const OperatorView& op) override;
    [[nodiscard]] std::optional<Error> refusal(const OperatorView& op) const override;

  private:
    PrepareOptions options_;
    /// With Arithmetic::edgetpu, by operator: why the Edge TPU's compiler leaves it on the CPU;
    /// empty when it does not.
    std::vector<std::string> left_on_cpu_;
};

Status CpuPlacer::begin(const model::Model& model, const model::Subgraph& graph, int threads) {
    apply_simd_choice();
    options_.threads = threads;
    if (options_.arithmetic == Arithmetic::edgetpu) left_on_cpu_ = reasons_for_cpu(model, graph);
    return {};
}

Result<graph::Placed> CpuPlacer::place(const OperatorView& op) {
    const model::OperatorCode& code = op.op().code;
    const KernelEntry* entry = find_kernel(code);
    if (entry == nullptr) return graph::Placed{};
    graph::Placed placed;
    Prepare prepare = entry->prepare;
    PrepareOptions options = options_;
    bool computes = false;
    if (options.arithmetic == Arithmetic::edgetpu) {
        const std::string& left_on_cpu = left_on_cpu_[op.index()];
        if (left_on_cpu.empty()) {
            const EdgetpuForm* form = find_edgetpu_form(code.builtin);
            if (form == nullptr) return unknown_on_edgetpu(code.name());
            prepare = form->prepare;
            computes = !form->copies;
            placed.reason = fmt::format("as the Edge TPU computes it: {}", form->supports);
        } else {
            options.arithmetic = Arithmetic::tflite;
            placed.reason = fmt::format("TFLite's arithmetic: {}", left_on_cpu);
        }
    }
    placed.kernel = REEF_TRY(prepare(op, options));
    placed.name = placed.kernel->name() + (computes ? " edgetpu" : "");
    return placed;
}

std::optional<Error> CpuPlacer::refusal(const OperatorView& op) const {
    const model::OperatorCode& code = op.op().code;
    if (code.builtin == model::Op::custom && code.custom == model::edgetpu_custom_op)
        return Error{Cause::unsupported,
                     "the operator holds a program for the Edge TPU, which the CPU cannot run",
                     {},
                     "run it with --device edgetpu:sim or on an Edge TPU, or use the model as it "
                     "was before it was compiled"};
    return Error{Cause::unsupported,
                 fmt::format("no CPU kernel for {}", code.name()),
                 {},
                 "run the model on a device that has this operator, or convert it without"};
}

}  // namespace

std::shared_ptr<graph::Placer> placer(const KernelOptions& options) {
    return std::make_shared<CpuPlacer>(options);
}

std::string_view simd_target() {
    return simd_target_name();
}

}  // namespace reef::cpu
