// Operators that only move channels: PAD, CONCATENATION, SPLIT, RESHAPE and TRANSPOSE.
//
// The chip stores channels by words of four, and a multiplication with zeros and ones puts each
// where it belongs. Which operators have which matrices was read off these pairs, byte for byte:
// - PAD behind the last channel: face_detection_front_128, face_landmark_192 (12 PADs).
// - CONCATENATION of one-channel tensors and RESHAPE of one: bright, color, looming; of parts of
//   tensors, and SPLIT of a CONCATENATION: split_concat.
// - TRANSPOSE of channels to the front: YOLOv8n at two sizes, YOLOv5nu, with 7 to 22 columns; the
//   images are square, so that columns where rows are meant would not be noticed.
// - an LSTM's steps and features change places before and after it: keras_lstm.
#pragma once

#include <vector>

#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {

/// A matrix: output channel i is input channel sources[i].
struct Selection {
    LayerKind kind = LayerKind::convolution;  ///< fully_connected: of a tensor without an image
    std::uint32_t in_channels = 0;
    bool biases = true;      ///< zeros in front
    std::uint32_t taps = 1;  ///< sources are counted tap by tap
    std::vector<std::uint32_t> sources = {};
};

/// Those of an operator, in the order in which they are stored. None for operators that need none
/// or of whose none is known.
[[nodiscard]] std::vector<Selection> selections_of(const model::Model& plain, std::size_t op);

/// `steps` times `features` numbers change places.
[[nodiscard]] std::vector<Selection> exchange(std::uint32_t steps, std::uint32_t features);

}  // namespace reef::edgetpu
