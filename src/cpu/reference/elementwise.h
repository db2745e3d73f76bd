// The loop that element-wise operators on two tensors share, and the checks before it.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/prepare/broadcast.h"
#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

/// Elements below which a second thread costs more than it gives.
inline constexpr std::size_t elementwise_grain = 4096;

/// output[i] = function(a[i], b[i]) over broadcast shapes, a run of elements at a time:
/// run(a, a_step, b, b_step, out, count), where a step is 0 (the first element repeats) or 1.
template <typename T, typename Out, typename Run>
class BinaryKernel final : public Kernel {
  public:
    BinaryKernel(std::string name, Broadcast broadcast, Run run)
        : name_(std::move(name)), broadcast_(std::move(broadcast)), run_(std::move(run)) {
        const std::size_t period = std::max(broadcast_.period_of_a(), broadcast_.period_of_b());
        if (period > 0 && period < short_run) pattern_ = short_run / period * period;
    }

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] std::size_t scratch_bytes() const override { return pattern_ * sizeof(T); }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* a = frame.in<T>(0);
        const T* b = frame.in<T>(1);
        Out* out = frame.out<Out>(0);
        if (pattern_ > 0) {
            run_repeating(frame);
            return {};
        }
        const auto piece = [&](std::size_t o, std::size_t i, std::size_t j, std::size_t count) {
            run_(a + i, broadcast_.a_step(), b + j, broadcast_.b_step(), out + o, count);
        };
        frame.pool.parallel_for(broadcast_.size(), elementwise_grain,
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    broadcast_.each_run(begin, end, piece);
                                });
        return {};
    }

  private:
    /// Runs of a few elements cost more to start than to compute.
    static constexpr std::size_t short_run = 1024;

    /// The input that repeats, many times behind itself, and runs as long as that.
    void run_repeating(const Frame& frame) {
        const bool first = broadcast_.period_of_a() > 0;
        const std::size_t period = first ? broadcast_.period_of_a() : broadcast_.period_of_b();
        const T* from = frame.in<T>(first ? 0 : 1);
        const T* other = frame.in<T>(first ? 1 : 0);
        Out* out = frame.out<Out>(0);
        T* pattern = reinterpret_cast<T*>(frame.scratch.data());
        for (std::size_t i = 0; i < pattern_; i += period) std::copy_n(from, period, pattern + i);
        frame.pool.parallel_for(
            broadcast_.size(), elementwise_grain,
            [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                while (begin < end) {
                    const std::size_t within = begin % pattern_;
                    const std::size_t count = std::min(pattern_ - within, end - begin);
                    const T *repeated = pattern + within, *along = other + begin;
                    run_(first ? repeated : along, 1, first ? along : repeated, 1, out + begin,
                         count);
                    begin += count;
                }
            });
    }

    std::string name_;
    Broadcast broadcast_;
    Run run_;
    std::size_t pattern_ = 0;  ///< elements of an input that is repeated; 0: none is
};

/// For a vectorised run.
template <typename T, typename Out = T, typename Run>
[[nodiscard]] PreparedKernel binary_run_kernel(std::string name, Broadcast broadcast, Run run) {
    return std::make_unique<BinaryKernel<T, Out, Run>>(std::move(name), std::move(broadcast),
                                                       std::move(run));
}

/// For a function of two elements. With an element that repeats a loop of its own for float32 is
/// what compilers make vectors of.
template <typename T, typename Out = T, typename Function>
[[nodiscard]] PreparedKernel binary_kernel(std::string name, Broadcast broadcast,
                                           Function function) {
    return binary_run_kernel<T, Out>(std::move(name), std::move(broadcast),
                                     [function](const T* a, std::size_t a_step, const T* b,
                                                std::size_t b_step, Out* out, std::size_t count) {
                                         if constexpr (std::is_same_v<T, float>) {
                                             if (a_step == 1 && b_step == 0) {
                                                 const T second = *b;
                                                 for (std::size_t k = 0; k < count; ++k)
                                                     out[k] = function(a[k], second);
                                                 return;
                                             }
                                         }
                                         for (std::size_t k = 0; k < count; ++k)
                                             out[k] = function(a[k * a_step], b[k * b_step]);
                                     });
}

/// Two inputs and an output of one type, shapes as broadcasting gives them.
[[nodiscard]] Result<Broadcast> check_binary(const OperatorView& op,
                                             std::initializer_list<ElementType> types);
/// The same with an output of bool.
[[nodiscard]] Result<Broadcast> check_comparison(const OperatorView& op,
                                                 std::initializer_list<ElementType> types);

}  // namespace reef::cpu
