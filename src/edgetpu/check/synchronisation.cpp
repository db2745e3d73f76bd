#include "synchronisation.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace reef::edgetpu {

std::vector<ProgramFault> check_synchronisation(std::span<const Bytes> chunks) {
    auto order = check::issue_order(chunks);
    auto faults = std::move(order.faults);
    if (!faults.empty()) return faults;
    for (const auto check : {check::check_credits, check::check_beginnings,
                             check::check_scalar_credits, check::check_traffic, check::check_host})
        std::ranges::move(check(order), std::back_inserter(faults));
    std::ranges::stable_sort(faults, {},
                             [](const ProgramFault& f) { return std::tuple(f.chunk, f.word); });
    return faults;
}

std::optional<ProgramFault> check_halts(std::span<const Bytes> chunks) {
    return check::first_fault_of_order(chunks);
}

}  // namespace reef::edgetpu
