// MIRROR_PAD: the input's own elements around it, in reverse order. Any rank; constant paddings.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// For each index of an output's dimension, how many bytes of the input lie in front of its source.
using Sources = std::vector<std::size_t>;

class MirrorPadKernel final : public Kernel {
  public:
    /// Outermost dimension first, at least one.
    MirrorPadKernel(std::vector<Sources> dimensions, std::size_t run)
        : dimensions_(std::move(dimensions)), run_(run) {}
    [[nodiscard]] std::string name() const override { return "mirror_pad reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        std::byte* out = frame.outputs[0];
        copy(0, frame.inputs[0], out);
        return {};
    }

  private:
    void copy(std::size_t dimension, const std::byte* in, std::byte*& out) const {
        const bool innermost = dimension + 1 == dimensions_.size();
        for (const std::size_t source : dimensions_[dimension]) {
            if (!innermost) {
                copy(dimension + 1, in + source, out);
                continue;
            }
            std::memcpy(out, in + source, run_);
            out += run_;
        }
    }

    std::vector<Sources> dimensions_;
    std::size_t run_;  ///< bytes of the dimensions inside, which have no border
};

/// Where an index comes from that lies outside a dimension: beyond its first element or its last
/// one, which are repeated or not.
std::int64_t mirrored(std::int64_t index, std::int64_t length, model::Mirror mode) {
    const std::int64_t repeated = mode == model::Mirror::symmetric ? 1 : 0;
    if (index < 0) return -index - repeated;
    if (index >= length) return 2 * (length - 1) - index + repeated;
    return index;
}

Result<Sources> sources_along(std::int64_t length, std::int64_t before, std::int64_t after,
                              std::size_t step, model::Mirror mode) {
    const std::int64_t most = mode == model::Mirror::symmetric ? length : length - 1;
    if (before < 0 || after < 0 || before > most || after > most)
        return fail(Cause::bad_input,
                    fmt::format("paddings {} and {} of a dimension of {}", before, after, length));
    Sources sources;
    for (std::int64_t i = -before; i < length + after; ++i)
        sources.push_back(static_cast<std::size_t>(mirrored(i, length, mode)) * step);
    return sources;
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
    std::vector<Sources> dimensions;
    std::vector<std::int32_t> shape(input.shape.size());
    std::size_t step = *element, run = step;
    for (std::size_t d = input.shape.size(); d-- > 0;) {
        const std::int64_t before = paddings[2 * d], after = paddings[2 * d + 1];
        Sources sources = REEF_TRY(sources_along(input.shape[d], before, after, step, mode));
        shape[d] = static_cast<std::int32_t>(sources.size());
        step *= static_cast<std::size_t>(input.shape[d]);
        const bool together = dimensions.empty() && before == 0 && after == 0;
        if (together)
            run = step;
        else
            dimensions.push_back(std::move(sources));
    }
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    if (dimensions.empty()) dimensions.push_back({0});
    std::ranges::reverse(dimensions);
    return std::make_unique<MirrorPadKernel>(std::move(dimensions), run);
}

}  // namespace reef::cpu
