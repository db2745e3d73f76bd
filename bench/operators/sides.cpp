#include "operators/sides.h"

#include <cstring>

namespace reef::cpu {

Memory allocate(std::size_t bytes) {
    return Memory(static_cast<std::byte*>(
        ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{64})));
}

Memory filled(const Operand& operand, std::mt19937& random) {
    // XNNPACK reads some bytes behind its inputs.
    constexpr std::size_t behind = 64;
    Memory memory = allocate(operand.bytes() + behind);
    std::normal_distribution<float> number(0, 2);
    for (std::size_t i = 0; i < operand.count(); ++i) {
        const float value = number(random);
        if (operand.type == ElementType::float32)
            std::memcpy(memory.get() + i * sizeof(float), &value, sizeof(float));
        else if (operand.type == ElementType::boolean)
            memory[i] = std::byte{value > 0};
        else
            memory[i] = std::byte(random() & 0xFF);
    }
    return memory;
}

Tensors::Tensors(const Case& one) {
    std::mt19937 random(1);
    for (const Operand& operand : one.inputs)
        inputs.push_back(operand.constant.empty()
                             ? memory.emplace_back(filled(operand, random)).get()
                             : nullptr);
    for (const Operand& operand : one.outputs)
        outputs.push_back(memory.emplace_back(allocate(operand.bytes())).get());
}

Result<Runner> Runner::create(const model::Model& model, KernelSet kernels) {
    const OperatorView op(model, model.subgraphs[0], 0);
    const KernelEntry* factory = find_kernel(op.op().code);
    if (factory == nullptr) return fail(Cause::unsupported, "there is no kernel");
    Runner made;
    made.kernel_ = REEF_TRY(factory->prepare(op, {.kernels = kernels}));
    made.kernel_->pack();
    made.scratch_ = allocate(made.kernel_->scratch_bytes());
    return made;
}

Status Runner::run(const Tensors& tensors) {
    return kernel_->run(
        {tensors.inputs, tensors.outputs, {scratch_.get(), kernel_->scratch_bytes()}, *pool_});
}

}  // namespace reef::cpu
