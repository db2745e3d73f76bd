// PAD: zeros (the zero point, in quantised tensors) around the input. Any rank; constant paddings.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// One run of input elements that stay together, and where it goes; both in bytes.
struct PadAxis {
    std::size_t length = 1;
    std::size_t input_step = 0;
    std::size_t output_step = 0;
};

struct PadPlan {
    std::vector<PadAxis> axes;  ///< all outside a run
    std::size_t run = 0;        ///< bytes of the input that stay together: up to a padded axis
    std::size_t first = 0;      ///< where the input's first element lands, in bytes
    std::size_t output = 0;     ///< bytes
};

class PadKernel final : public Kernel {
  public:
    PadKernel(PadPlan plan, int fill) : plan_(std::move(plan)), fill_(fill) {
        while (shared_ < plan_.axes.size() && plan_.axes[shared_].length == 1) ++shared_;
        if (shared_ < plan_.axes.size()) parts_ = plan_.axes[shared_].length;
    }

    [[nodiscard]] std::string name() const override { return "pad reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        constexpr std::size_t worth_a_thread = 1 << 14;  // bytes
        if (plan_.run == 0) {
            std::memset(frame.outputs[0], fill_, plan_.output);
            return {};
        }
        frame.pool.parallel_for(parts_, worth_a_thread / (plan_.output / parts_ + 1) + 1,
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    fill_parts(frame, begin, end);
                                });
        return {};
    }

  private:
    /// Parts of the outermost axis that has several, each with the padding behind it.
    void fill_parts(const Frame& frame, std::size_t begin, std::size_t end) const {
        const PadAxis axis = shared_ < plan_.axes.size() ? plan_.axes[shared_]
                                                         : PadAxis{.output_step = plan_.output};
        const auto start_of = [&](std::size_t part) {
            return plan_.first + part * axis.output_step;
        };
        const std::size_t from = begin == 0 ? 0 : start_of(begin);
        const std::size_t to = end == parts_ ? plan_.output : start_of(end);
        std::memset(frame.outputs[0] + from, fill_, to - from);
        for (std::size_t part = begin; part < end; ++part)
            copy(frame.inputs[0] + part * axis.input_step, frame.outputs[0] + start_of(part),
                 std::min(shared_ + 1, plan_.axes.size()));
    }

    void copy(const std::byte* in, std::byte* out, std::size_t axis) const {
        if (axis == plan_.axes.size()) {
            std::memcpy(out, in, plan_.run);
            return;
        }
        const PadAxis& a = plan_.axes[axis];
        for (std::size_t i = 0; i < a.length; ++i)
            copy(in + i * a.input_step, out + i * a.output_step, axis + 1);
    }

    PadPlan plan_;
    int fill_;                ///< byte value: 0, or an 8-bit zero point
    std::size_t shared_ = 0;  ///< axis among threads; axes in front of it have one index
    std::size_t parts_ = 1;
};

Result<int> fill_value(const OperatorView& op) {
    const model::Tensor& input = op.input(0);
    if (!input.quantization || !input.quantization->quantized()) return 0;
    const auto in = REEF_TRY(per_tensor_parameters(input));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (in != out) return fail(Cause::unsupported, "input and output are quantised differently");
    const bool bytes = input.type == ElementType::uint8 || input.type == ElementType::int8;
    if (!bytes && in.zero_point != 0)
        return fail(Cause::unsupported,
                    fmt::format("a zero point of {} in {}", in.zero_point, name_of(input.type)));
    return in.zero_point;
}

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
        plan.first += static_cast<std::size_t>(paddings[2 * i]) * output_step;
        if (!together) plan.axes.push_back({length, input_step, output_step});
        input_step *= length;
        output_step *= static_cast<std::size_t>(out[i]);
        if (together) plan.run = input_step;
        together = together && in[i] == out[i];
    }
    std::ranges::reverse(plan.axes);
    plan.output = output_step;
    if (input_step == 0) plan.run = 0;
    return plan;
}

}  // namespace

PreparedKernel prepare_pad(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
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
    const int fill = REEF_TRY(fill_value(op));
    return std::make_unique<PadKernel>(
        make_plan(input.shape, shape, paddings, *size_of(input.type)), fill);
}

}  // namespace reef::cpu
