// Many runs of as many bytes each, moved to other distances from one another.
#pragma once

#include <cstddef>

namespace reef::cpu {

/// From the beginning of one run to that of the next.
struct RunSteps {
    std::ptrdiff_t in = 0;
    std::ptrdiff_t out = 0;
};

/// `count` runs of `run` bytes. What they are copied to overlaps nothing that is read.
void copy_runs(const std::byte* in, std::byte* out, RunSteps steps, std::size_t run,
               std::size_t count);

}  // namespace reef::cpu
