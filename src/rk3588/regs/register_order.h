// The order in which a task's words write registers, made at compile time from runs of them.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "rk3588/regs/register_set.h"

namespace reef::rk3588 {

/// Registers in the order of their offsets.
struct RegisterRun {
    RegisterIndex first, last;
};
/// Does not compile for a name that no register has.
consteval RegisterRun registers(std::string_view first, std::string_view last) {
    return {register_named(first), register_named(last)};
}
consteval RegisterRun registers(std::string_view alone) {
    return registers(alone, alone);
}

/// All registers of the runs. Does not compile when they are not `count`.
template <std::size_t count>
consteval std::array<RegisterIndex, count> in_order(std::span<const RegisterRun> runs) {
    std::array<RegisterIndex, count> order{};
    std::size_t n = 0;
    for (const RegisterRun& run : runs)
        for (RegisterIndex i = run.first; i <= run.last; ++i) order[n++] = i;
    if (n != count) throw "the order has another number of words";
    return order;
}

}  // namespace reef::rk3588
