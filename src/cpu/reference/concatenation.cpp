// CONCATENATION, PACK, SPLIT, SPLIT_V and UNPACK: slices along one axis, joined or taken apart.
#include "cpu/reference/concatenation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/worker_pool.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"
#include "cpu/reference/byte_runs.h"
#include "cpu/reference/byte_table.h"

namespace reef::cpu {
namespace {

using Shape = std::vector<std::int32_t>;

/// A tensor cut at an axis: `rows` rows (the dimensions before it) of consecutive bytes (the axis
/// and what follows it).
std::size_t rows_before(const Shape& shape, std::size_t axis) {
    return std::accumulate(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis),
                           std::size_t{1}, [](std::size_t product, std::int32_t length) {
                               return product * static_cast<std::size_t>(length);
                           });
}

Result<std::size_t> bytes_of(const model::Tensor& tensor) {
    const auto bytes = tensor.byte_count();
    if (!bytes)
        return fail(Cause::unsupported, fmt::format("elements of type {}", name_of(tensor.type)));
    return static_cast<std::size_t>(*bytes);
}

/// Rows that are worth another thread: those of so many bytes.
std::size_t grain_of(std::size_t row_bytes) {
    constexpr std::size_t worth_a_thread = 1 << 13;
    return worth_a_thread / (row_bytes + 1) + 1;
}

/// Rows whose slices are moved one after the other: those that the first-level cache holds.
constexpr std::size_t block_bytes = 1 << 13;
std::size_t rows_at_once(std::size_t row_bytes) {
    return std::max<std::size_t>(block_bytes / std::max<std::size_t>(row_bytes, 1), 1);
}

/// What becomes of a slice's bytes: copied, or looked up when the scales differ.
struct Slice {
    std::size_t row_bytes = 0;
    bool rescaled = false;
    SliceTable table{};
};

class JoinKernel final : public Kernel {
  public:
    JoinKernel(const char* name, std::size_t rows, std::vector<Slice> slices)
        : name_(name), rows_(rows), slices_(std::move(slices)) {
        for (const Slice& slice : slices_) row_bytes_ += slice.row_bytes;
    }
    [[nodiscard]] std::string name() const override { return name_; }

    [[nodiscard]] Status run(const Frame& frame) override {
        frame.pool.parallel_for(
            rows_, grain_of(row_bytes_),
            [&](std::size_t begin, std::size_t end, std::size_t) { join(frame, begin, end); });
        return {};
    }

  private:
    void join(const Frame& frame, std::size_t begin, std::size_t end) const {
        const std::size_t block = rows_at_once(row_bytes_);
        for (std::size_t row = begin; row < end; row += block) {
            std::byte* out = frame.outputs[0] + row * row_bytes_;
            for (std::size_t i = 0; i < slices_.size(); ++i) {
                const Slice& slice = slices_[i];
                if (slice.row_bytes == 0) continue;
                put(slice, frame.inputs[i] + row * slice.row_bytes, out,
                    std::min(block, end - row));
                out += slice.row_bytes;
            }
        }
    }
    void put(const Slice& slice, const std::byte* in, std::byte* out, std::size_t rows) const {
        const auto step = static_cast<std::ptrdiff_t>(slice.row_bytes);
        const RunSteps steps{step, static_cast<std::ptrdiff_t>(row_bytes_)};
        if (!slice.rescaled) return copy_runs(in, out, steps, slice.row_bytes, rows);
        const auto look_up = [&](const std::byte* from, std::byte* to, std::size_t count) {
            look_up_bytes(slice.table, reinterpret_cast<const std::uint8_t*>(from),
                          reinterpret_cast<std::uint8_t*>(to), count);
        };
        // Short rows lie one behind the other in the input: one look-up for all.
        std::byte looked_up[block_bytes];
        if (rows * slice.row_bytes <= block_bytes && rows > 1) {
            look_up(in, looked_up, rows * slice.row_bytes);
            return copy_runs(looked_up, out, steps, slice.row_bytes, rows);
        }
        for (std::size_t row = 0; row < rows; ++row, in += steps.in, out += steps.out)
            look_up(in, out, slice.row_bytes);
    }

