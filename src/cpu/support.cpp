#include "reef/cpu/support.h"

#include "cpu/arithmetic.h"
#include "cpu/kernel.h"

namespace reef::cpu {

std::vector<SupportedOperator> supported_operators(const Arithmetic* arithmetic) {
    std::vector<SupportedOperator> builtin;
    std::vector<SupportedOperator> custom;
    for (const KernelEntry& entry : kernel_registry()) {
        if (entry.op == model::Op::custom) {
            custom.push_back({std::string(entry.custom), true, std::string(entry.supports), {}});
        } else {
            const ArithmeticForm* form =
                arithmetic == nullptr ? nullptr : arithmetic->find(entry.op);
            builtin.push_back({model::builtin_name(entry.op), false, std::string(entry.supports),
                               form == nullptr ? std::string() : std::string(form->supports)});
        }
    }
    builtin.insert(builtin.end(), custom.begin(), custom.end());
    return builtin;
}

}  // namespace reef::cpu
