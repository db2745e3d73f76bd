// The loop that ADD, SUB, MUL and DIV share, and the checks before it.
#pragma once

#include <string>
#include <utility>

#include "cpu/broadcast.h"
#include "cpu/kernel.h"
#include "cpu/quantized.h"
#include "cpu/worker_pool.h"

namespace reef::cpu {

/// Elements below which a second thread costs more than it gives.
inline constexpr std::size_t elementwise_grain = 16384;

/// output[i] = function(a[i], b[i]) over broadcast shapes.
template <typename T, typename Function>
class BinaryKernel final : public Kernel {
  public:
    BinaryKernel(std::string name, Broadcast broadcast, Function function)
        : name_(std::move(name)),
          broadcast_(std::move(broadcast)),
          function_(std::move(function)) {}

    [[nodiscard]] std::string name() const override { return name_; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* a = frame.in<T>(0);
        const T* b = frame.in<T>(1);
        T* out = frame.out<T>(0);
        frame.pool.parallel_for(
            broadcast_.size(), elementwise_grain,
            [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                broadcast_.each_run(
                    begin, end,
                    [&](std::size_t o, std::size_t i, std::size_t j, std::size_t count) {
                        for (std::size_t k = 0; k < count; ++k)
                            out[o + k] = function_(a[i + k * broadcast_.a_step()],
                                                   b[j + k * broadcast_.b_step()]);
                    });
            });
        return {};
    }

  private:
    std::string name_;
    Broadcast broadcast_;
    Function function_;
};

template <typename T, typename Function>
[[nodiscard]] PreparedKernel binary_kernel(std::string name, Broadcast broadcast,
                                           Function function) {
    return std::make_unique<BinaryKernel<T, Function>>(std::move(name), std::move(broadcast),
                                                       std::move(function));
}

/// Two inputs and an output of one type, shapes as broadcasting gives them.
[[nodiscard]] Result<Broadcast> check_binary(const OperatorView& op,
                                             std::initializer_list<ElementType> types);

}  // namespace reef::cpu
