#include "cpu/prepare/broadcast.h"

#include <fmt/format.h>

#include "reef/model/graph.h"

namespace reef::cpu {

Result<Broadcast> Broadcast::of(const std::vector<std::int32_t>& a,
                                const std::vector<std::int32_t>& b) {
    Broadcast result;
    const std::size_t rank = std::max(a.size(), b.size());
    result.shape_.resize(rank);
    std::size_t a_size = 1;
    std::size_t b_size = 1;
    for (std::size_t from_end = 1; from_end <= rank; ++from_end) {
        const std::int32_t la = from_end <= a.size() ? a[a.size() - from_end] : 1;
        const std::int32_t lb = from_end <= b.size() ? b[b.size() - from_end] : 1;
        if (la != lb && la != 1 && lb != 1)
            return fail(Cause::bad_input, fmt::format("shapes {} and {} do not broadcast",
                                                      model::shape_text(a), model::shape_text(b)));
        const std::int32_t length = la == 1 ? lb : la;
        result.shape_[rank - from_end] = length;
        result.size_ *= static_cast<std::size_t>(length);
        if (length == 1) continue;
        const Dimension next{.length = static_cast<std::size_t>(length),
                             .a_stride = la == 1 ? 0 : a_size,
                             .b_stride = lb == 1 ? 0 : b_size};
        a_size *= static_cast<std::size_t>(la);
        b_size *= static_cast<std::size_t>(lb);
        const bool merges = !result.dimensions_.empty() &&
                            (result.dimensions_.back().a_stride == 0) == (next.a_stride == 0) &&
                            (result.dimensions_.back().b_stride == 0) == (next.b_stride == 0);
        if (merges) {
            result.dimensions_.back().length *= next.length;
        } else {
            result.dimensions_.push_back(next);
        }
    }
    if (result.dimensions_.empty()) result.dimensions_.emplace_back();
    return result;
}

Broadcast::Place Broadcast::place_of(std::size_t index) const {
    Place place;
    for (const Dimension& dimension : dimensions_) {
        const std::size_t at = index % dimension.length;
        index /= dimension.length;
        place.a += at * dimension.a_stride;
        place.b += at * dimension.b_stride;
    }
    return place;
}

}  // namespace reef::cpu
