// The functions that the Edge TPU evaluates as tables of polynomials.
//
// The vendor's compiler loads one table before an operator that needs a function. The tables are
// the same in every compiled model that was looked at, so they belong to the chip's arithmetic
// although no plain model holds them; spec/edgetpu/machine.xml has them. Polynomials are evaluated
// by Horner's rule in float32, an assumption: the order of operations shows in no compiled file.
#pragma once

#include <cstdint>

#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::numerics {

/// Eight polynomials of the fourth degree. Segment s holds from breaks[s - 1] on.
struct PolynomialTable : spec::Polynomials {
    [[nodiscard]] float operator()(float x) const;
    /// For a table of 1 / sqrt on [1, 4): scales x by a power of 4 into that range, and the result
    /// by that of 2. Precondition: x is positive.
    [[nodiscard]] float with_range(float x) const;
};

/// 256 / (1 + exp(-x)). Input limited to +-sigmoid_limit.
extern const PolynomialTable sigmoid_256;
inline constexpr float sigmoid_limit = spec::sigmoid_256.most;

/// 255 / (1 + exp(-x)), with the same limits: the gates of a recurrent network.
extern const PolynomialTable sigmoid_255;

/// 127.5 tanh(x) and 16383.5 tanh(x) for x >= 0. Input limited to tanh_limit.
extern const PolynomialTable tanh_127;
extern const PolynomialTable tanh_16383;
inline constexpr float tanh_limit = spec::tanh_127_5.most;

/// 65536 exp(x) for x <= 0. Input limited to [exponential_limit, 0].
extern const PolynomialTable exponential_65536;
inline constexpr float exponential_limit = spec::exponential_65536.least;

/// 65536 / sqrt(2 x) on [1, 4).
extern const PolynomialTable inverse_root_65536;

/// A value as the chip stores it in 16 bits: rounded half to even, saturated.
[[nodiscard]] std::uint16_t to_16_bits(float value);

}  // namespace reef::edgetpu::numerics
