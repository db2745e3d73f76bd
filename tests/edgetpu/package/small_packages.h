// Packages made by the tests themselves.
#pragma once

#include "reef/edgetpu/package.h"
#include "reef/model/graph.h"

namespace reef::edgetpu::test {

/// No field at its default, and every kind of hint and layer.
[[nodiscard]] Package rich_package();
/// Two chips, the second with rich_package()'s executables.
[[nodiscard]] Package two_chip_package();

/// A custom operator with these options: the package and other entries of every kind that the
/// vendor's compiler writes.
[[nodiscard]] model::Operator compiled_operator(const Package& package);

}  // namespace reef::edgetpu::test
