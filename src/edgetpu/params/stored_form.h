// Convolutions that are stored with fewer taps or more channels than the plain model has.
//
// All was seen in the detector ssd_mobilenet_v1 (segment 1), whose blob has exactly the size, and
// whose program the loops, that follow:
// - Taps that lie in the padding for every window are left out: of a 3x3 kernel on a 2x2 tensor,
//   five. Seen once; the rule for other sizes is assumed.
// - Where a RESHAPE makes rows of C channels of the result, each C output channels are padded to a
//   multiple of four: rows of 91 scores to 92.
// - Kernels of several taps on more than four input channels are stored, and computed, by blocks of
//   input channels, each with all taps: of a 3x3 kernel four channels, of those four taps eight.
//   Other models' programs have them tap by tap, so the program decides.
#pragma once

#include <optional>

#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {

/// Of a CONV_2D; of others: as it is.
[[nodiscard]] StoredForm stored_form(const model::Subgraph& graph, const model::Operator& op);

/// Whether a program may have the weights by blocks of input channels or tap by tap.
[[nodiscard]] bool may_be_in_blocks(const StoredForm& form);
/// The part in the blocks that programs with such layers have; nothing when there are none.
[[nodiscard]] Result<std::optional<ParameterPart>> in_blocks(const ParameterPart& part);

/// Of a form that is not as it is: a layer of one tap, whose input channels are those of all taps
/// in the order in which they are stored.
[[nodiscard]] LayerShape stored_shape(const StoredForm& form);

/// encode_layer() of a part from plain values, one per plain channel. Channels that are padding
/// have weights and biases of zero and their layer's first multiplier.
[[nodiscard]] Status encode_stored(const ParameterPart& part, const LayerValues& plain,
                                   MutableBytes blob);
/// decode_layer() into plain values. Taps that are not stored keep what `plain` has.
[[nodiscard]] Status decode_stored(const ParameterPart& part, Bytes blob,
                                   const LayerStorage& plain);

}  // namespace reef::edgetpu
