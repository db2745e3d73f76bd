// Element-wise operators on two tensors whose shapes agree or broadcast.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reef/base/result.h"

namespace reef::cpu {

/// Dimensions align at the end; a dimension of length 1 (or none) repeats. Neighbouring dimensions
/// that behave alike are merged, so that the innermost loop is as long as it can be.
class Broadcast {
  public:
    /// Errors (bad_input): two lengths differ and neither is 1.
    [[nodiscard]] static Result<Broadcast> of(const std::vector<std::int32_t>& a,
                                              const std::vector<std::int32_t>& b);

    [[nodiscard]] const std::vector<std::int32_t>& output_shape() const { return shape_; }
    [[nodiscard]] std::size_t size() const { return size_; }

    /// Steps of the two inputs along a run: 0 (the one element repeats) or 1.
    [[nodiscard]] std::size_t a_step() const { return inner().a_stride; }
    [[nodiscard]] std::size_t b_step() const { return inner().b_stride; }

    /// Elements of an input that repeat all along the other one, which is read from its first
    /// element to its last: a value for each channel. 0 where that is not all there is.
    [[nodiscard]] std::size_t period_of_a() const {
        return repeats(&Dimension::a_stride, &Dimension::b_stride);
    }
    [[nodiscard]] std::size_t period_of_b() const {
        return repeats(&Dimension::b_stride, &Dimension::a_stride);
    }

    /// Covers the output's elements [begin, end) by calls of run(out, a, b, count): indices of the
    /// first element, and how many follow along the innermost dimension.
    template <typename Run>
    void each_run(std::size_t begin, std::size_t end, const Run& run) const {
        while (begin < end) {
            const std::size_t within = begin % inner().length;
            const std::size_t count = std::min(inner().length - within, end - begin);
            const Place place = place_of(begin);
            run(begin, place.a, place.b, count);
            begin += count;
        }
    }

  private:
    struct Dimension {
        std::size_t length = 1;
        std::size_t a_stride = 0;
        std::size_t b_stride = 0;
    };
    struct Place {
        std::size_t a = 0;
        std::size_t b = 0;
    };
    [[nodiscard]] const Dimension& inner() const { return dimensions_.front(); }
    [[nodiscard]] std::size_t repeats(std::size_t Dimension::*repeated,
                                      std::size_t Dimension::*other) const {
        if (dimensions_.size() != 2) return 0;
        const Dimension& outer = dimensions_[1];
        const bool all = inner().*repeated == 1 && inner().*other == 1 && outer.*repeated == 0 &&
                         outer.*other == inner().length;
        return all ? inner().length : 0;
    }
    [[nodiscard]] Place place_of(std::size_t index) const;

    std::vector<std::int32_t> shape_;
    std::vector<Dimension> dimensions_;  ///< innermost first, never empty
    std::size_t size_ = 1;
};

}  // namespace reef::cpu
