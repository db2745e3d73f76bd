// PAD: zeros (the zero point, in quantised tensors) around the input. PADV2: its third input's
// element around it. Any rank; constant paddings.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"
#include "cpu/reference/byte_runs.h"

namespace reef::cpu {
namespace {

/// All in bytes.
struct PadAxis {
    std::size_t length = 1;  ///< of the input, in indices
    std::size_t input_step = 0;
    std::size_t output_step = 0;
    std::size_t before = 0, after = 0;  ///< padding
};

struct PadPlan {
    std::vector<PadAxis> axes;  ///< all outside a run, outermost first
    std::size_t run = 0;        ///< bytes of the input that stay together: up to a padded axis
    std::size_t run_before = 0, run_after = 0;
    std::size_t output = 0;
};

template <typename T>
void fill_with(std::byte* out, std::size_t bytes, const std::byte* element) {
    std::fill_n(reinterpret_cast<T*>(out), bytes / sizeof(T), *reinterpret_cast<const T*>(element));
}

/// So many bytes, a multiple of the element's, of one element; both aligned as elements are.
void fill(std::byte* out, std::size_t bytes, std::span<const std::byte> element) {
    switch (element.size()) {
        case 1:
            return fill_with<std::uint8_t>(out, bytes, element.data());
        case 2:
            return fill_with<std::uint16_t>(out, bytes, element.data());
        case 4:
            return fill_with<std::uint32_t>(out, bytes, element.data());
        default:
            return fill_with<std::uint64_t>(out, bytes, element.data());
    }
}

class PadKernel final : public Kernel {
  public:
    /// `fill`: a byte, or an input's element of so many bytes.
    struct Fill {
        std::byte byte{0};
        std::size_t element_bytes = 0;
    };
    PadKernel(const char* name, PadPlan plan, Fill fill)
        : name_(name), plan_(std::move(plan)), fill_(fill) {
        while (shared_ < plan_.axes.size() && plan_.axes[shared_].length == 1) ++shared_;
        if (shared_ < plan_.axes.size()) parts_ = plan_.axes[shared_].length;
        for (std::size_t axis = 0; axis <= shared_ && axis < plan_.axes.size(); ++axis)
            lead_ += plan_.axes[axis].before;
    }

    [[nodiscard]] std::string name() const override { return std::string(name_) + " reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        constexpr std::size_t worth_a_thread = 1 << 14;  // bytes
        if (plan_.run == 0) {
            fill(frame.outputs[0], plan_.output, element_of(frame));
            return {};
        }
        frame.pool.parallel_for(parts_, worth_a_thread / (plan_.output / parts_ + 1) + 1,
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    put_parts(frame, begin, end);
                                });
        return {};
    }

  private:
    using Element = std::span<const std::byte>;

    [[nodiscard]] Element element_of(const Frame& frame) const {
        if (fill_.element_bytes == 0) return {&fill_.byte, 1};
        return {frame.inputs[2], fill_.element_bytes};
    }

    /// Indices of the outermost axis that has several; the first and last ones with the padding
    /// around all.
    void put_parts(const Frame& frame, std::size_t begin, std::size_t end) const {
        const Element element = element_of(frame);
        const std::byte* in = frame.inputs[0];
        std::byte* out = frame.outputs[0];
        if (shared_ == plan_.axes.size()) {
            fill(out, lead_, element);
            put(in, out + lead_, shared_, element);
            const std::size_t done = lead_ + plan_.run_before + plan_.run + plan_.run_after;
            return fill(out + done, plan_.output - done, element);
        }
        const PadAxis& axis = plan_.axes[shared_];
        if (begin == 0) fill(out, lead_, element);
        put_indices(in + begin * axis.input_step, out + lead_ + begin * axis.output_step, shared_,
                    end - begin, element);
        const std::size_t done = lead_ + end * axis.output_step;
        if (end == parts_) fill(out + done, plan_.output - done, element);
    }

    /// Everything within one index of the axis outside.
    void put(const std::byte* in, std::byte* out, std::size_t axis, Element element) const {
        if (axis == plan_.axes.size()) {
            fill(out, plan_.run_before, element);
            std::memcpy(out + plan_.run_before, in, plan_.run);
            return fill(out + plan_.run_before + plan_.run, plan_.run_after, element);
        }
        const PadAxis& a = plan_.axes[axis];
        fill(out, a.before, element);
        put_indices(in, out + a.before, axis, a.length, element);
        fill(out + a.before + a.length * a.output_step, a.after, element);
    }

