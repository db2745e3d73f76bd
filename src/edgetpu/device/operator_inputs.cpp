#include "reef/edgetpu/device/operator_inputs.h"

#include <algorithm>

#include "graph/device_operator.h"
#include "graph/placer.h"
#include "reef/cpu/placer.h"
#include "reef/edgetpu/device/driver.h"
#include "reef/graph/executor.h"
#include "reef/graph/run_control.h"

namespace reef::edgetpu {
namespace {

/// Takes what comes.
class Capture final : public graph::DeviceOperator {
  public:
    explicit Capture(std::vector<std::vector<std::byte>>& inputs) : inputs_(inputs) {}
    [[nodiscard]] std::string kernel() const override { return "captured"; }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes>) override {
        for (const MutableBytes input : inputs) inputs_.emplace_back(input.begin(), input.end());
        return {};
    }

  private:
    std::vector<std::vector<std::byte>>& inputs_;
};

/// Captures the last operator, and computes the compiled ones before it.
class Captures final : public graph::Placer {
  public:
    explicit Captures(std::size_t last) : last_(last) {}

    [[nodiscard]] Result<graph::Placed> place(const graph::OperatorView& op) override {
        if (!is_compiled(op.op())) return graph::Placed{};
        if (op.index() == last_)
            return graph::Placed{
                graph::device_kernel(std::make_unique<Capture>(inputs), op), {}, {}};
        return graph::Placed{graph::device_kernel(REEF_TRY(simulated(op)), op), {}, {}};
    }
    std::vector<std::vector<std::byte>> inputs;

  private:
    Result<std::unique_ptr<graph::DeviceOperator>> simulated(const graph::OperatorView& op) {
        const auto uri = REEF_TRY(runtime::DeviceUri::parse("edgetpu:sim"));
        const auto options = REEF_TRY(runtime::OptionValues::check(driver_->options(), uri));
        auto program = REEF_TRY(driver_->prepare(uri, options, op.graph(), op.op()));
        if (chip_ == nullptr) chip_ = REEF_TRY(driver_->open(uri, options, 1));
        return chip_->load(std::move(program), control_);
    }

    std::size_t last_;
    std::unique_ptr<runtime::Driver> driver_ = driver();
    std::shared_ptr<runtime::Device> chip_;
    graph::RunControl control_;
};

}  // namespace

model::Model up_to(const model::Model& model, const CompiledOperator& op) {
    model::Model begin = model;
    auto& graph = begin.subgraphs[op.subgraph];
    graph.operators.resize(op.index + 1);
    graph.outputs = graph.operators.back().outputs;
    begin.signatures.clear();
    return begin;
}

void OperatorTensors::bind() {
    input_views_.assign(inputs.begin(), inputs.end());
    output_views_.assign(outputs.begin(), outputs.end());
    binding.bind(input_views_, output_views_);
}

Result<OperatorTensors> tensors_of_operator(const model::Model& model, const CompiledOperator& op,
                                            const std::vector<std::vector<std::byte>>& inputs) {
    const model::Subgraph& graph = model.subgraphs[op.subgraph];
    const model::Operator& compiled = graph.operators[op.index];
    const Executable* computing = REEF_TRY(computing_executable(op.package));
    OperatorTensors tensors;
    tensors.binding =
        REEF_TRY(LayerBinding::of(computing->inputs, computing->outputs, graph, compiled));
    const auto captures = std::make_shared<Captures>(op.index);
    auto executor = REEF_TRY(graph::Executor::create(
        up_to(model, op), {.placers = {captures, cpu::placer()}, .subgraph = op.subgraph}));
    for (std::size_t i = 0; i < executor.input_count(); ++i)
        std::ranges::copy(inputs[i], executor.input(i).begin());
    REEF_CHECK(executor.run());
    tensors.inputs = std::move(captures->inputs);
    for (const model::TensorIndex output : compiled.outputs) {
        const auto bytes =
            output < 0 ? 0
                       : graph.tensors[static_cast<std::size_t>(output)].byte_count().value_or(0);
        tensors.outputs.emplace_back(static_cast<std::size_t>(bytes));
    }
    return tensors;
}

}  // namespace reef::edgetpu
