// Boxes and greedy non-maximum suppression, as TFLite_Detection_PostProcess defines them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace reef::cpu {

struct Box {
    float y_min = 0, x_min = 0, y_max = 0, x_max = 0;
    friend bool operator==(const Box&, const Box&) = default;
};

/// Intersection over union; 0 when either area is not positive.
[[nodiscard]] float intersection_over_union(const Box& a, const Box& b);

/// Keeps what it works on between calls, so that select() allocates nothing.
class BoxSelection {
  public:
    /// Pairs above the IoU threshold do not survive together.
    BoxSelection(std::size_t boxes, float score_threshold, float iou_threshold);

    /// Indices of the surviving boxes by descending score, equal scores by index, at most `limit`.
    /// Scores below the threshold (and NaN) do not take part. Valid until the next call.
    /// Precondition: boxes and scores have the constructor's length.
    [[nodiscard]] std::span<const std::uint32_t> select(std::span<const Box> boxes,
                                                        std::span<const float> scores,
                                                        std::size_t limit);

  private:
    float score_threshold_;
    float iou_threshold_;
    std::vector<std::uint32_t> candidates_;
    std::vector<std::uint32_t> selected_;
};

}  // namespace reef::cpu
