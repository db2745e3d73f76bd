// Vectorised kernels of every instruction set against the plain ones, for any operator.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/run_kernel.h"
#include "cpu/run_model.h"
#include "cpu/simd_targets.h"

namespace reef::test {

inline constexpr int rounds = 150;
inline constexpr ElementType byte_types[] = {ElementType::uint8, ElementType::int8};

using Inputs = std::vector<std::vector<std::byte>>;

inline void expect_same_from(const model::Model& model, const Inputs& inputs) {
    const auto plain = run_model(model, inputs);
    ASSERT_FALSE(plain.empty());
    on_every_target([&] {
        for (const int threads : {1, 2})
            ASSERT_EQ(run_model(model, inputs, cpu::KernelSet::fast, threads), plain)
                << threads << " threads";
    });
}

inline void expect_same(const model::Model& model, std::size_t input_bytes, std::mt19937& random) {
    expect_same_from(model, {random_bytes(random, input_bytes)});
}

inline std::int64_t random_zero_point(std::mt19937& random, ElementType type) {
    return pick(random, 0, 255) - (type == ElementType::int8 ? 128 : 0);
}

/// The same, and in memory that ends with the tensors.
inline void expect_same_alone(const model::Model& model, const Inputs& inputs) {
    ASSERT_NO_FATAL_FAILURE(expect_same_from(model, inputs));
    const auto plain = run_model(model, inputs);
    const std::vector<Bytes> views(inputs.begin(), inputs.end());
    static WorkerPool one(1), two(2);
    on_every_target([&] {
        for (WorkerPool* pool : {&one, &two}) {
            const cpu::OperatorView op(model, model.subgraphs[0], 0);
            auto kernel =
                cpu::find_kernel(op.op().code)
                    ->prepare(op, {.kernels = cpu::KernelSet::fast, .threads = pool->threads()});
            ASSERT_TRUE(kernel) << kernel.error().message();
            ASSERT_EQ(run_kernel(**kernel, model, views, *pool), plain[0])
                << pool->threads() << " threads";
        }
    });
}

/// Bytes of any value, of the largest ones only or of both ends, which make the largest sums and
/// halves.
inline std::vector<std::byte> bytes_of_any_kind(std::mt19937& random, std::size_t count) {
    auto bytes = random_bytes(random, count);
    const int kind = pick(random, 0, 3);
    for (std::byte& b : bytes) {
        if (kind == 1) b = random() % 8 == 0 ? std::byte{0xFE} : std::byte{0xFF};
        if (kind == 2) b = random() % 2 == 0 ? std::byte{0x80} : std::byte{0x7F};
        if (kind == 3) b = random() % 8 == 0 ? std::byte{0x81} : std::byte{0x80};
    }
    return bytes;
}

}  // namespace reef::test
