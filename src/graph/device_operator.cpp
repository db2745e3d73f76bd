#include "graph/device_operator.h"

#include <vector>

namespace reef::graph {
namespace {

std::vector<MutableBytes> sizes_of(const model::Subgraph& graph,
                                   const std::vector<model::TensorIndex>& tensors) {
    std::vector<MutableBytes> sizes;
    for (const auto index : tensors) {
        // Sizes are checked with the data flow, before any run.
        const auto bytes =
            index < 0 ? 0 : graph.tensors[static_cast<std::size_t>(index)].byte_count().value_or(0);
        sizes.emplace_back(static_cast<std::byte*>(nullptr), static_cast<std::size_t>(bytes));
    }
    return sizes;
}

class DeviceKernel final : public Kernel {
  public:
    DeviceKernel(std::unique_ptr<DeviceOperator> on_device, const OperatorView& op)
        : on_device_(std::move(on_device)),
          inputs_(sizes_of(op.graph(), op.op().inputs)),
          outputs_(sizes_of(op.graph(), op.op().outputs)) {}
    [[nodiscard]] std::string name() const override { return on_device_->kernel(); }
    [[nodiscard]] Status run(const Frame& frame) override {
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            inputs_[i] = MutableBytes(frame.inputs[i], inputs_[i].size());
        for (std::size_t i = 0; i < outputs_.size(); ++i)
            outputs_[i] = MutableBytes(frame.outputs[i], outputs_[i].size());
        return on_device_->run(inputs_, outputs_);
    }

  private:
    std::unique_ptr<DeviceOperator> on_device_;
    std::vector<MutableBytes> inputs_;
    std::vector<MutableBytes> outputs_;
};

}  // namespace

std::unique_ptr<Kernel> device_kernel(std::unique_ptr<DeviceOperator> on_device,
                                      const OperatorView& op) {
    return std::make_unique<DeviceKernel>(std::move(on_device), op);
}

}  // namespace reef::graph
