// Networks of random operators, shapes and numbers, of what the compiler should take.
#pragma once

#include "reef/model/graph.h"

namespace reef::test {

/// A few operators with fan-out; every tensor that nothing reads is an output.
[[nodiscard]] model::Model random_network(unsigned seed);

}  // namespace reef::test
