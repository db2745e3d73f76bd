// The registers of single tasks.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/plan.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588::lowering {

/// Words of a convolution, of a task of the DPU and of one of the PPU, without their tails.
inline constexpr std::size_t conv_register_count = 126;
inline constexpr std::size_t flying_register_count = 69;
inline constexpr std::size_t pool_register_count = 26;
/// More of them where a task loads tables: each is an access and its entries in place of one of
/// both.
inline constexpr std::size_t table_register_count = 2 * (1 + spec::lut_entries) - 2;

/// A task, and which of its registers hold offsets.
struct TaskRegisters {
    TaskRegisters(std::span<const RegisterIndex> words, std::uint32_t started)
        : order(words), blocks(started) {}

    std::span<const RegisterIndex> order;  ///< of its words
    std::uint32_t blocks = 0;              ///< that it starts
    RegisterSet registers;
    std::vector<RepeatedRegister> repeated{};
    std::vector<std::pair<RegisterIndex, Area>> addresses;

    /// Some registers count in units of so many bytes.
    template <Name field, std::uint64_t unit = 1>
    void address(Area area, std::uint64_t offset) {
        registers.set<field>(static_cast<std::int64_t>(offset / unit));
        addresses.emplace_back(field_named(field.view()).index, area);
    }
};

/// A tile of a piece.
[[nodiscard]] TaskRegisters convolution_task(const Plan& plan, const Step& step,
                                             const ConvolutionStep& conv, const Piece& piece,
                                             std::size_t number);
/// The surfaces of a core.
[[nodiscard]] TaskRegisters element_task(const Plan& plan, const Step& step,
                                         const ElementStep& element, std::int32_t core);
[[nodiscard]] TaskRegisters function_task(const Plan& plan, const Step& step,
                                          const FunctionStep& function, std::int32_t core);
[[nodiscard]] TaskRegisters pool_task(const Plan& plan, const Step& step, const PoolStep& pool,
                                      std::int32_t core);

}  // namespace reef::rk3588::lowering
