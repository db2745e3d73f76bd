#include <cstdint>

// libhwy, as Debian 12 has it (1.0.3), measures the resolution of its timer while it is loaded: 7
// ms before main, more than most verbs take. Nothing here reads that timer. The dynamic linker
// finds the definition of the executable first, so the measurement is left out.
namespace hwy::platform {
[[gnu::visibility("default")]] std::uint64_t TimerResolution();
std::uint64_t TimerResolution() {
    return 1;
}
}  // namespace hwy::platform
