// A compiled model and its plain one side by side.
#pragma once

#include <cstddef>

#include "reef/base/bytes.h"
#include "reef/runtime/session.h"

namespace reef::test {

/// A picture in which neighbours are alike, with noise.
void draw_picture(MutableBytes bytes, unsigned seed);

/// Draws the same pictures into all inputs of both, which must have the same ones.
void draw_inputs(runtime::Session& one, runtime::Session& other, unsigned seed);

/// Every tensor that the compiled operators of `chip` give has the bytes of the tensor of that name
/// in `cpu`; both keep all tensors. Gives how many different values the richest of them has.
std::size_t expect_equal_compiled_tensors(const runtime::Session& chip,
                                          const runtime::Session& cpu);

}  // namespace reef::test
