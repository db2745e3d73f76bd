// The plain loop of MEAN, SUM, REDUCE_MAX and REDUCE_MIN over any axes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "cpu/prepare/kernel.h"

namespace reef::cpu {

/// Which output element every input element counts towards, axis by axis.
struct Reduction {
    struct Axis {
        std::size_t length = 1;
        std::size_t output_step = 0;  ///< 0 for a reduced axis
    };
    std::vector<Axis> axes;  ///< never empty
    std::size_t outputs = 1;
    std::int64_t count = 1;  ///< input elements per output element
    /// As the file has them, negative or repeated: TFLite's choice of an arithmetic reads them so.
    std::vector<std::int32_t> stored_axes;
    bool keep_dims = false;

    /// Four dimensions that stay, reduced over those stored as 1 and 2: TFLite's special case.
    [[nodiscard]] bool over_height_and_width() const;
};

/// Errors: other types, axes that are not constant, no elements, more 8 and 16-bit elements per
/// output than 32 bits sum.
[[nodiscard]] Result<Reduction> check_reduction(const OperatorView& op,
                                                std::initializer_list<ElementType> types);

/// Combines in input order, which decides a float sum's last bits. `combine` makes a new
/// accumulator of one and an element, `finish` a value of an accumulator.
template <typename T, typename Accumulator, typename Combine, typename Finish>
class ReductionKernel final : public Kernel {
  public:
    ReductionKernel(std::string name, Reduction reduction, Accumulator start, Combine combine,
                    Finish finish)
        : name_(std::move(name)),
          reduction_(std::move(reduction)),
          start_(start),
          combine_(combine),
          finish_(finish) {}

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return reduction_.outputs * sizeof(Accumulator);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        auto* results = reinterpret_cast<Accumulator*>(frame.scratch.data());
        std::fill_n(results, reduction_.outputs, start_);
        const T* in = frame.in<T>(0);
        accumulate(in, 0, results);
        for (std::size_t i = 0; i < reduction_.outputs; ++i)
            frame.out<T>(0)[i] = static_cast<T>(finish_(results[i]));
        return {};
    }

  private:
    void accumulate(const T*& in, std::size_t axis, Accumulator* results) const {
        const Reduction::Axis& along = reduction_.axes[axis];
        if (axis + 1 < reduction_.axes.size()) {
            for (std::size_t i = 0; i < along.length; ++i)
                accumulate(in, axis + 1, results + i * along.output_step);
        } else if (along.output_step == 0) {
            Accumulator result = *results;
            for (std::size_t i = 0; i < along.length; ++i) result = combine_(result, *in++);
            *results = result;
        } else {
            for (std::size_t i = 0; i < along.length; ++i) results[i] = combine_(results[i], *in++);
        }
    }

    std::string name_;
    Reduction reduction_;
    Accumulator start_;
    Combine combine_;
    Finish finish_;
};

/// Sums modulo the accumulator's range when it is unsigned.
template <typename Accumulator>
struct AddElement {
    template <typename T>
    Accumulator operator()(Accumulator sum, T element) const {
        return static_cast<Accumulator>(sum + static_cast<Accumulator>(element));
    }
};

template <typename T, typename Accumulator, typename Combine, typename Finish>
[[nodiscard]] PreparedKernel reduction_kernel(const char* name, Reduction reduction,
                                              Accumulator start, Combine combine, Finish finish) {
    return std::make_unique<ReductionKernel<T, Accumulator, Combine, Finish>>(
        std::string(name) + " reference", std::move(reduction), start, combine, finish);
}

/// Sums of 8 and 16-bit elements modulo 2^32; `finish` takes them as signed.
template <typename T, typename Finish>
[[nodiscard]] PreparedKernel sum_kernel(const char* name, Reduction reduction, Finish finish) {
    return reduction_kernel<T>(name, std::move(reduction), std::uint32_t{0},
                               AddElement<std::uint32_t>{}, finish);
}

}  // namespace reef::cpu
