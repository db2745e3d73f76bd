// Memory for vectors.
#pragma once

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace reef::cpu {

/// Not initialised. Throws std::bad_alloc where the system does not have it, as the std::vectors
/// beside it do: Executor::create() makes an error of both.
template <typename T>
[[nodiscard]] hwy::AlignedFreeUniquePtr<T[]> aligned_array(std::size_t count) {
    // The allocator asserts that there is something to allocate.
    auto array = hwy::AllocateAligned<T>(std::max<std::size_t>(count, 1));
    if (array == nullptr) throw std::bad_alloc();
    return array;
}

}  // namespace reef::cpu
