#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reef/rk3588/command_words.h"

namespace reef::rk3588 {
namespace {

std::unexpected<Error> wrong(std::string what, std::string_view token) {
    return fail(Cause::bad_input, std::move(what), fmt::format("'{}'", token.substr(0, 60)));
}

/// The next token, which is taken off the line; empty at its end.
std::string_view next_token(std::string_view& line) {
    constexpr std::string_view blanks = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const auto token = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(token.size());
    return token;
}

Status end_of(std::string_view line) {
    if (const auto rest = next_token(line); !rest.empty())
        return wrong("nothing can follow here", rest);
    return {};
}

/// Decimal with an optional "-", or hexadecimal after 0x.
Result<std::int64_t> number(std::string_view text) {
    const bool hex = text.starts_with("0x");
    const auto digits = hex ? text.substr(2) : text;
    std::int64_t value = 0;
    const auto* end = digits.data() + digits.size();
    const auto [stop, code] = std::from_chars(digits.data(), end, value, hex ? 16 : 10);
    if (digits.empty() || code != std::errc{} || stop != end || (hex && value < 0))
        return wrong("not a number", text);
    return value;
}

Result<std::int64_t> value_of(const hw::FieldInfo& field, std::string_view text) {
    if (field.kind == hw::FieldKind::enumeration)
        for (const auto& value : field.enumeration->values)
            if (value.name == text) return value.value;
    return number(text);
}

Result<std::vector<std::byte>> hex_bytes(std::string_view digits) {
    if (digits.empty() || digits.size() % 2 != 0)
        return wrong("two hexadecimal digits a byte are expected", digits);
    std::vector<std::byte> out(digits.size() / 2);
    for (std::size_t i = 0; i < out.size(); ++i) {
        unsigned value = 0;
        const auto* begin = digits.data() + 2 * i;
        const auto [stop, code] = std::from_chars(begin, begin + 2, value, 16);
        if (code != std::errc{} || stop != begin + 2)
            return wrong("not a hexadecimal number", digits);
        out[i] = static_cast<std::byte>(value);
    }
    return out;
}

class Assembler {
  public:
    Result<std::vector<AssembledStream>> run(std::string_view text) {
        for (std::size_t number = 1; !text.empty(); ++number) {
            auto line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(text.size(), line.size() + 1));
            line = line.substr(0, line.find(';'));
            REEF_CHECK(in_place(assemble_line(line), fmt::format("line {}", number)));
        }
        return std::move(streams_);
    }

  private:
    Status assemble_line(std::string_view line) {
        auto token = next_token(line);
        if (token.ends_with(':')) {
            if (const auto at = number(token.substr(0, token.size() - 1)); !at)
                return std::unexpected(at.error());
            token = next_token(line);
        }
        if (token.empty()) return {};
        if (token == ".stream") return begin_stream(line);
        if (closed_) return wrong("nothing can follow .bytes in its stream", token);
        if (token == ".word") return add_word(line);
        if (token == ".bytes") return add_bytes(line);
        const auto* info = command_words().find(token);
        if (!info) return wrong("unknown register", token);
        return add_register(*info, line);
    }

    Status add_register(const hw::InstructionInfo& info, std::string_view line) {
        hw::InstructionBuilder builder(info);
        std::uint64_t seen = 0;
        if (const auto* target = info.find("target"); target != nullptr && target->only >= 0)
            REEF_CHECK(builder.set("target", target->only));
        for (auto token = next_token(line); !token.empty(); token = next_token(line)) {
            const auto equals = token.find('=');
            if (equals == std::string_view::npos)
                return in_place(Status(wrong("a field is written NAME=VALUE", token)), info.name);
            const auto* field = info.find(token.substr(0, equals));
            if (!field) return in_place(Status(wrong("no such field", token)), info.name);
            const auto bit = std::uint64_t{1} << (field - info.fields.data());
            if (seen & bit)
                return in_place(Status(wrong("the field is given twice", token)), info.name);
            seen |= bit;
            const auto value =
                REEF_TRY(in_place(value_of(*field, token.substr(equals + 1)), info.name));
            REEF_CHECK(builder.set(field->name, value));
        }
        append(builder.bytes());
        return {};
    }

    Status begin_stream(std::string_view line) {
        const auto name = next_token(line);
        if (name.empty()) return wrong("a name must follow", ".stream");
        streams_.push_back({std::string(name), {}});
        closed_ = false;
        return end_of(line);
    }

    Status add_word(std::string_view line) {
        const auto token = next_token(line);
        if (!token.starts_with("0x") || token.size() < 3 || token.size() > 2 + 2 * word_bytes)
            return wrong("a word is 0x and 1 to 16 hexadecimal digits", token);
        std::string digits(2 + 2 * word_bytes - token.size(), '0');
        digits += token.substr(2);
        auto bytes = REEF_TRY(hex_bytes(digits));
        std::ranges::reverse(bytes);
        append(bytes);
        return end_of(line);
    }

    Status add_bytes(std::string_view line) {
        const auto bytes = REEF_TRY(hex_bytes(next_token(line)));
        if (bytes.size() >= word_bytes)
            return fail(Cause::bad_input,
                        fmt::format(".bytes takes 1 to {} bytes", word_bytes - 1));
        append(bytes);
        closed_ = true;
        return end_of(line);
    }

    void append(Bytes bytes) {
        if (streams_.empty()) streams_.emplace_back();
        auto& stream = streams_.back().bytes;
        stream.insert(stream.end(), bytes.begin(), bytes.end());
    }

    std::vector<AssembledStream> streams_;
    bool closed_ = false;
};

}  // namespace

Result<std::vector<AssembledStream>> assemble(std::string_view text) {
    return Assembler().run(text);
}

}  // namespace reef::rk3588
