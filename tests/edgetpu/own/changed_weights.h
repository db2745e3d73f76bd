// Weights of a compiled model replaced, held against the plain model with the same ones.
#pragma once

#include <cstddef>
#include <string>

#include "reef/model/graph.h"

namespace reef::test {

struct ChangedWeights {
    std::size_t bytes = 0;    ///< of the parameters, all of which are explained
    std::size_t changed = 0;  ///< tensors that were replaced, one after the other or all at once
};

/// Every byte of the compiled model's parameters is the plain model's; what is got and set again
/// changes nothing; each tensor that is got (or `most` drawn ones) set to other numbers, and then
/// all of them, give the bytes of the plain model with these numbers in the chip's arithmetic, and
/// are got again with it.
ChangedWeights expect_weights_are_replaced(const model::Model& plain, const model::Model& compiled,
                                           unsigned seed, std::size_t most);

/// On a drawn picture, the program gives the bytes of the plain model in the chip's arithmetic.
void expect_computes(const model::Model& plain, const model::Model& compiled, unsigned seed);

}  // namespace reef::test
