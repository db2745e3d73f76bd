// SELECT and SELECT_V2: elements of input 1 where input 0 holds, else of input 2. Their bytes are
// copied, whatever they stand for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/broadcast.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// Steps of the three inputs along one dimension of the output; 0: the one element repeats.
struct ChoiceDimension {
    std::size_t length = 1;
    std::array<std::size_t, 3> steps{};
};

/// Innermost first, never empty.
using ChoiceDimensions = std::vector<ChoiceDimension>;

/// Shapes of as many dimensions as the output has, each of its length or 1.
ChoiceDimensions choice_dimensions(const std::vector<std::int32_t>& out,
                                   const std::array<std::vector<std::int32_t>, 3>& shapes) {
    ChoiceDimensions dimensions;
    std::array<std::size_t, 3> sizes{1, 1, 1};
    for (std::size_t d = out.size(); d-- > 0;) {
        if (out[d] == 1) continue;
        ChoiceDimension& next = dimensions.emplace_back();
        next.length = static_cast<std::size_t>(out[d]);
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            next.steps[i] = shapes[i][d] == 1 ? 0 : sizes[i];
            sizes[i] *= static_cast<std::size_t>(shapes[i][d]);
        }
        if (dimensions.size() < 2) continue;
        // Equally long runs of all three are one run.
        ChoiceDimension& inner = dimensions[dimensions.size() - 2];
        const auto follows = [&](std::size_t i) {
            return next.steps[i] == inner.steps[i] * inner.length;
        };
        if (!follows(0) || !follows(1) || !follows(2)) continue;
        inner.length *= next.length;
        dimensions.pop_back();
    }
    if (dimensions.empty()) dimensions.emplace_back();
    return dimensions;
}

template <typename T>
class SelectKernel final : public Kernel {
  public:
    SelectKernel(const char* name, ChoiceDimensions dimensions)
        : name_(name), dimensions_(std::move(dimensions)) {
        for (const ChoiceDimension& dimension : dimensions_) size_ *= dimension.length;
    }
    [[nodiscard]] std::string name() const override { return std::string(name_) + " reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        constexpr std::size_t grain = 4096;
        frame.pool.parallel_for(
            size_, grain, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                while (begin < end) {
                    const std::size_t length = dimensions_.front().length;
                    const std::size_t count = std::min(length - begin % length, end - begin);
                    choose(frame, begin, count);
                    begin += count;
                }
            });
        return {};
    }

  private:
    /// Along the innermost dimension.
    void choose(const Frame& frame, std::size_t first, std::size_t count) const {
        std::array<std::size_t, 3> at{};
        std::size_t rest = first;
        for (const ChoiceDimension& dimension : dimensions_) {
            for (std::size_t i = 0; i < at.size(); ++i)
                at[i] += rest % dimension.length * dimension.steps[i];
            rest /= dimension.length;
        }
        const auto [which_step, a_step, b_step] = dimensions_.front().steps;
        const auto* which = frame.in<std::uint8_t>(0) + at[0];
        const T* a = frame.in<T>(1) + at[1];
        const T* b = frame.in<T>(2) + at[2];
        T* out = frame.out<T>(0) + first;
        if (which_step == 0) {
            const bool from_a = *which != 0;
            const std::size_t step = from_a ? a_step : b_step;
            const T* from = from_a ? a : b;
            if (step == 0)
                std::fill_n(out, count, *from);
            else
                std::copy_n(from, count, out);
        } else if (a_step == 1 && b_step == 1) {
            choose_elements<1, 1>(which, a, b, out, count);
        } else if (a_step == 1) {
            choose_elements<1, 0>(which, a, b, out, count);
        } else if (b_step == 1) {
            choose_elements<0, 1>(which, a, b, out, count);
        } else {
            choose_elements<0, 0>(which, a, b, out, count);
        }
    }

    /// Both elements are read, whichever is chosen, so that compilers make vectors of it.
    template <std::size_t kAStep, std::size_t kBStep>
    static void choose_elements(const std::uint8_t* which, const T* a, const T* b, T* out,
                                std::size_t count) {
        const T one_a = *a, one_b = *b;
        for (std::size_t k = 0; k < count; ++k) {
            const T first = kAStep == 0 ? one_a : a[k];
            const T second = kBStep == 0 ? one_b : b[k];
            out[k] = which[k] != 0 ? first : second;
        }
    }

    const char* name_;
    ChoiceDimensions dimensions_;
    std::size_t size_ = 1;
};

Status check_select_types(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(3, 3, 1));
    REEF_CHECK(expect_type(op.input(0), "input 0", {ElementType::boolean}));
    REEF_CHECK(expect_type(
        op.input(1), "input 1",
        {ElementType::boolean, ElementType::uint8, ElementType::int8, ElementType::int16,
         ElementType::int32, ElementType::int64, ElementType::float32}));
    REEF_CHECK(expect_type(op.input(2), "input 2", {op.input(1).type}));
    return expect_type(op.output(0), "output 0", {op.input(1).type});
}

PreparedKernel select_kernel(const OperatorView& op, const char* name,
                             ChoiceDimensions dimensions) {
    switch (*size_of(op.input(1).type)) {
        case 1:
            return std::make_unique<SelectKernel<std::uint8_t>>(name, std::move(dimensions));
        case 2:
            return std::make_unique<SelectKernel<std::uint16_t>>(name, std::move(dimensions));
        case 4:
            return std::make_unique<SelectKernel<std::uint32_t>>(name, std::move(dimensions));
        default:
            return std::make_unique<SelectKernel<std::uint64_t>>(name, std::move(dimensions));
    }
}

/// With lengths of 1 in front.
std::vector<std::int32_t> of_rank(const std::vector<std::int32_t>& shape, std::size_t rank) {
    std::vector<std::int32_t> result(rank - shape.size(), 1);
    result.insert(result.end(), shape.begin(), shape.end());
    return result;
}

}  // namespace

PreparedKernel prepare_select(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(check_select_types(op));
    const std::vector<std::int32_t>& shape = op.input(1).shape;
    REEF_CHECK(expect_shape(op.input(2), "input 2", shape));
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    std::vector<std::int32_t> which = op.input(0).shape;
    const bool outermost = which.size() == 1 && !shape.empty() && which[0] == shape[0];
    if (which != shape && !outermost && !which.empty())
        return fail(Cause::unsupported,
                    fmt::format("input 0 of shape {} chooses among elements of shape {}",
                                model::shape_text(which), model::shape_text(shape)));
    which.resize(shape.size(), 1);
    return select_kernel(op, "select", choice_dimensions(shape, {which, shape, shape}));
}

PreparedKernel prepare_select_v2(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(check_select_types(op));
    const auto choices = REEF_TRY(Broadcast::of(op.input(1).shape, op.input(2).shape));
    const auto all = REEF_TRY(Broadcast::of(op.input(0).shape, choices.output_shape()));
    const std::vector<std::int32_t>& shape = all.output_shape();
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    const auto widened = [&](std::size_t i) { return of_rank(op.input(i).shape, shape.size()); };
    return select_kernel(op, "select_v2",
                         choice_dimensions(shape, {widened(0), widened(1), widened(2)}));
}

}  // namespace reef::cpu