    const char* name_;
    std::size_t rows_, row_bytes_ = 0;
    std::vector<Slice> slices_;
};

class TakeApartKernel final : public Kernel {
  public:
    TakeApartKernel(const char* name, std::size_t input, std::size_t rows,
                    std::vector<std::size_t> row_bytes)
        : name_(name), input_(input), rows_(rows), row_bytes_(std::move(row_bytes)) {
        for (const std::size_t bytes : row_bytes_) all_bytes_ += bytes;
    }
    [[nodiscard]] std::string name() const override { return name_; }

    [[nodiscard]] Status run(const Frame& frame) override {
        frame.pool.parallel_for(rows_, grain_of(all_bytes_),
                                [&](std::size_t begin, std::size_t end, std::size_t) {
                                    take_apart(frame, begin, end);
                                });
        return {};
    }

  private:
    void take_apart(const Frame& frame, std::size_t begin, std::size_t end) const {
        const std::size_t block = rows_at_once(all_bytes_);
        for (std::size_t row = begin; row < end; row += block) {
            const std::byte* in = frame.inputs[input_] + row * all_bytes_;
            for (std::size_t i = 0; i < row_bytes_.size(); ++i) {
                const std::size_t bytes = row_bytes_[i];
                if (bytes == 0) continue;
                copy_runs(
                    in, frame.outputs[i] + row * bytes,
                    {static_cast<std::ptrdiff_t>(all_bytes_), static_cast<std::ptrdiff_t>(bytes)},
                    bytes, std::min(block, end - row));
                in += bytes;
            }
        }
    }

    const char* name_;
    std::size_t input_;
    std::size_t rows_, all_bytes_ = 0;
    std::vector<std::size_t> row_bytes_;
};

Status expect_same_type(const model::Tensor& tensor, const char* what, const model::Tensor& other) {
    if (tensor.type == other.type) return {};
    return fail(Cause::bad_input, fmt::format("{} is {} where {} is expected", what,
                                              name_of(tensor.type), name_of(other.type)));
}

/// TFLite rescales joined uint8 tensors and refuses other types whose parameters differ.
Status expect_same_parameters(const model::Tensor& input, const model::Tensor& output) {
    const bool in = input.quantization && input.quantization->quantized();
    const bool out = output.quantization && output.quantization->quantized();
    if (!in && !out) return {};
    const auto a = REEF_TRY(per_tensor_parameters(input));
    const auto b = REEF_TRY(per_tensor_parameters(output));
    if (a == b) return {};
    return fail(Cause::unsupported,
                fmt::format("'{}' and '{}' have different scales or zero points, which only uint8 "
                            "CONCATENATION rescales",
                            input.name, output.name));
}

/// TFLite's rule for uint8 inputs of another quantisation, in float32.
Result<SliceTable> rescaling_table(AffineParameters in, AffineParameters out) {
    const float inverse = 1.0F / out.scale;
    const float scale = in.scale * inverse;
    // Else the sum below may be of two infinities, and no number.
    if (!std::isfinite(255 * scale))
        return fail(Cause::bad_input,
                    fmt::format("a rescaling factor of {} / {}", in.scale, out.scale));
    const float bias = static_cast<float>(-in.zero_point) * scale;
    SliceTable table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
        const float value = std::round(static_cast<float>(i) * scale + bias);
        const float shifted = value + static_cast<float>(out.zero_point);
        table[i] = static_cast<std::uint8_t>(std::clamp(shifted, 0.0F, 255.0F));
    }
    return table;
}

Result<Slice> joined_slice(const model::Tensor& input, const model::Tensor& output,
                           std::size_t rows, MakeSliceTable table) {
    Slice slice;
    slice.row_bytes = REEF_TRY(bytes_of(input)) / std::max<std::size_t>(rows, 1);
    if (table != nullptr) {
        slice.rescaled = true;
        slice.table = REEF_TRY(table(input, output));
        return slice;
    }
    const bool quantised = input.quantization && input.quantization->quantized();
    if (input.type != ElementType::uint8 || !quantised) {
        REEF_CHECK(expect_same_parameters(input, output));
        return slice;
    }
    const auto in = REEF_TRY(per_tensor_parameters(input));
    const auto out = REEF_TRY(per_tensor_parameters(output));
    slice.rescaled = in != out;
    if (slice.rescaled) slice.table = REEF_TRY(rescaling_table(in, out));
    return slice;
}

