// RESHAPE, SQUEEZE and EXPAND_DIMS: the same bytes under another shape. SHAPE: the shape itself.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/worker_pool.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

void copy_bytes(const Frame& frame, std::size_t bytes) {
    constexpr std::size_t worth_a_thread = 1 << 14;
    frame.pool.parallel_for(
        bytes, worth_a_thread, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
            std::memcpy(frame.outputs[0] + begin, frame.inputs[0] + begin, end - begin);
        });
}

class CopyKernel final : public Kernel {
  public:
    CopyKernel(std::string name, std::size_t bytes) : name_(std::move(name)), bytes_(bytes) {}
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] Status run(const Frame& frame) override {
        copy_bytes(frame, bytes_);
        return {};
    }

  private:
    std::string name_;
    std::size_t bytes_;
};

/// For a shape that another operator computes: it must come out as the file declares the output.
class CheckedReshapeKernel final : public Kernel {
  public:
    CheckedReshapeKernel(std::size_t bytes, std::vector<std::int32_t> declared)
        : bytes_(bytes), declared_(std::move(declared)) {}
    [[nodiscard]] std::string name() const override { return "reshape"; }
    [[nodiscard]] Status run(const Frame& frame) override {
        const auto* wanted = frame.in<std::int32_t>(1);
        for (std::size_t i = 0; i < declared_.size(); ++i)
            if (wanted[i] != declared_[i] && wanted[i] != -1)
                return fail(Cause::unsupported,
                            fmt::format("a shape computed at run time whose dimension {} is {}, "
                                        "declared as {}",
                                        i, wanted[i], declared_[i]));
        copy_bytes(frame, bytes_);
        return {};
    }

  private:
    std::size_t bytes_;
    std::vector<std::int32_t> declared_;
};

/// Bytes that were known before the run.
class ConstantKernel final : public Kernel {
  public:
    ConstantKernel(std::string name, std::vector<std::byte> bytes)
        : name_(std::move(name)), bytes_(std::move(bytes)) {}
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] Status run(const Frame& frame) override {
        std::ranges::copy(bytes_, frame.outputs[0]);
        return {};
    }

  private:
    std::string name_;
    std::vector<std::byte> bytes_;
};

template <typename T>
PreparedKernel shape_kernel(const std::vector<std::int32_t>& shape) {
    const std::vector<T> wide(shape.begin(), shape.end());
    const auto bytes = std::as_bytes(std::span(wide));
    return std::make_unique<ConstantKernel>("shape",
                                            std::vector<std::byte>(bytes.begin(), bytes.end()));
}

PreparedKernel copy_of_input(const OperatorView& op, const char* name) {
    const model::Tensor& input = op.input(0);
    const model::Tensor& output = op.output(0);
    if (!input.byte_count())
        return fail(Cause::unsupported, fmt::format("elements of type {}", name_of(input.type)));
    if (input.type != output.type)
        return fail(Cause::bad_input, fmt::format("input is {}, output {}", name_of(input.type),
                                                  name_of(output.type)));
    if (input.element_count() != output.element_count())
        return fail(Cause::bad_input, fmt::format("{} elements become {}", input.element_count(),
                                                  output.element_count()));
    return std::make_unique<CopyKernel>(name, static_cast<std::size_t>(*input.byte_count()));
}

/// `wanted` with its one -1 replaced so that the element count stays.
Result<std::vector<std::int32_t>> fill_unknown(std::vector<std::int32_t> wanted,
                                               std::int64_t elements) {
    std::optional<std::size_t> unknown;
    std::int64_t known = 1;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] == -1) {
            if (unknown) return fail(Cause::bad_input, "the new shape holds more than one -1");
            unknown = i;
        } else if (wanted[i] < 0) {
            return fail(Cause::bad_input, fmt::format("the new shape holds {}", wanted[i]));
        } else if (__builtin_mul_overflow(known, std::int64_t{wanted[i]}, &known)) {
            return fail(Cause::bad_input, "the new shape overflows 64 bits");
        }
    }
    if (unknown) {
        if (known == 0 || elements % known != 0)
            return fail(Cause::bad_input,
                        fmt::format("{} elements do not fit the new shape", elements));
        wanted[*unknown] = static_cast<std::int32_t>(elements / known);
    }
    return wanted;
}

/// One number for each declared dimension, from another operator.
bool is_computed_shape(const OperatorView& op) {
    if (!op.has_input(1) || !op.constant(1).empty()) return false;
    const model::Tensor& shape = op.input(1);
    return shape.type == ElementType::int32 && shape.shape.size() == 1 && shape.shape[0] > 0 &&
           static_cast<std::size_t>(shape.shape[0]) == op.output(0).shape.size();
}

}  // namespace

PreparedKernel prepare_reshape(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(1, 2, 1));
    const auto given = REEF_TRY(op.options<model::ReshapeOptions>());
    if (is_computed_shape(op)) {
        (void)REEF_TRY(copy_of_input(op, "reshape"));
        return std::make_unique<CheckedReshapeKernel>(
            static_cast<std::size_t>(*op.input(0).byte_count()), op.output(0).shape);
    }
    auto wanted = op.has_input(1) ? REEF_TRY(constant_int32(op, 1, "the new shape (input 1)"))
                                  : given.new_shape;
    // Old converters wrote [0] for a scalar.
    if (!op.has_input(1) && wanted.size() == 1 && wanted[0] == 0) wanted.clear();
    REEF_CHECK(expect_shape(op.output(0), "output 0",
                            REEF_TRY(fill_unknown(wanted, op.input(0).element_count()))));
    return copy_of_input(op, "reshape");
}

PreparedKernel prepare_squeeze(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto given = REEF_TRY(op.options<model::SqueezeOptions>());
    const std::vector<std::int32_t>& shape = op.input(0).shape;
    // Without a list, every dimension of length 1 goes.
    std::vector<bool> goes(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i)
        goes[i] = given.squeeze_dims.empty() && shape[i] == 1;
    for (const std::int32_t dimension : given.squeeze_dims) {
        const std::size_t axis = REEF_TRY(resolve_axis(dimension, shape.size()));
        if (shape[axis] != 1)
            return fail(Cause::bad_input,
                        fmt::format("dimension {} of {} is not 1", axis, model::shape_text(shape)));
        goes[axis] = true;
    }
    std::vector<std::int32_t> computed;
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (!goes[i]) computed.push_back(shape[i]);
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    return copy_of_input(op, "squeeze");
}

PreparedKernel prepare_expand_dims(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const auto axes = REEF_TRY(constant_integers(op, 1, "the axis (input 1)"));
    if (axes.size() != 1) return fail(Cause::bad_input, "the axis (input 1) is not one number");
    std::vector<std::int32_t> computed = op.input(0).shape;
    const std::size_t axis = REEF_TRY(resolve_axis(axes[0], computed.size() + 1));
    computed.insert(computed.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    return copy_of_input(op, "expand_dims");
}

PreparedKernel prepare_shape(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto given = REEF_TRY(op.options<model::ShapeOptions>());
    const std::vector<std::int32_t>& shape = op.input(0).shape;
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::int32, ElementType::int64}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {given.out_type}));
    REEF_CHECK(expect_shape(op.output(0), "output 0", {static_cast<std::int32_t>(shape.size())}));
    if (given.out_type == ElementType::int64) return shape_kernel<std::int64_t>(shape);
    return shape_kernel<std::int32_t>(shape);
}

}  // namespace reef::cpu
