// What runs one operator: kernels of Reef's alone, without an executor, and a clock for them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/kernel.h"
#include "operators/case.h"
#include "reef/cpu/kernel_set.h"

namespace reef::cpu {

struct AlignedDelete {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte[], AlignedDelete>;
[[nodiscard]] Memory allocate(std::size_t bytes);

/// Bytes of every value; float32 of a normal distribution, and truths.
[[nodiscard]] Memory filled(const Operand& operand, std::mt19937& random);

/// The tensors of a case, which all sides read and write.
struct Tensors {
    explicit Tensors(const Case& one);
    std::vector<Memory> memory;
    std::vector<std::byte*> inputs, outputs;  ///< null for constants, which kernels have
};

/// A kernel of the model's operator.
class Runner {
  public:
    /// Error: there is no kernel, or it refuses the operator.
    [[nodiscard]] static Result<Runner> create(const model::Model& model, KernelSet kernels);
    [[nodiscard]] std::string name() const { return kernel_->name(); }
    [[nodiscard]] Status run(const Tensors& tensors);

  private:
    std::unique_ptr<Kernel> kernel_;
    Memory scratch_;
    std::unique_ptr<WorkerPool> pool_ = std::make_unique<WorkerPool>(1);
};

template <typename Run>
double microseconds(int times, const Run& run) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) run();
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    return taken.count() / times;
}

/// Microseconds of one run, of as many as take about a millisecond, 100 000 at most.
template <typename Run>
double timed(const Run& run) {
    constexpr double turn_us = 1000;
    run();
    constexpr double most = 100'000;
    const double one = std::max(microseconds(1, run), turn_us / most);
    const int times = std::max(static_cast<int>(turn_us / one), 1);
    return microseconds(times, run);
}

}  // namespace reef::cpu
