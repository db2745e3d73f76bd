#include "operators/case.h"

#include <cstring>
#include <random>

namespace reef::cpu {

std::size_t Operand::count() const {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    return count;
}

std::size_t Operand::bytes() const {
    return count() * *size_of(type);
}

Operand constant_of(std::vector<std::int32_t> values) {
    Operand made{.type = ElementType::int32, .shape = {}};
    if (values.size() != 1) made.shape = {static_cast<std::int32_t>(values.size())};
    made.constant.resize(values.size() * sizeof(std::int32_t));
    std::memcpy(made.constant.data(), values.data(), made.constant.size());
    return made;
}

Operand random_constant(ElementType type, std::vector<std::int32_t> shape,
                        model::Quantization quantization) {
    Operand made{type, std::move(shape), std::move(quantization), {}};
    made.constant.resize(made.bytes());
    std::mt19937 random(7);
    if (type != ElementType::int32) {
        // -128 is no weight of int8.
        for (std::byte& byte : made.constant)
            byte = static_cast<std::byte>(static_cast<int>(random() % 255) - 127);
        return made;
    }
    for (std::size_t i = 0; i < made.count(); ++i) {
        const auto value = static_cast<std::int32_t>(random() % 4096) - 2048;
        std::memcpy(made.constant.data() + i * sizeof value, &value, sizeof value);
    }
    return made;
}

Result<model::Model> model_of(const Case& one) {
    model::Builder b(one.text);
    std::vector<model::TensorIndex> inputs, outputs;
    for (const Operand& operand : one.inputs)
        inputs.push_back(operand.constant.empty()
                             ? b.input("in", operand.type, operand.shape, operand.quantization)
                             : b.constant_bytes("constant", operand.type, operand.shape,
                                                operand.constant, operand.quantization));
    for (const Operand& operand : one.outputs)
        outputs.push_back(b.tensor("out", operand.type, operand.shape, operand.quantization));
    b.add(one.op, inputs, outputs, one.options);
    for (const model::TensorIndex output : outputs) b.output(output);
    return b.finish();
}

std::size_t bytes_moved(const Case& one) {
    std::size_t bytes = 0;
    for (const auto* operands : {&one.inputs, &one.outputs})
        for (const Operand& operand : *operands)
            if (operand.constant.empty()) bytes += operand.bytes();
    return bytes;
}

}  // namespace reef::cpu
