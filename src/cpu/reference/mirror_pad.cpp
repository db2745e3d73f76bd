// MIRROR_PAD: the input's own elements around it, in reverse order. Any rank; constant paddings.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// One dimension: elements, those of its border, and bytes from one of the input's to the next.
struct MirroredDimension {
    std::int64_t before = 0, length = 1, after = 0;
    std::size_t step = 0;
    [[nodiscard]] bool has_border() const { return before > 0 || after > 0; }
};

class MirrorPadKernel final : public Kernel {
  public:
    /// Outermost dimension first; `run`: bytes of the dimensions inside, which have no border.
    MirrorPadKernel(std::vector<MirroredDimension> dimensions, std::size_t run, model::Mirror mode)
        : dimensions_(std::move(dimensions)),
          run_(run),
          repeated_(mode == model::Mirror::symmetric ? 1 : 0) {}
    [[nodiscard]] std::string name() const override { return "mirror_pad reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        // Nothing mirrors nothing, and the other lengths may be any.
        const auto is_empty = [](const MirroredDimension& d) { return d.length == 0; };
        if (run_ == 0 || std::ranges::any_of(dimensions_, is_empty)) return {};
        std::byte* out = frame.outputs[0];
        copy(0, frame.inputs[0], out);
        return {};
    }

  private:
    void copy(std::size_t dimension, const std::byte* in, std::byte*& out) const {
        if (dimension == dimensions_.size()) return copy_run(in, run_, out);
        const MirroredDimension& d = dimensions_[dimension];
        const auto copy_one = [&](std::int64_t index) {
            copy(dimension + 1, in + static_cast<std::size_t>(index) * d.step, out);
        };
        for (std::int64_t i = d.before; i > 0; --i) copy_one(i - repeated_);
        if (dimension + 1 == dimensions_.size())
            copy_run(in, static_cast<std::size_t>(d.length) * run_, out);
        else
            for (std::int64_t i = 0; i < d.length; ++i) copy_one(i);
        for (std::int64_t i = 1; i <= d.after; ++i) copy_one(d.length - 1 - i + repeated_);
    }
    static void copy_run(const std::byte* in, std::size_t bytes, std::byte*& out) {
        std::memcpy(out, in, bytes);
        out += bytes;
    }

    std::vector<MirroredDimension> dimensions_;
    std::size_t run_;
    std::int64_t repeated_;  ///< 1: the element at the edge is the border's first, too
};

/// Without steps. An element is mirrored once at most.
Result<std::vector<MirroredDimension>> with_borders(const std::vector<std::int32_t>& shape,
                                                    const std::vector<std::int64_t>& paddings,
                                                    model::Mirror mode) {
    std::vector<MirroredDimension> dimensions;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::int64_t length = shape[d], before = paddings[2 * d], after = paddings[2 * d + 1];
        const std::int64_t reflected = std::max<std::int64_t>(length - 1, 0);
        const std::int64_t most = mode == model::Mirror::symmetric ? length : reflected;
        if (before < 0 || after < 0 || before > most || after > most)
            return fail(Cause::bad_input, fmt::format("paddings {} and {} of a dimension of {}",
                                                      before, after, length));
        dimensions.push_back({.before = before, .length = length, .after = after});
    }
    return dimensions;
}

Result<std::vector<std::int32_t>> shape_of(const std::vector<MirroredDimension>& dimensions) {
    std::vector<std::int32_t> shape;
    for (const MirroredDimension& d : dimensions) {
        const std::int64_t length = d.before + d.length + d.after;
        if (length > std::numeric_limits<std::int32_t>::max())
            return fail(Cause::bad_input, "the output's shape is beyond 32 bits");
        shape.push_back(static_cast<std::int32_t>(length));
    }
    return shape;
}

}  // namespace

PreparedKernel prepare_mirror_pad(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const model::Tensor& input = op.input(0);
    const auto mode = REEF_TRY(op.options<model::MirrorPadOptions>()).mode;
    if (mode != model::Mirror::reflect && mode != model::Mirror::symmetric)
        return fail(Cause::bad_input, fmt::format("mode {} is not known", static_cast<int>(mode)));
    const auto element = size_of(input.type);
    if (!element)
        return fail(Cause::unsupported, fmt::format("elements of type {}", name_of(input.type)));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    const auto paddings = REEF_TRY(constant_integers(op, 1, "the paddings"));
    if (input.shape.empty() || paddings.size() != 2 * input.shape.size())
        return fail(Cause::bad_input, fmt::format("{} paddings for an input of {} dimensions",
                                                  paddings.size(), input.shape.size()));
    auto dimensions = REEF_TRY(with_borders(input.shape, paddings, mode));
    REEF_CHECK(expect_shape(op.output(0), "output 0", REEF_TRY(shape_of(dimensions))));
    std::size_t step = *element;
    for (std::size_t d = dimensions.size(); d-- > 0;) {
        dimensions[d].step = step;
        step *= static_cast<std::size_t>(dimensions[d].length);
    }
    std::size_t run = *element;
    for (; !dimensions.empty() && !dimensions.back().has_border(); dimensions.pop_back())
        run *= static_cast<std::size_t>(dimensions.back().length);
    return std::make_unique<MirrorPadKernel>(std::move(dimensions), run, mode);
}

}  // namespace reef::cpu
