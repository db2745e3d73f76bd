// Pictures to input tensors, by one rule for every network.
//
// Grey networks get (r + g + b) / 3 in integers. The picture is then stretched to the tensor's
// height and width with TFLite's RESIZE_BILINEAR (align_corners false, half_pixel_centers true) in
// float32 and truncated to uint8. uint8 tensors take the pixels as they are, int8 tensors
// pixel - 128, float32 tensors (pixel - 127.5) / 127.5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pictures/image.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::tool {

/// What networks want that were trained with pictures made in another way.
struct PictureRules {
    /// Pixels of the shorter side, to which the whole picture is scaled first; then the middle of
    /// the tensor's size is cut out. 0: no such step.
    int resize = 0;
    bool crop = false;  ///< without resize: cut the middle of the tensor's proportions out first
    bool bgr = false;   ///< blue comes first
    /// (pixel - mean) / deviation is the value that the tensor gets, quantised as it says; one
    /// number, or one a channel in the tensor's order. Both empty: as above; one: 0, or 1.
    std::vector<double> mean{}, deviation{};

    [[nodiscard]] bool sets_values() const { return !mean.empty() || !deviation.empty(); }
};

/// Height and width of a picture with 1 or 3 interleaved channels.
struct PictureSize {
    int height = 0;
    int width = 0;
    int channels = 3;
};

/// One byte per pixel.
[[nodiscard]] std::vector<std::uint8_t> grey_of(const Image& image);

/// `pixels` holds from.height * from.width * from.channels bytes. Preconditions: all sides
/// positive, the same number of channels.
[[nodiscard]] std::vector<std::uint8_t> resize_bilinear(std::span<const std::uint8_t> pixels,
                                                        PictureSize from, PictureSize to);

/// The size of the pictures that a tensor takes: [1, H, W, C], [H, W, C] or, grey, [1, H, W], with
/// C = 1 or 3. Errors: bad_input when its shape or element type takes no picture.
[[nodiscard]] Result<PictureSize> picture_size(const model::Tensor& tensor);

/// The bytes of `tensor` for that picture. Errors: those of picture_size(); bad_argument for rules
/// that do not fit the tensor.
[[nodiscard]] Result<std::vector<std::byte>> prepare_image(const Image& image,
                                                           const model::Tensor& tensor,
                                                           const PictureRules& rules = {});

}  // namespace reef::tool
