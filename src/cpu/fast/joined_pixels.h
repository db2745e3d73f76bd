// A convolution of few output channels as one of more: pixels of a row that follow each other
// become one with the channels of all of them, and its window theirs.
//
// A vector has a lane for each output channel, and to round a sum takes longer than few products
// do: with one channel in eight or sixteen lanes most of that is lost. Where windows overlap, the
// joined one has fewer taps than they have together. The weights of each pixel stand at the taps of
// its own window, and the weights' zero point at the others, so that sums are what they were.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/fast/packed_matrix.h"
#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// As many pixels as take the least time, as long as the weights stay small; 1 where none can be
/// joined. `group` and `widest` are those of lay_out_matrix().
[[nodiscard]] std::int64_t pixels_to_join(const Convolution& c, GroupOf group, std::size_t widest);

/// `pixels` of them joined, which pixels_to_join() gave; with the weights that `c` has, in whose
/// place joined_weights() are to be packed.
[[nodiscard]] Convolution joined(Convolution c, std::int64_t pixels);

/// The weights of joined(c, pixels), out of those of `c`.
[[nodiscard]] SharedBytes joined_weights(const Convolution& c, std::int64_t pixels);

}  // namespace reef::cpu
