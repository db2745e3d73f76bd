#include "cpu/prepare/non_max_suppression.h"

#include <algorithm>
#include <cassert>

namespace reef::cpu {

float intersection_over_union(const Box& a, const Box& b) {
    const float area_a = (a.y_max - a.y_min) * (a.x_max - a.x_min);
    const float area_b = (b.y_max - b.y_min) * (b.x_max - b.x_min);
    if (area_a <= 0 || area_b <= 0) return 0;
    const float height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
    const float width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min);
    const float intersection = std::max(height, 0.0F) * std::max(width, 0.0F);
    return intersection / (area_a + area_b - intersection);
}

BoxSelection::BoxSelection(std::size_t boxes, float score_threshold, float iou_threshold)
    : score_threshold_(score_threshold), iou_threshold_(iou_threshold) {
    candidates_.reserve(boxes);
    selected_.reserve(boxes);
}

std::span<const std::uint32_t> BoxSelection::select(std::span<const Box> boxes,
                                                    std::span<const float> scores,
                                                    std::size_t limit) {
    assert(boxes.size() == scores.size() && scores.size() <= candidates_.capacity());
    candidates_.clear();
    selected_.clear();
    for (std::uint32_t i = 0; i < scores.size(); ++i)
        if (scores[i] >= score_threshold_) candidates_.push_back(i);
    std::ranges::sort(candidates_, [&](std::uint32_t a, std::uint32_t b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    for (const std::uint32_t candidate : candidates_) {
        if (selected_.size() >= limit) break;
        const bool overlaps = std::ranges::any_of(selected_, [&](std::uint32_t kept) {
            return intersection_over_union(boxes[kept], boxes[candidate]) > iou_threshold_;
        });
        if (!overlaps) selected_.push_back(candidate);
    }
    return selected_;
}

}  // namespace reef::cpu
