// The registers of one task: fields by name, found at compile time, and the words that write them.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "reef/base/result.h"
#include "reef_spec/rk3588_isa.h"

namespace reef::rk3588 {

/// Index into spec::instructions.
using RegisterIndex = std::uint16_t;

inline constexpr std::size_t register_count = std::size(spec::instructions);

/// "CNA_CBUF_CON0.DATA_BANK" or "CNA_CBUF_CON0" as a template argument.
template <std::size_t size>
struct Name {
    char text[size];
    // NOLINTNEXTLINE(google-explicit-constructor): get<"..."> is the purpose
    consteval Name(const char (&from)[size]) {
        for (std::size_t i = 0; i < size; ++i) text[i] = from[i];
    }
    [[nodiscard]] constexpr std::string_view view() const { return {text, size - 1}; }
};

/// Where a register's value begins in its command word.
inline constexpr unsigned first_value_bit = 16;

/// Where a field stands in its register's value.
struct FieldPlace {
    RegisterIndex index;
    std::uint8_t field;  ///< index into the register's fields
    std::uint8_t shift;
    std::uint8_t width;
    bool is_signed;
    [[nodiscard]] constexpr std::uint32_t mask() const {
        return width == 32 ? ~0U : (1U << width) - 1;
    }
};

/// Does not compile for a name that no register has.
consteval RegisterIndex register_named(std::string_view name) {
    for (RegisterIndex i = 0; i < register_count; ++i)
        if (spec::instructions[i].name == name) return i;
    throw "no such register";
}
/// "REGISTER.FIELD".
consteval FieldPlace field_named(std::string_view name) {
    const auto dot = name.find('.');
    const RegisterIndex index = register_named(name.substr(0, dot));
    const auto& fields = spec::instructions[index].fields;
    for (std::size_t f = 0; f < fields.size(); ++f)
        if (fields[f].name == name.substr(dot + 1))
            return {index, static_cast<std::uint8_t>(f),
                    static_cast<std::uint8_t>(fields[f].position - first_value_bit),
                    fields[f].width, fields[f].kind == hw::FieldKind::signed_number};
    throw "no such field";
}

/// Values of registers, each of which has been written or not; unwritten ones are 0.
class RegisterSet {
  public:
    template <Name name>
    [[nodiscard]] std::uint32_t get() const {
        constexpr FieldPlace place = field_named(name.view());
        return values_[place.index] >> place.shift & place.mask();
    }
    /// Sign-extended for fields that have a sign.
    template <Name name>
    [[nodiscard]] std::int32_t get_signed() const {
        constexpr FieldPlace place = field_named(name.view());
        static_assert(place.is_signed, "the field has no sign: get()");
        constexpr int unused = 32 - place.width;
        return static_cast<std::int32_t>(get<name>() << unused) >> unused;
    }
    /// What the field cannot hold is kept as the set's refusal, which task_words() returns; a
    /// signed field takes negative values. The register counts as written.
    template <Name name>
    void set(std::int64_t value) {
        set(field_named_at<name>, value);
    }
    /// The register is written, with the fields that were set and 0 in the others.
    template <Name name>
    void touch() {
        written_.set(register_named(name.view()));
    }

    [[nodiscard]] std::uint32_t value(RegisterIndex index) const { return values_[index]; }
    [[nodiscard]] bool is_written(RegisterIndex index) const { return written_[index]; }
    void write(RegisterIndex index, std::uint32_t value) {
        values_[index] = value;
        written_.set(index);
    }
    /// The first value that a field could not hold.
    [[nodiscard]] const std::optional<Error>& refusal() const { return refusal_; }

  private:
    template <Name name>
    static constexpr FieldPlace field_named_at = field_named(name.view());
    void set(const FieldPlace& place, std::int64_t value);

    std::array<std::uint32_t, register_count> values_{};
    std::bitset<register_count> written_;
    std::optional<Error> refusal_;
};

/// The blocks that a task starts, as bits of OP_EN's value.
struct Blocks {
    static constexpr std::uint32_t cna = 1U << 0;
    static constexpr std::uint32_t core = 1U << 2;
    static constexpr std::uint32_t dpu = 1U << 3;
    static constexpr std::uint32_t dpu_rdma = 1U << 4;
    static constexpr std::uint32_t ppu = 1U << 5;
    static constexpr std::uint32_t ppu_rdma = 1U << 6;
    /// A convolution whose DPU has operands in memory.
    static constexpr std::uint32_t convolution = cna | core | dpu | dpu_rdma;
    /// The DPU on data from memory.
    static constexpr std::uint32_t flying = dpu | dpu_rdma;
    /// The PPU on data from memory.
    static constexpr std::uint32_t pooling = ppu | ppu_rdma;
};

/// The task that follows in a chain.
struct NextTask {
    std::uint32_t address = 0;  ///< 0: none. A multiple of 16
    std::uint32_t words = 0;    ///< of the next task, tail included
};

/// PC_DATA_AMOUNT of a task of so many words, tail included: pairs of words, less one.
[[nodiscard]] constexpr std::uint32_t amount_of(std::size_t words) {
    return static_cast<std::uint32_t>((words + 1) / 2) - 1;
}

/// The word that writes a register, for the register's own block.
[[nodiscard]] std::uint64_t register_word(RegisterIndex index, std::uint32_t value);

/// Values of a register that the order of words has more than once, one after the other.
struct RepeatedRegister {
    RegisterIndex index = 0;
    std::vector<std::uint32_t> values;
};

/// A task's words: the registers of `order` (repeated where it repeats them; unwritten ones as 0),
/// then the four words of the tail. Those of `repeated` have other values each time. Errors: the
/// set's refusal; a written register that `order` leaves out, by name; a next address that is no
/// multiple of 16. Precondition: `order` has a repeated register as often as it has values.
[[nodiscard]] Result<std::vector<std::uint64_t>> task_words(
    const RegisterSet& registers, std::span<const RegisterIndex> order, std::uint32_t blocks,
    const NextTask& next = {}, std::span<const RepeatedRegister> repeated = {});
/// The same with all written registers in the order of their offsets.
[[nodiscard]] Result<std::vector<std::uint64_t>> task_words(const RegisterSet& registers,
                                                            std::uint32_t blocks,
                                                            const NextTask& next = {});

}  // namespace reef::rk3588
