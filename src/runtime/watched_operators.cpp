#include "edgetpu_operators.h"
#include "layer_binding.h"

namespace reef::runtime {
namespace {

/// The chip, and what its programs' runs left behind.
struct WatchedChip {
    explicit WatchedChip(const edgetpu::SimulatorOptions& options) : simulator(options) {}
    edgetpu::Simulator simulator;
    std::vector<edgetpu::Finding> findings;
};

class WatchedOperator final : public graph::DeviceOperator {
  public:
    WatchedOperator(std::shared_ptr<WatchedChip> chip, edgetpu::SimulatedPackage package,
                    LayerBinding binding)
        : chip_(std::move(chip)), package_(std::move(package)), binding_(std::move(binding)) {}

    [[nodiscard]] std::string kernel() const override {
        return "compiled program, simulated and watched";
    }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        binding_.bind(inputs, outputs);
        REEF_CHECK(package_.run(chip_->simulator, binding_.inputs(), binding_.outputs()));
        const auto found = chip_->simulator.findings();
        chip_->findings.insert(chip_->findings.end(), found.begin(), found.end());
        return {};
    }

  private:
    std::shared_ptr<WatchedChip> chip_;
    edgetpu::SimulatedPackage package_;
    LayerBinding binding_;
};

class WatchedOperators final : public EdgeTpuOperators {
  public:
    explicit WatchedOperators(const edgetpu::SimulatorOptions& options)
        : chip_(std::make_shared<WatchedChip>(options)) {}

    [[nodiscard]] Result<graph::Placed> place(const graph::OperatorView& op) override {
        if (!edgetpu::is_compiled(op.op())) return graph::Placed{};
        const auto package = REEF_TRY(edgetpu::package_of(op.op()));
        auto simulated = REEF_TRY(edgetpu::SimulatedPackage::prepare(package));
        const auto& executable = simulated.executable();
        auto binding =
            REEF_TRY(LayerBinding::of(executable.inputs, executable.outputs, op.graph(), op.op()));
        return placed(
            std::make_unique<WatchedOperator>(chip_, std::move(simulated), std::move(binding)), op);
    }

    [[nodiscard]] std::span<const edgetpu::Finding> findings() const override {
        return chip_->findings;
    }
    void forget_findings() override { chip_->findings.clear(); }

  private:
    std::shared_ptr<WatchedChip> chip_;
};

}  // namespace

std::shared_ptr<EdgeTpuOperators> watched_operators(const edgetpu::SimulatorOptions& options) {
    return std::make_shared<WatchedOperators>(options);
}

}  // namespace reef::runtime
