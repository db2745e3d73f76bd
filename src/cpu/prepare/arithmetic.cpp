#include "cpu/prepare/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::cpu {

const ArithmeticForm* Arithmetic::find(model::Op op) const {
    const auto found = std::ranges::find(forms, op, &ArithmeticForm::op);
    return found == forms.end() ? nullptr : &*found;
}

std::unexpected<Error> Arithmetic::unknown(std::string_view what) const {
    return fail(Cause::unsupported, fmt::format("how {} computes {} is not known", machine, what),
                {}, "use TFLite's arithmetic");
}

}  // namespace reef::cpu