/// One length of -1 takes what the others leave.
Status fill_unknown_length(std::vector<std::int64_t>& lengths, std::int64_t whole) {
    const auto unknown = std::ranges::find(lengths, std::int64_t{-1});
    std::int64_t rest = whole;
    for (auto length = lengths.begin(); length != lengths.end(); ++length) {
        if (length == unknown) continue;
        if (*length < 0 || *length > rest)
            return fail(Cause::bad_input,
                        fmt::format("a part of {} elements of {}", *length, whole));
        rest -= *length;
    }
    if (unknown != lengths.end()) {
        *unknown = rest;
    } else if (rest != 0) {
        return fail(Cause::bad_input,
                    fmt::format("the parts leave {} of {} elements", rest, whole));
    }
    return {};
}

/// `table`: null for TFLite's rules.
PreparedKernel concatenate(const OperatorView& op, MakeSliceTable table) {
    REEF_CHECK(op.expect_counts(std::max<std::size_t>(op.input_count(), 1), op.input_count(), 1));
    const auto given = REEF_TRY(op.options<model::ConcatenationOptions>());
    if (given.activation != model::Activation::none)
        return fail(Cause::unsupported, "a fused activation");
    Shape shape = op.input(0).shape;
    const std::size_t axis = REEF_TRY(resolve_axis(given.axis, shape.size()));
    std::int64_t total = 0;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        REEF_CHECK(expect_same_type(op.input(i), "an input", op.output(0)));
        Shape other = op.input(i).shape;
        if (other.size() == shape.size()) {
            total += other[axis];
            other[axis] = shape[axis];
        }
        if (other != shape)
            return fail(
                Cause::bad_input,
                fmt::format("input {} is {}, input 0 is {}: only axis {} may differ", i,
                            model::shape_text(op.input(i).shape), model::shape_text(shape), axis));
    }
    if (total > std::numeric_limits<std::int32_t>::max())
        return fail(Cause::bad_input, "the joined axis overflows 32 bits");
    shape[axis] = static_cast<std::int32_t>(total);
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    const std::size_t rows = rows_before(shape, axis);
    std::vector<Slice> slices;
    slices.reserve(op.input_count());
    for (std::size_t i = 0; i < op.input_count(); ++i)
        slices.push_back(REEF_TRY(joined_slice(op.input(i), op.output(0), rows, table)));
    return std::make_unique<JoinKernel>("concatenation", rows, std::move(slices));
}

}  // namespace

PreparedKernel prepare_concatenation(const OperatorView& op, const PrepareOptions& /*options*/) {
    return concatenate(op, nullptr);
}

PreparedKernel concatenate_through_tables(const OperatorView& op, MakeSliceTable table) {
    return concatenate(op, table);
}

PreparedKernel prepare_pack(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(std::max<std::size_t>(op.input_count(), 1), op.input_count(), 1));
    const auto given = REEF_TRY(op.options<model::PackOptions>());
    if (static_cast<std::int64_t>(op.input_count()) != given.values_count)
        return fail(Cause::bad_input, fmt::format("{} inputs, the options say {}", op.input_count(),
                                                  given.values_count));
    Shape shape = op.input(0).shape;
    const std::size_t axis = REEF_TRY(resolve_axis(given.axis, shape.size() + 1));
    const std::size_t rows = rows_before(shape, axis);
    std::vector<Slice> slices;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        REEF_CHECK(expect_same_type(op.input(i), "an input", op.output(0)));
        REEF_CHECK(expect_shape(op.input(i), "an input", shape));
        REEF_CHECK(expect_same_parameters(op.input(i), op.output(0)));
        const std::size_t bytes = REEF_TRY(bytes_of(op.input(i)));
        slices.push_back(Slice{.row_bytes = bytes / std::max<std::size_t>(rows, 1)});
    }
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), given.values_count);
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    return std::make_unique<JoinKernel>("pack", rows, std::move(slices));
}

