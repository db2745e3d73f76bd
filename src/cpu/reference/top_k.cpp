// TOPK_V2: the largest elements along the last axis, in descending order, and where they lie.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

template <typename T>
class TopKKernel final : public Kernel {
  public:
    TopKKernel(std::size_t rows, std::size_t length, std::size_t k)
        : rows_(rows), length_(length), k_(k) {}
    [[nodiscard]] std::string name() const override { return "topk_v2 reference"; }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return length_ * sizeof(std::int32_t);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        auto* order = reinterpret_cast<std::int32_t*>(frame.scratch.data());
        for (std::size_t row = 0; row < rows_; ++row) {
            const T* in = frame.in<T>(0) + row * length_;
            std::iota(order, order + length_, 0);
            std::partial_sort(order, order + k_, order + length_,
                              [in](std::int32_t a, std::int32_t b) { return before(in, a, b); });
            for (std::size_t i = 0; i < k_; ++i) {
                frame.out<T>(0)[row * k_ + i] = in[order[i]];
                frame.out<std::int32_t>(1)[row * k_ + i] = order[i];
            }
        }
        return {};
    }

  private:
    /// The first of equals comes first, and NaN behind everything.
    static bool before(const T* in, std::int32_t a, std::int32_t b) {
        if constexpr (std::is_floating_point_v<T>) {
            const bool a_is_nan = std::isnan(in[a]);
            const bool b_is_nan = std::isnan(in[b]);
            if (a_is_nan != b_is_nan) return b_is_nan;
            if (a_is_nan) return a < b;
        }
        return in[a] != in[b] ? in[a] > in[b] : a < b;
    }

    std::size_t rows_, length_, k_;
};

}  // namespace

PreparedKernel prepare_topk_v2(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 2));
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::int32,
                            ElementType::int64, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    REEF_CHECK(expect_type(op.output(1), "output 1", {ElementType::int32}));
    const auto given = REEF_TRY(constant_int32(op, 1, "the number k"));
    if (given.size() != 1 || input.shape.empty() || given[0] < 0 || given[0] > input.shape.back())
        return fail(Cause::bad_input,
                    fmt::format("the largest {} of a tensor of {}", given.empty() ? 0 : given[0],
                                model::shape_text(input.shape)));
    std::vector<std::int32_t> computed = input.shape;
    computed.back() = given[0];
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    REEF_CHECK(expect_shape(op.output(1), "output 1", computed));
    const auto length = static_cast<std::size_t>(input.shape.back());
    const std::size_t rows =
        length == 0 ? 0 : static_cast<std::size_t>(input.element_count()) / length;
    return with_type_of(input.type, "input 0", [&]<typename T>(T) -> PreparedKernel {
        return std::make_unique<TopKKernel<T>>(rows, length, static_cast<std::size_t>(given[0]));
    });
}

}  // namespace reef::cpu
