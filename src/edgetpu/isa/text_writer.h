// A text buffer that is checked for room once per line.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace reef::edgetpu {

/// No line is longer: 200 fields of a name and a value, or of all names of a set.
inline constexpr std::size_t longest_line = std::size_t{32} << 10;

class TextWriter {
  public:
    explicit TextWriter(std::string& text) : text_(text), used_(text.size()) {}
    TextWriter(const TextWriter&) = delete;
    TextWriter& operator=(const TextWriter&) = delete;
    ~TextWriter() { text_.resize(used_); }

    /// Makes room for one more line; to be called before its first character.
    void begin_line() {
        if (text_.size() - used_ < longest_line) text_.resize(text_.size() * 2 + longest_line);
        at_ = text_.data() + used_;
    }
    void end_line() { used_ = static_cast<std::size_t>(at_ - text_.data()); }

    void put(char c) { *at_++ = c; }
    void put(std::string_view text) {
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }
    void decimal(std::int64_t value) { at_ = std::to_chars(at_, at_ + 24, value).ptr; }
    void hex(std::uint64_t value) {
        put("0x");
        at_ = std::to_chars(at_, at_ + 24, value, 16).ptr;
    }
    /// `digits` hexadecimal digits, zeros in front.
    void hex_digits(std::uint64_t value, int digits) {
        for (int d = digits - 1; d >= 0; --d) put("0123456789abcdef"[value >> (4 * d) & 15]);
    }
    /// The shortest decimal number that reads back as the same float.
    void decimal(float value) { at_ = std::to_chars(at_, at_ + 64, value).ptr; }

  private:
    std::string& text_;
    std::size_t used_;
    char* at_ = nullptr;
};

}  // namespace reef::edgetpu
