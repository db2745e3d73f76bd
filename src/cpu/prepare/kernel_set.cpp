#include "reef/cpu/kernel_set.h"

#include "base/simd.h"

namespace reef::cpu {

std::string_view simd_target() {
    return simd_target_name();
}

}  // namespace reef::cpu
