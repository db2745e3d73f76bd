// A sum behind an operator that only the CPU has.
#pragma once

#include <cstdint>
#include <vector>

#include "reef/model/builder.h"

namespace reef::test {

inline model::Model island_network() {
    model::Builder builder("island");
    const std::vector<std::int32_t> shape{1, 8, 8, 8};
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto in = builder.input("in", ElementType::uint8, shape, numbers);
    const auto a = builder.tensor("a", ElementType::uint8, shape, numbers),
               b = builder.tensor("b", ElementType::uint8, shape, numbers),
               c = builder.tensor("c", ElementType::uint8, shape, numbers);
    builder.add(model::Op::mul, {in, in}, {a}, model::MulOptions{});
    builder.add(model::Op::relu_n1_to_1, {a}, {b});
    builder.add(model::Op::add, {b, b}, {c}, model::AddOptions{});
    builder.output(c);
    return builder.finish().value();
}

}  // namespace reef::test
