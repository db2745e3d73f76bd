#include "reef/cpu/support.h"

#include <fmt/format.h>

#include "cpu/prepare/arithmetic.h"
#include "cpu/prepare/kernel.h"

namespace reef::cpu {
namespace {

std::string text_of(const FloatError& error) {
    switch (error.unit) {
        case FloatError::Unit::none:
            return {};
        case FloatError::Unit::exact:
            return "none";
        case FloatError::Unit::rounded:
            return "one rounding";
        case FloatError::Unit::ulp:
            return fmt::format("{} ulp", error.most);
        case FloatError::Unit::terms:
            return error.most == 1 ? "n 2^-24 S" : fmt::format("{} n 2^-24 S", error.most);
    }
    return {};
}

}  // namespace

std::vector<SupportedOperator> supported_operators(const Arithmetic* arithmetic) {
    std::vector<SupportedOperator> builtin;
    std::vector<SupportedOperator> custom;
    for (const KernelEntry& entry : kernel_registry()) {
        if (entry.op == model::Op::custom) {
            custom.push_back({std::string(entry.custom),
                              true,
                              std::string(entry.supports),
                              {},
                              text_of(entry.float_error)});
        } else {
            const ArithmeticForm* form =
                arithmetic == nullptr ? nullptr : arithmetic->find(entry.op);
            builtin.push_back({model::builtin_name(entry.op), false, std::string(entry.supports),
                               form == nullptr ? std::string() : std::string(form->supports),
                               text_of(entry.float_error)});
        }
    }
    builtin.insert(builtin.end(), custom.begin(), custom.end());
    return builtin;
}

}  // namespace reef::cpu
