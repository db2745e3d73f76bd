// A compiled model and its plain one side by side.
#pragma once

#include <cstddef>
#include <filesystem>

#include "reef/base/bytes.h"
#include "reef/model/graph.h"
#include "reef/runtime/session.h"

namespace reef::test {

/// The test fails, and goes on with nothing, when it cannot be read.
[[nodiscard]] model::Model load_model(const std::filesystem::path& path);

/// A plain model on the CPU, in the chip's arithmetic where the compiled one has operators on the
/// chip, and the compiled one on a simulated chip; both keep all tensors.
struct ComparedSessions {
    runtime::Session cpu;
    runtime::Session chip;
};
[[nodiscard]] Result<ComparedSessions> open_compared(const model::Model& plain,
                                                     const model::Model& compiled);

/// A picture in which neighbours are alike, with noise.
void draw_picture(MutableBytes bytes, unsigned seed);

/// Draws the same pictures into all inputs of both, which must have the same ones; indices are 0.
void draw_inputs(runtime::Session& one, runtime::Session& other, unsigned seed);

/// Every tensor that the compiled operators of `chip` give has the bytes of the tensor of that name
/// in `cpu`; both keep all tensors. Gives how many different values the richest of them has.
std::size_t expect_equal_compiled_tensors(const runtime::Session& chip,
                                          const runtime::Session& cpu);

}  // namespace reef::test
