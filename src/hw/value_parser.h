// The values of assembly text.
#pragma once

#include <cstdint>
#include <string_view>

#include "reef/base/result.h"
#include "reef/hw/field.h"

namespace reef::hw {

/// Reads a value from its front to its end.
class ValueScanner {
  public:
    explicit ValueScanner(std::string_view text) : text_(text) {}

    /// True, and past it, when `token` comes next.
    bool take(std::string_view token);
    /// What comes before the first of these characters, or all that is left.
    [[nodiscard]] std::string_view take_until(std::string_view ends);
    [[nodiscard]] Status expect(std::string_view token);
    [[nodiscard]] Status finish() const;

    /// Decimal, or hexadecimal after 0x.
    [[nodiscard]] Result<std::uint64_t> number();
    /// Decimal only, with an optional "-" in front: for numbers that an "x" may follow.
    [[nodiscard]] Result<std::int64_t> signed_decimal();
    /// As number(), with an optional "-" in front.
    [[nodiscard]] Result<std::int64_t> signed_number();
    /// A count of at least 1, decimal, less one: what limit fields hold.
    [[nodiscard]] Result<std::uint64_t> count();
    /// A value of the enumeration by its name.
    [[nodiscard]] Result<std::int64_t> name(const Enumeration& enumeration);
    /// Nothing but one number.
    [[nodiscard]] Status only_number();
    [[nodiscard]] bool at_digit() const {
        return !text_.empty() && text_.front() >= '0' && text_.front() <= '9';
    }

  private:
    [[nodiscard]] Result<std::uint64_t> digits(int base);
    [[nodiscard]] std::unexpected<Error> expected(std::string_view what) const;

    std::string_view text_;
};

/// The value that set_field() takes, from text in any of the forms that fit the field's kind.
[[nodiscard]] Result<std::int64_t> parse_value(const FieldInfo& field, std::string_view text);

}  // namespace reef::hw
