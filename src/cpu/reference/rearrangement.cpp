#include "cpu/reference/rearrangement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/worker_pool.h"
#include "cpu/reference/byte_runs.h"

namespace reef::cpu {
namespace {

class RearrangementKernel final : public Kernel {
  public:
    RearrangementKernel(const char* name, Rearrangement from, std::size_t element)
        : name_(name), run_(element), dimensions_(joined_dimensions(from.dimensions)) {
        first_ = from.first * static_cast<std::ptrdiff_t>(element);
        for (auto& dimension : dimensions_) {
            dimension.step *= static_cast<std::ptrdiff_t>(element);
            empty_ |= dimension.length == 0;
        }
        const bool consecutive =
            !dimensions_.empty() && dimensions_.back().step == static_cast<std::ptrdiff_t>(element);
        if (consecutive) {
            run_ *= dimensions_.back().length;
            dimensions_.pop_back();
        }
        share_out();
    }
    [[nodiscard]] std::string name() const override { return std::string(name_) + " reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        if (empty_) return {};
        frame.pool.parallel_for(parts_, worth_a_thread / (part_bytes_ + 1) + 1,
                                [&](std::size_t begin, std::size_t end, std::size_t) {
                                    std::byte* out = frame.outputs[0] + begin * part_bytes_;
                                    for (std::size_t part = begin; part < end; ++part)
                                        copy(shared_, frame.inputs[0] + first_ + start_of(part),
                                             out);
                                });
        return {};
    }

  private:
    static constexpr std::size_t worth_a_thread = 1 << 13;  ///< bytes

    /// Among threads: the outer dimensions, until they make parts enough. The innermost stays a
    /// loop of a part's own.
    void share_out() {
        constexpr std::size_t enough = 32;
        while (shared_ + 1 < dimensions_.size() && parts_ < enough)
            parts_ *= dimensions_[shared_++].length;
        part_bytes_ = run_;
        for (std::size_t d = shared_; d < dimensions_.size(); ++d)
            part_bytes_ *= dimensions_[d].length;
    }
    /// Bytes of the input in front of the part's first one.
    [[nodiscard]] std::ptrdiff_t start_of(std::size_t part) const {
        std::ptrdiff_t start = 0;
        for (std::size_t d = shared_; d-- > 0;) {
            const auto& [length, step] = dimensions_[d];
            start += static_cast<std::ptrdiff_t>(part % length) * step;
            part /= length;
        }
        return start;
    }

    void copy(std::size_t dimension, const std::byte* in, std::byte*& out) const {
        if (dimension == dimensions_.size()) {
            std::memcpy(out, in, run_);
            out += run_;
            return;
        }
        const auto& [length, step] = dimensions_[dimension];
        if (dimension + 1 < dimensions_.size()) {
            for (std::size_t i = 0; i < length; ++i, in += step) copy(dimension + 1, in, out);
            return;
        }
        const auto run = static_cast<std::ptrdiff_t>(run_);
        copy_runs(in, out, {step, run}, run_, length);
        out += run * static_cast<std::ptrdiff_t>(length);
    }

    const char* name_;
    std::size_t run_;  ///< bytes copied at once
    std::ptrdiff_t first_ = 0;
    std::vector<Rearrangement::Dimension> dimensions_;  ///< steps in bytes
    bool empty_ = false;
    std::size_t shared_ = 0;  ///< outer dimensions, whose indices number the parts
    std::size_t parts_ = 1, part_bytes_ = 0;
};

}  // namespace

std::vector<Rearrangement::Dimension> joined_dimensions(
    const std::vector<Rearrangement::Dimension>& all) {
    std::vector<Rearrangement::Dimension> result;
    for (const Rearrangement::Dimension& next : all) {
        if (next.length == 1) continue;
        if (!result.empty() &&
            result.back().step == next.step * static_cast<std::ptrdiff_t>(next.length)) {
            result.back().length *= next.length;
            result.back().step = next.step;
        } else {
            result.push_back(next);
        }
    }
    return result;
}

std::vector<std::ptrdiff_t> dense_steps(const std::vector<std::int32_t>& shape) {
    std::vector<std::ptrdiff_t> steps(shape.size());
    std::ptrdiff_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        steps[i] = step;
        step *= shape[i];
    }
    return steps;
}

PreparedKernel rearrangement_kernel(const char* name, const model::Tensor& input,
                                    Rearrangement rearrangement) {
    const auto element = size_of(input.type);
    if (!element)
        return fail(Cause::unsupported, fmt::format("elements of type {}", name_of(input.type)));
    return std::make_unique<RearrangementKernel>(name, std::move(rearrangement), *element);
}

}  // namespace reef::cpu
