// The loop that element-wise operators on one tensor share.
#pragma once

#include <array>
#include <bit>
#include <string>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"
#include "cpu/reference/byte_table.h"

namespace reef::cpu {

/// output[i] = function(input[i])
template <typename In, typename Out, typename Function>
class UnaryKernel final : public Kernel {
  public:
    UnaryKernel(std::string name, std::size_t size, Function function)
        : name_(std::move(name)), size_(size), function_(std::move(function)) {}

    [[nodiscard]] std::string name() const override { return name_; }

    [[nodiscard]] Status run(const Frame& frame) override {
        constexpr std::size_t grain = 16384;
        frame.pool.parallel_for(
            size_, grain, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                apply(frame.in<In>(0) + begin, frame.out<Out>(0) + begin, end - begin, function_);
            });
        return {};
    }

  private:
    /// Everything by value: stores of 8-bit elements could change anything held by reference.
    static void apply(const In* in, Out* out, std::size_t count, Function function) {
        for (std::size_t i = 0; i < count; ++i) out[i] = function(in[i]);
    }

    std::string name_;
    std::size_t size_;
    Function function_;
};

/// A function of an 8-bit value as a table of its 256 results.
template <typename In, typename Out>
struct Table {
    static_assert(sizeof(In) == 1);
    std::array<Out, 256> results{};

    template <typename Function>
    explicit Table(const Function& function) {
        for (std::size_t i = 0; i < results.size(); ++i)
            results[i] = function(static_cast<In>(static_cast<std::uint8_t>(i)));
    }
    Out operator()(In value) const { return results[static_cast<std::uint8_t>(value)]; }
};

/// A vectorised function of a run of elements.
template <typename In, typename Out, typename Run>
class UnaryRunKernel final : public Kernel {
  public:
    UnaryRunKernel(std::string name, std::size_t size, Run function)
        : name_(std::move(name)), size_(size), run_(std::move(function)) {}

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] Status run(const Frame& frame) override {
        constexpr std::size_t grain = sizeof(In) + sizeof(Out) > 2 ? 4096 : 8192;
        frame.pool.parallel_for(
            size_, grain, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                run_(frame.in<In>(0) + begin, frame.out<Out>(0) + begin, end - begin);
            });
        return {};
    }

  private:
    std::string name_;
    std::size_t size_;
    Run run_;
};

/// run(in, out, count) for a whole tensor.
template <typename In, typename Out, typename Run>
[[nodiscard]] PreparedKernel unary_run_kernel(const std::string& name, const OperatorView& op,
                                              Run run) {
    REEF_CHECK(expect_shape(op.output(0), "output 0", op.input(0).shape));
    return std::make_unique<UnaryRunKernel<In, Out, Run>>(
        name, static_cast<std::size_t>(op.input(0).element_count()), std::move(run));
}

/// Whether it is the change between uint8 and int8 at the same scale.
template <typename In, typename Out>
[[nodiscard]] bool flips_high_bit(const Table<In, Out>& table) {
    if constexpr (sizeof(Out) != 1) return false;
    for (std::size_t i = 0; i < table.results.size(); ++i)
        if (static_cast<std::uint8_t>(table.results[i]) != (i ^ 0x80U)) return false;
    return true;
}

/// `name` with " reference" or " fast table" behind it; tables for 8-bit inputs of the fast set.
template <typename In, typename Out, typename Function>
[[nodiscard]] PreparedKernel unary_kernel(const char* name, const OperatorView& op, KernelSet set,
                                          Function function) {
    REEF_CHECK(expect_shape(op.output(0), "output 0", op.input(0).shape));
    const auto size = static_cast<std::size_t>(op.input(0).element_count());
    if constexpr (sizeof(In) == 1) {
        if (set == KernelSet::fast) {
            const Table<In, Out> table(function);
            using Byte = std::uint8_t;
            if (flips_high_bit(table))
                return unary_run_kernel<Byte, Byte>(std::string(name) + " fast flip", op,
                                                    flip_high_bits);
            if constexpr (sizeof(Out) == 1)
                return unary_run_kernel<Byte, Byte>(
                    std::string(name) + " fast table", op,
                    [bytes = std::bit_cast<ByteTable>(table.results)](const Byte* in, Byte* out,
                                                                      std::size_t count) {
                        look_up_bytes(bytes, in, out, count);
                    });
            else
                return std::make_unique<UnaryKernel<In, Out, Table<In, Out>>>(
                    std::string(name) + " fast table", size, table);
        }
    }
    return std::make_unique<UnaryKernel<In, Out, Function>>(std::string(name) + " reference", size,
                                                            std::move(function));
}

/// Calls use(T{}) with the C++ type of a numeric element type.
template <typename Use>
[[nodiscard]] PreparedKernel with_type_of(ElementType type, const char* what, const Use& use) {
    switch (type) {
        case ElementType::float32:
            return use(float{});
        case ElementType::int32:
            return use(std::int32_t{});
        case ElementType::uint8:
            return use(std::uint8_t{});
        case ElementType::int64:
            return use(std::int64_t{});
        case ElementType::int16:
            return use(std::int16_t{});
        case ElementType::int8:
            return use(std::int8_t{});
        default:
            return fail(Cause::unsupported,
                        std::string(what) + " of type " + std::string(name_of(type)));
    }
}

}  // namespace reef::cpu
