// How often a program asks for memory. Programs are linked to it alone, because it takes malloc's
// place: operator new ends there, too.
#pragma once

#include <cstddef>

namespace reef::test {

/// Whether this build counts: not where a sanitizer has its own malloc, or the C library is another
/// one than glibc.
[[nodiscard]] bool allocations_are_counted();

/// Of all threads, since the program began; always 0 where they are not counted.
[[nodiscard]] std::size_t allocations();

/// What this thread does as long as one lives is not counted: somebody else's work.
class NotCounted {
  public:
    NotCounted();
    NotCounted(const NotCounted&) = delete;
    NotCounted& operator=(const NotCounted&) = delete;
    ~NotCounted();
};

}  // namespace reef::test
