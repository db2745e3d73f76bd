// What chip::CompileOptions::settings may hold for this compiler.
#pragma once

#include <cstdint>
#include <string_view>

#include "edgetpu/compiler/plan.h"
#include "reef/base/result.h"
#include "reef/chip/compiler.h"

namespace reef::edgetpu::lowering {

namespace setting {
constexpr std::string_view without = "without", spill = "spill",
                           runtime_version = "runtime_version";
}  // namespace setting

/// Errors: bad_argument for a setting that there is not.
[[nodiscard]] Status check_settings(const chip::CompileOptions& options);

/// Of the improvements that are no passes of their own there is nothing to print. Errors:
/// bad_argument for their names.
[[nodiscard]] Status check_printed(const chip::CompileOptions& options);

/// All but those that `without`, the schedule or known forms leave out. Errors: bad_argument for a
/// name of none, and where the schedule has none.
[[nodiscard]] Result<Improvements> improvements_of(const chip::CompileOptions& options);

/// Which tensors lie on the host while no step touches them.
enum class Spilling : std::uint8_t {
    never,
    needed,  ///< where neither the whole nor bands fit
    faster,  ///< ... and in place of bands, where the estimate is less
    always,  ///< all that can
};
/// Errors: bad_argument for another word, and where the schedule is not of our making.
[[nodiscard]] Result<Spilling> spilling_of(const chip::CompileOptions& options);

}  // namespace reef::edgetpu::lowering
