// Runs small built models on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "reef/model/builder.h"
#include "support/cpu_executor.h"

namespace reef::test {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

template <typename T>
std::vector<T> values_of(Bytes bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

/// One run on the given inputs; every output's bytes, or none after a failure.
inline std::vector<std::vector<std::byte>> run_model(
    const model::Model& model, const std::vector<std::vector<std::byte>>& inputs,
    const CpuOptions& options) {
    auto executor = on_cpu(model, options);
    if (!executor) {
        ADD_FAILURE() << executor.error().message();
        return {};
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (executor->input(i).size() != inputs[i].size()) {
            ADD_FAILURE() << "input " << i << " has " << executor->input(i).size() << " bytes";
            return {};
        }
        std::ranges::copy(inputs[i], executor->input(i).begin());
    }
    if (const Status ran = executor->run(); !ran) {
        ADD_FAILURE() << ran.error().message();
        return {};
    }
    std::vector<std::vector<std::byte>> outputs;
    for (std::size_t i = 0; i < executor->output_count(); ++i)
        outputs.emplace_back(executor->output(i).begin(), executor->output(i).end());
    return outputs;
}

inline std::vector<std::vector<std::byte>> run_model(
    const model::Model& model, const std::vector<std::vector<std::byte>>& inputs,
    cpu::KernelSet kernels = cpu::KernelSet::reference, int threads = 1) {
    return run_model(model, inputs, {.kernels = kernels, .threads = threads});
}

/// The message of the refusal when an executor is made; empty when there is none.
inline std::string refusal(const model::Model& model, const cpu::Arithmetic* arithmetic = nullptr) {
    const auto executor =
        on_cpu(model, {.kernels = cpu::KernelSet::fast, .arithmetic = arithmetic});
    return executor ? std::string() : executor.error().message();
}

inline std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    return bytes;
}

/// Uniform in [low, high].
inline std::int32_t pick(std::mt19937& random, std::int32_t low, std::int32_t high) {
    return std::uniform_int_distribution<std::int32_t>(low, high)(random);
}

inline std::size_t count_of(const std::vector<std::int32_t>& shape) {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    return count;
}

/// `b` is repeated along some of the three axes of `a`, which is the result's shape.
struct OperandShapes {
    std::vector<std::int32_t> a, b;
};
inline OperandShapes random_operand_shapes(std::mt19937& random) {
    OperandShapes shapes;
    for (int i = 0; i < 3; ++i) {
        shapes.a.push_back(pick(random, 1, i == 2 ? 70 : 5));
        shapes.b.push_back(pick(random, 0, 2) == 0 ? 1 : shapes.a.back());
    }
    return shapes;
}

}  // namespace reef::test
