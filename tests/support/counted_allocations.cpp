#include "support/counted_allocations.h"

#include <atomic>
#include <cstdlib>

namespace reef::test {
namespace {

std::atomic<std::size_t> all = 0;
thread_local unsigned not_counted = 0;

[[maybe_unused]] void count() {
    if (not_counted == 0) ++all;
}

}  // namespace

std::size_t allocations() {
    return all;
}

NotCounted::NotCounted() {
    ++not_counted;
}
NotCounted::~NotCounted() {
    --not_counted;
}

}  // namespace reef::test

#if defined(__GLIBC__) && !defined(REEF_SANITIZED)

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
    reef::test::count();
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
    reef::test::count();
    return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
    reef::test::count();
    return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    reef::test::count();
    return __libc_memalign(alignment, bytes);
}
}

bool reef::test::allocations_are_counted() {
    return true;
}
#else
bool reef::test::allocations_are_counted() {
    return false;
}
#endif