PreparedKernel prepare_split(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, op.output_count()));
    const auto given = REEF_TRY(op.options<model::SplitOptions>());
    const auto axes = REEF_TRY(constant_int32(op, 0, "the axis (input 0)"));
    if (axes.size() != 1) return fail(Cause::bad_input, "the axis (input 0) is not one number");
    Shape shape = op.input(1).shape;
    const std::size_t axis = REEF_TRY(resolve_axis(axes[0], shape.size()));
    if (op.output_count() == 0 || static_cast<std::int64_t>(op.output_count()) != given.num_splits)
        return fail(Cause::bad_input, fmt::format("{} outputs, the options say {}",
                                                  op.output_count(), given.num_splits));
    if (shape[axis] % given.num_splits != 0)
        return fail(Cause::bad_input,
                    fmt::format("axis {} of {} does not split into {} equal parts", axis,
                                model::shape_text(shape), given.num_splits));
    shape[axis] /= given.num_splits;
    const std::size_t rows = rows_before(shape, axis);
    std::vector<std::size_t> row_bytes;
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        REEF_CHECK(expect_same_type(op.output(i), "an output", op.input(1)));
        REEF_CHECK(expect_shape(op.output(i), "an output", shape));
        row_bytes.push_back(REEF_TRY(bytes_of(op.output(i))) / std::max<std::size_t>(rows, 1));
    }
    return std::make_unique<TakeApartKernel>("split", 1, rows, std::move(row_bytes));
}

PreparedKernel prepare_split_v(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(3, 3, op.output_count()));
    const auto given = REEF_TRY(op.options<model::SplitVOptions>());
    auto lengths = REEF_TRY(constant_integers(op, 1, "the lengths (input 1)"));
    const auto axes = REEF_TRY(constant_int32(op, 2, "the axis (input 2)"));
    if (axes.size() != 1) return fail(Cause::bad_input, "the axis (input 2) is not one number");
    const Shape& whole = op.input(0).shape;
    const std::size_t axis = REEF_TRY(resolve_axis(axes[0], whole.size()));
    if (lengths.empty() || op.output_count() != lengths.size() ||
        static_cast<std::int64_t>(lengths.size()) != given.num_splits)
        return fail(Cause::bad_input,
                    fmt::format("{} outputs and {} lengths, the options say {}", op.output_count(),
                                lengths.size(), given.num_splits));
    REEF_CHECK(fill_unknown_length(lengths, whole[axis]));
    const std::size_t rows = rows_before(whole, axis);
    std::vector<std::size_t> row_bytes;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        Shape shape = whole;
        shape[axis] = static_cast<std::int32_t>(lengths[i]);
        REEF_CHECK(expect_same_type(op.output(i), "an output", op.input(0)));
        REEF_CHECK(expect_shape(op.output(i), "an output", shape));
        row_bytes.push_back(REEF_TRY(bytes_of(op.output(i))) / std::max<std::size_t>(rows, 1));
    }
    return std::make_unique<TakeApartKernel>("split_v", 0, rows, std::move(row_bytes));
}

PreparedKernel prepare_unpack(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(1, 1, op.output_count()));
    const auto given = REEF_TRY(op.options<model::UnpackOptions>());
    Shape shape = op.input(0).shape;
    const std::size_t axis = REEF_TRY(resolve_axis(given.axis, shape.size()));
    if (static_cast<std::int64_t>(op.output_count()) != given.num || shape[axis] != given.num)
        return fail(Cause::bad_input,
                    fmt::format("{} outputs from axis {} of {}, the options say {}",
                                op.output_count(), axis, model::shape_text(shape), given.num));
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    const std::size_t rows = rows_before(shape, axis);
    std::vector<std::size_t> row_bytes;
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        REEF_CHECK(expect_same_type(op.output(i), "an output", op.input(0)));
        REEF_CHECK(expect_shape(op.output(i), "an output", shape));
        row_bytes.push_back(REEF_TRY(bytes_of(op.output(i))) / std::max<std::size_t>(rows, 1));
    }
    return std::make_unique<TakeApartKernel>("unpack", 0, rows, std::move(row_bytes));
}

}  // namespace reef::cpu
