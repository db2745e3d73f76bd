#include "hw/assembly_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "hw/value_parser.h"

namespace reef::hw {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

Result<std::vector<std::byte>> hex_bytes(std::string_view digits, std::string_view token) {
    std::vector<std::byte> out(digits.size() / 2);
    for (std::size_t i = 0; i < out.size(); ++i) {
        unsigned value = 0;
        const char* begin = digits.data() + 2 * i;
        const auto [stop, code] = std::from_chars(begin, begin + 2, value, 16);
        if (code != std::errc{} || stop != begin + 2)
            return wrong_token("not a hexadecimal number", token);
        out[i] = static_cast<std::byte>(value);
    }
    return out;
}

class StreamAssembler {
  public:
    StreamAssembler(std::size_t word_bytes, InstructionReader& reader)
        : word_bytes_(word_bytes), reader_(reader) {}

    Result<std::vector<AssembledStream>> run(std::string_view text) {
        std::size_t number = 1;
        while (!text.empty()) {
            const auto end = text.find('\n');
            auto line = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            line = line.substr(0, line.find(';'));
            if (auto status = assemble_line(LineTokens(line)); !status)
                return std::unexpected(
                    std::move(status.error()).in(fmt::format("line {}", number)));
            ++number;
        }
        return std::move(streams_);
    }

  private:
    Status assemble_line(LineTokens line) {
        auto token = line.next();
        if (token.ends_with(':')) {
            REEF_CHECK(ValueScanner(token.substr(0, token.size() - 1)).only_number());
            token = line.next();
        }
        if (token.empty()) return {};
        if (token == ".stream") return begin_stream(line);
        if (closed_) return wrong_token("nothing can follow .bytes in its stream", token);
        if (token == ".word") return add_word(line);
        if (token == ".bytes") return add_bytes(line);
        return reader_.read(token, line, bytes());
    }

    Status begin_stream(LineTokens& line) {
        const auto name = line.next();
        if (name.empty()) return wrong_token("a name must follow", ".stream");
        REEF_CHECK(line.end("nothing can follow the name"));
        streams_.push_back({std::string(name), {}});
        closed_ = false;
        return {};
    }

    // The word as one number, so that its last byte comes first.
    Status add_word(LineTokens& line) {
        const auto token = line.next();
        const std::size_t most = 2 + 2 * word_bytes_;
        if (!token.starts_with("0x") || token.size() < 3 || token.size() > most)
            return wrong_token(
                fmt::format("a word is 0x and 1 to {} hexadecimal digits", 2 * word_bytes_), token);
        std::string digits(most - token.size(), '0');
        digits += token.substr(2);
        auto word = REEF_TRY(hex_bytes(digits, token));
        std::ranges::reverse(word);
        append(word);
        return line.end("nothing can follow the data");
    }

    Status add_bytes(LineTokens& line) {
        const auto token = line.next();
        if (token.empty() || token.size() % 2 != 0 || token.size() > 2 * (word_bytes_ - 1))
            return wrong_token(
                fmt::format(".bytes takes 1 to {} bytes, two hexadecimal digits each",
                            word_bytes_ - 1),
                token);
        append(REEF_TRY(hex_bytes(token, token)));
        closed_ = true;
        return line.end("nothing can follow the data");
    }

    std::vector<std::byte>& bytes() {
        if (streams_.empty()) streams_.emplace_back();
        return streams_.back().bytes;
    }
    void append(Bytes added) { bytes().insert(bytes().end(), added.begin(), added.end()); }

    std::size_t word_bytes_;
    InstructionReader& reader_;
    std::vector<AssembledStream> streams_;
    bool closed_ = false;
};

}  // namespace

std::string_view LineTokens::next() {
    while (!line_.empty() && is_blank(line_.front())) line_.remove_prefix(1);
    std::size_t end = 0;
    while (end < line_.size() && !is_blank(line_[end])) ++end;
    const auto token = line_.substr(0, end);
    line_.remove_prefix(end);
    return token;
}

Status LineTokens::end(std::string_view refusal) {
    if (const auto rest = next(); !rest.empty()) return wrong_token(std::string(refusal), rest);
    return {};
}

std::unexpected<Error> wrong_token(std::string what, std::string_view token) {
    return fail(Cause::bad_input, std::move(what), fmt::format("'{}'", token.substr(0, 60)));
}

Result<FieldText> field_text_of(std::string_view token) {
    const auto equals = token.find('=');
    if (equals == std::string_view::npos || equals == 0)
        return wrong_token("a field is written NAME=VALUE", token);
    auto name = token.substr(0, equals);
    if (name.ends_with('?')) name.remove_suffix(1);
    return FieldText{name, token.substr(equals + 1)};
}

// Fields mostly come in their order: the search goes on where the last one was found.
std::optional<std::size_t> FieldWriter::find(std::string_view name) {
    const auto fields = info().fields;
    for (std::size_t n = 0; n < fields.size(); ++n) {
        std::size_t index = hint_ + n;
        if (index >= fields.size()) index -= fields.size();
        if (fields[index].name == name) {
            hint_ = index;
            return index;
        }
    }
    return std::nullopt;
}

Status FieldWriter::claim(std::size_t index) {
    if (seen_.test(index))
        return fail(Cause::bad_input, "the field is given twice",
                    std::string(info().fields[index].name));
    seen_.set(index);
    return {};
}

Status FieldWriter::set(std::size_t index, std::int64_t value) {
    REEF_CHECK(claim(index));
    return set_field(builder_.bytes(), info().fields[index], value);
}

Status FieldWriter::set(std::size_t index, std::string_view text) {
    REEF_CHECK(claim(index));
    const auto& field = info().fields[index];
    const auto value = REEF_TRY(parse_value(field, text));
    return set_field(builder_.bytes(), field, value);
}

Result<std::vector<AssembledStream>> assemble_streams(std::string_view text, std::size_t word_bytes,
                                                      InstructionReader& reader) {
    return StreamAssembler(word_bytes, reader).run(text);
}

}  // namespace reef::hw
