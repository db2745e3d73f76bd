// Networks of random operators, shapes and numbers, of what the compiler should take.
#pragma once

#include "reef/model/graph.h"

namespace reef::test {

/// A few operators with fan-out; every tensor that nothing reads is an output.
[[nodiscard]] model::Model random_network(unsigned seed);
/// Of up to 9 x 9 pixels and many channels, as networks end.
[[nodiscard]] model::Model random_network_of_small_images(unsigned seed);
/// Of 90 x 90 pixels and more: whole tensors do not fit beside one another.
[[nodiscard]] model::Model random_network_of_large_images(unsigned seed);
/// That end in a few numbers made of all of an image, or of its SOFTMAX.
[[nodiscard]] model::Model random_deciding_network(unsigned seed);
/// One LSTM or two, of few steps.
[[nodiscard]] model::Model random_recurrent_network(unsigned seed);
/// One LSTM of these sizes and random numbers.
[[nodiscard]] model::Model recurrent_network(unsigned seed, std::int32_t steps, std::int32_t units);

}  // namespace reef::test
