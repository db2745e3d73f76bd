// Which runtimes of the vendor's may be given a package.
//
// A runtime refuses a package that asks for a newer one, and is told nothing else. Its versions are
// the vendor's count of changes that compiler and runtime made together: signed bytes on the host
// since 12. What its own compiler wrote for a version is all that is known of the rest.
#pragma once

#include <cstdint>
#include <string>

#include "reef/base/result.h"
#include "reef/chip/compiler.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu::lowering {

/// Below it the vendor's driver warns of every package; beyond the other there is none.
constexpr std::int32_t oldest_runtime = 10, newest_runtime = 14;

/// The setting "runtime_version" of `options`, or the newest. Errors: bad_argument.
[[nodiscard]] Result<std::int32_t> runtime_version_of(const chip::CompileOptions& options);

struct RuntimeNeed {
    std::int32_t version = oldest_runtime;
    std::string what{};  ///< in the package needs it
};
[[nodiscard]] RuntimeNeed needed_runtime(const Package& package);

/// Errors: unsupported, where the package needs a newer one than it says.
[[nodiscard]] Status check_runtime(const Package& package);

}  // namespace reef::edgetpu::lowering