    void put_indices(const std::byte* in, std::byte* out, std::size_t axis, std::size_t count,
                     Element element) const {
        // Of short runs the padding is not worth a call each: all is padding first, in pieces that
        // stay in the first-level cache.
        constexpr std::size_t short_run = 256, piece = 1 << 13;
        const PadAxis& a = plan_.axes[axis];
        const bool short_runs = axis + 1 == plan_.axes.size() && a.output_step <= short_run;
        const std::size_t at_once = short_runs ? piece / a.output_step : 1;
        for (std::size_t i = 0; i < count; i += at_once) {
            const std::byte* from = in + i * a.input_step;
            std::byte* to = out + i * a.output_step;
            if (!short_runs) {
                put(from, to, axis + 1, element);
                continue;
            }
            const std::size_t some = std::min(at_once, count - i);
            fill(to, some * a.output_step, element);
            copy_runs(from, to + plan_.run_before,
                      {static_cast<std::ptrdiff_t>(a.input_step),
                       static_cast<std::ptrdiff_t>(a.output_step)},
                      plan_.run, some);
        }
    }

    const char* name_;
    PadPlan plan_;
    Fill fill_;
    std::size_t shared_ = 0;  ///< axis among threads; axes in front of it have one index
    std::size_t parts_ = 1;
    std::size_t lead_ = 0;  ///< bytes of padding in front of the first part
};

Result<std::vector<std::int32_t>> padded_shape(const std::vector<std::int32_t>& shape,
                                               const std::vector<std::int32_t>& paddings) {
    std::vector<std::int32_t> padded;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::int64_t before = paddings[2 * i];
        const std::int64_t after = paddings[2 * i + 1];
        const std::int64_t length = shape[i] + before + after;
        if (before < 0 || after < 0 || length > std::numeric_limits<std::int32_t>::max())
            return fail(Cause::bad_input,
                        fmt::format("paddings {} and {} of axis {}", before, after, i));
        padded.push_back(static_cast<std::int32_t>(length));
    }
    return padded;
}

PadPlan make_plan(const std::vector<std::int32_t>& in, const std::vector<std::int32_t>& out,
                  const std::vector<std::int32_t>& paddings, std::size_t element) {
    PadPlan plan;
    std::size_t input_step = element;
    std::size_t output_step = element;
    bool together = true;
    for (std::size_t i = in.size(); i-- > 0;) {
        const auto length = static_cast<std::size_t>(in[i]);
        const std::size_t before = static_cast<std::size_t>(paddings[2 * i]) * output_step;
        const std::size_t after = static_cast<std::size_t>(paddings[2 * i + 1]) * output_step;
        if (!together) plan.axes.push_back({length, input_step, output_step, before, after});
        input_step *= length;
        output_step *= static_cast<std::size_t>(out[i]);
        if (!together) continue;
        plan.run = input_step;
        plan.run_before = before;
        plan.run_after = after;
        together = in[i] == out[i];
    }
    std::ranges::reverse(plan.axes);
    plan.output = output_step;
    if (input_step == 0) plan.run = 0;
    return plan;
}

Result<PadPlan> check_pad(const OperatorView& op) {
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::int16,
                            ElementType::int32, ElementType::int64, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    const auto paddings = REEF_TRY(constant_int32(op, 1, "the paddings"));
    if (input.shape.empty() || paddings.size() != 2 * input.shape.size())
        return fail(Cause::bad_input, fmt::format("{} paddings for an input of {} dimensions",
                                                  paddings.size(), input.shape.size()));
    const auto shape = REEF_TRY(padded_shape(input.shape, paddings));
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    return make_plan(input.shape, shape, paddings, *size_of(input.type));
}

}  // namespace

PreparedKernel prepare_pad(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    PadPlan plan = REEF_TRY(check_pad(op));
    return std::make_unique<PadKernel>("pad", std::move(plan),
                                       PadKernel::Fill{.byte = REEF_TRY(padding_byte(op))});
}

PreparedKernel prepare_padv2(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(3, 3, 1));
    PadPlan plan = REEF_TRY(check_pad(op));
    const model::Tensor& value = op.input(2);
    REEF_CHECK(expect_type(value, "input 2", {op.input(0).type}));
    if (value.element_count() != 1)
        return fail(Cause::bad_input,
                    fmt::format("the value of the padding has {} elements", value.element_count()));
    for (const model::Tensor* other : {&value, &op.output(0)})
        if (!REEF_TRY(same_quantization(op.input(0), *other)))
            return fail(Cause::unsupported, "input, value and output are quantised differently");
    return std::make_unique<PadKernel>("padv2", std::move(plan),
                                       PadKernel::Fill{.element_bytes = *size_of(value.type)});
}

}  // namespace reef::cpu
