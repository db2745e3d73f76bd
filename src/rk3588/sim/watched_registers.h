// A task's registers as its engines read them: what was set and nobody read stops the run.
#pragma once

#include <array>
#include <cstdint>

#include "rk3588/regs/register_set.h"

namespace reef::rk3588::sim {

/// Registers of one task. An engine reads every field that it models, and says of the others why it
/// does not need them; unread_fields() then finds what is set and not modelled.
class WatchedRegisters {
  public:
    explicit WatchedRegisters(const RegisterSet& registers) : registers_(&registers) {}

    template <Name name>
    [[nodiscard]] std::uint32_t get() {
        see<name>();
        return registers_->get<name>();
    }
    template <Name name>
    [[nodiscard]] std::int32_t get_signed() {
        see<name>();
        return registers_->get_signed<name>();
    }
    template <Name name>
    [[nodiscard]] bool flag() {
        return get<name>() != 0;
    }
    /// These fields decide when things happen, not what comes out.
    template <Name... names>
    void only_time() {
        (see<names>(), ...);
    }
    /// All fields of these registers are without effect as the others are set.
    template <Name... registers>
    void without_effect() {
        ((seen_[register_named(registers.view())] = ~0U), ...);
    }
    template <Name... fields>
    void fields_without_effect() {
        (see<fields>(), ...);
    }

    /// Errors: a field of a block in `blocks` that is set and was not read, by name and value; a
    /// field whose value is another than the only one that is modelled. Cause unsupported.
    [[nodiscard]] Status all_seen(std::uint32_t blocks) const;

  private:
    template <Name name>
    void see() {
        constexpr FieldPlace place = field_named(name.view());
        seen_[place.index] |= place.mask() << place.shift;
    }

    const RegisterSet* registers_;
    std::array<std::uint32_t, register_count> seen_{};
};

/// The block of OP_EN's bits that a register belongs to; 0 for those of the program controller.
[[nodiscard]] std::uint32_t block_of(RegisterIndex index);

}  // namespace reef::rk3588::sim
