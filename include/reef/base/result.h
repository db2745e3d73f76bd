// Result and Error: how every boundary of Reef reports bad input.
//
// Exceptions do not cross the API. A function that can meet bad input returns Result<T>; the error
// says what went wrong, where in the input, and what to do next. Assertions are for our own bugs.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace reef {

/// Why an operation failed, in terms of what the caller can do about it.
enum class Cause : std::uint8_t {
    bad_argument,    ///< the request itself is wrong (shape, name, count): change the call
    bad_input,       ///< a file or stream is malformed: get another file
    unsupported,     ///< well formed, but Reef does not model it: refused by name
    not_found,       ///< a file, tensor, operator or device with that name does not exist
    io_failed,       ///< the operating system refused: see what() for its words
    device_missing,  ///< no such device is connected
    device_denied,   ///< the device, or the bus that it would be on, may not be opened
    device_failed,   ///< the device does not answer, or not as it should
    cancelled,       ///< the caller ended it: nothing is wrong
    timed_out,       ///< over the caller's deadline: allow more time, or see what holds it up
};

[[nodiscard]] std::string_view to_string(Cause cause);

/// One failure. `place` grows outwards while the error travels up: each caller that knows more
/// about the location puts its own place in front with in().
struct Error {
    Cause cause = Cause::bad_input;
    std::string what;   ///< a clause, no full stop; lines of a list under it begin with two blanks
    std::string place;  ///< e.g. "cat.tflite: subgraph 0: operator 3 CONV_2D"; may be empty
    std::string hint;   ///< what to do next; may be empty

    /// The same error with an outer place in front of its own.
    [[nodiscard]] Error in(std::string_view outer) &&;
    [[nodiscard]] Error with_hint(std::string text) &&;

    /// "place: what (hint)", on one line but for lists in `what`.
    [[nodiscard]] std::string message() const;

    friend bool operator==(const Error&, const Error&) = default;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(Cause cause, std::string what,
                                                 std::string place = {}, std::string hint = {}) {
    return std::unexpected(Error{cause, std::move(what), std::move(place), std::move(hint)});
}

/// The result with `place` in front of the error's place, if it is an error.
template <typename T>
[[nodiscard]] Result<T> in_place(Result<T>&& result, std::string_view place) {
    if (result) return std::move(result);
    return std::unexpected(std::move(result.error()).in(place));
}

}  // namespace reef

// REEF_TRY(expr): the value of a Result, or return its error from the enclosing function. It is a
// statement expression (a GNU extension that g++ and clang share), so that it can stand inside a
// declaration: `auto model = REEF_TRY(read(file));`. Calls may nest.
#define REEF_TRY(...) REEF_TRY_NAMED(REEF_CONCAT(reef_try_, __COUNTER__), __VA_ARGS__)

// REEF_CHECK(expr): the same for a Status, as a statement.
#define REEF_CHECK(...) REEF_CHECK_NAMED(REEF_CONCAT(reef_check_, __COUNTER__), __VA_ARGS__)

#define REEF_CONCAT_TOKENS(a, b) a##b
#define REEF_CONCAT(a, b) REEF_CONCAT_TOKENS(a, b)
#define REEF_TRY_NAMED(name, ...)                                   \
    __extension__({                                                 \
        auto name = (__VA_ARGS__);                                  \
        if (!name) return std::unexpected(std::move(name).error()); \
        std::move(name).value();                                    \
    })
#define REEF_CHECK_NAMED(name, ...)                                                            \
    do {                                                                                       \
        if (auto name = (__VA_ARGS__); !name) return std::unexpected(std::move(name).error()); \
    } while (false)
