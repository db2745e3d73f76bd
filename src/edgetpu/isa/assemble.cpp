#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <charconv>

#include "edgetpu/isa/loop_nest.h"
#include "edgetpu/isa/value_parser.h"
#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu {
namespace {

constexpr std::size_t most_fields = 512;

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

// The next blank-separated token, which is taken off the line; empty at its end.
std::string_view next_token(std::string_view& line) {
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    std::size_t end = 0;
    while (end < line.size() && !is_blank(line[end])) ++end;
    const auto token = line.substr(0, end);
    line.remove_prefix(end);
    return token;
}

std::unexpected<Error> wrong(std::string what, std::string_view token) {
    return fail(Cause::bad_input, std::move(what), fmt::format("'{}'", token.substr(0, 60)));
}

// Sets the fields that one line names.
class LineAssembler {
  public:
    explicit LineAssembler(InstructionBuilder& builder) : builder_(builder) {}

    Status set(std::string_view token) {
        const auto equals = token.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return wrong("a field is written NAME=VALUE", token);
        auto name = token.substr(0, equals);
        if (name.ends_with('?')) name.remove_suffix(1);
        const auto value = token.substr(equals + 1);
        const auto index = find_field(name);
        if (index) return in_place(set_plain(*index, value), fmt::format("'{}'", name));
        for (const auto& group : builder_.info().groups) {
            if (group.name == name)
                return in_place(set_group(group, value), fmt::format("'{}'", name));
        }
        return fail(Cause::bad_input, fmt::format("no field '{}'", name.substr(0, 60)));
    }

  private:
    // Fields mostly come in their order: the search goes on where the last one was found.
    std::optional<std::size_t> find_field(std::string_view name) {
        const auto fields = builder_.info().fields;
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

    Status claim(std::size_t index) {
        if (seen_.test(index))
            return fail(Cause::bad_input, "the field is given twice",
                        std::string(builder_.info().fields[index].name));
        seen_.set(index);
        return {};
    }

    Status set_plain(std::size_t index, std::string_view text) {
        REEF_CHECK(claim(index));
        const auto& field = builder_.info().fields[index];
        const auto value = REEF_TRY(parse_value(field, text));
        return set_field(builder_.bytes(), field, value);
    }

    Status put(const FieldGroup& group, std::size_t offset, std::int64_t value) {
        const auto index = group.first + offset;
        REEF_CHECK(claim(index));
        return set_field(builder_.bytes(), builder_.info().fields[index], value);
    }

    Status set_group(const FieldGroup& group, std::string_view text) {
        switch (group.kind) {
            case GroupKind::loop_nest:
                return set_nest(group, text);
            case GroupKind::loops:
                return set_loops(group, text);
            case GroupKind::wait:
                return set_wait(group, text);
            case GroupKind::signal:
                return set_signal(group, text);
            case GroupKind::slot:
                return set_slot(group, text);
            case GroupKind::plain:
                break;
        }
        return fail(Cause::bad_input, "its fields are given one by one");
    }

    // BASE[STRIDExCOUNT]...
    Status set_nest(const FieldGroup& group, std::string_view text) {
        ValueScanner scan(text);
        const auto base = REEF_TRY(scan.number());
        Strides strides{};
        Strides limits{};
        for (unsigned d = 0; scan.take("["); ++d) {
            if (d == group.dimensions)
                return fail(Cause::bad_input,
                            fmt::format("there are only {} dimensions", group.dimensions));
            strides[d] = static_cast<std::uint64_t>(REEF_TRY(scan.signed_decimal()));
            REEF_CHECK(scan.expect("x"));
            limits[d] = REEF_TRY(scan.count());
            REEF_CHECK(scan.expect("]"));
        }
        REEF_CHECK(scan.finish());
        REEF_CHECK(put(group, 0, static_cast<std::int64_t>(base)));
        const auto steps = steps_of(strides, limits, group.dimensions);
        for (unsigned d = 0; d < group.dimensions; ++d) {
            REEF_CHECK(put(group, 1 + 2 * d, static_cast<std::int64_t>(steps[d])));
            REEF_CHECK(put(group, 2 + 2 * d, static_cast<std::int64_t>(limits[d])));
        }
        return {};
    }

    // COUNTxCOUNT...
    Status set_loops(const FieldGroup& group, std::string_view text) {
        ValueScanner scan(text);
        for (unsigned d = 0; d == 0 || scan.take("x"); ++d) {
            if (d == group.dimensions)
                return fail(Cause::bad_input, fmt::format("there are only {} loops", d));
            REEF_CHECK(put(group, d, static_cast<std::int64_t>(REEF_TRY(scan.count()))));
        }
        return scan.finish();
    }

    // COUNTER@LEVEL>=START+STEP[,destination]
    Status set_wait(const FieldGroup& group, std::string_view text) {
        ValueScanner scan(text);
        const auto& counters = *builder_.info().fields[group.first].enumeration;
        REEF_CHECK(put(group, 0, REEF_TRY(scan.name(counters))));
        REEF_CHECK(scan.expect("@"));
        REEF_CHECK(put(group, 1, REEF_TRY(scan.signed_number())));
        REEF_CHECK(scan.expect(">="));
        REEF_CHECK(put(group, 2, REEF_TRY(scan.signed_number())));
        REEF_CHECK(scan.expect("+"));
        REEF_CHECK(put(group, 3, REEF_TRY(scan.signed_number())));
        REEF_CHECK(put(group, 4, 1));
        if (group.count > 5) REEF_CHECK(put(group, 5, scan.take(",destination") ? 1 : 0));
        return scan.finish();
    }

    // @LEVEL
    Status set_signal(const FieldGroup& group, std::string_view text) {
        ValueScanner scan(text);
        REEF_CHECK(scan.expect("@"));
        REEF_CHECK(put(group, 0, 1));
        REEF_CHECK(put(group, 1, REEF_TRY(scan.signed_number())));
        return scan.finish();
    }

    // OPERATION(OPERAND,...)
    Status set_slot(const FieldGroup& group, std::string_view text) {
        ValueScanner scan(text);
        const auto fields = builder_.info().fields.subspan(group.first, group.count);
        REEF_CHECK(put(group, 0, REEF_TRY(scan.name(*fields[0].enumeration))));
        for (std::size_t f = 1; f < fields.size(); ++f) {
            REEF_CHECK(scan.expect(f == 1 ? "(" : ","));
            REEF_CHECK(put(group, f, REEF_TRY(parse_value(fields[f], scan.take_until(",)")))));
        }
        REEF_CHECK(scan.expect(")"));
        return scan.finish();
    }

    InstructionBuilder& builder_;
    std::bitset<most_fields> seen_;
    std::size_t hint_ = 0;
};

class Assembler {
  public:
    Result<std::vector<AssembledStream>> run(std::string_view text) {
        std::size_t number = 1;
        while (!text.empty()) {
            const auto end = text.find('\n');
            auto line = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            line = line.substr(0, line.find(';'));
            if (auto status = assemble_line(line); !status)
                return std::unexpected(
                    std::move(status.error()).in(fmt::format("line {}", number)));
            ++number;
        }
        return std::move(streams_);
    }

  private:
    Status assemble_line(std::string_view line) {
        auto token = next_token(line);
        if (token.ends_with(':')) {
            REEF_CHECK(ValueScanner(token.substr(0, token.size() - 1)).only_number());
            token = next_token(line);
        }
        if (token.empty()) return {};
        if (token == ".stream") return begin_stream(line);
        if (closed_) return wrong("nothing can follow .bytes in its stream", token);
        if (token == ".word") return add_word(line);
        if (token == ".bytes") return add_bytes(line);
        const auto* info = find_instruction(token);
        if (!info) return wrong("unknown instruction", token);
        InstructionBuilder builder(*info);
        LineAssembler assembler(builder);
        for (token = next_token(line); !token.empty(); token = next_token(line))
            REEF_CHECK(in_place(assembler.set(token), info->name));
        append(builder.bytes());
        return {};
    }

    Status begin_stream(std::string_view line) {
        const auto name = next_token(line);
        if (name.empty()) return wrong("a name must follow", ".stream");
        if (const auto rest = next_token(line); !rest.empty())
            return wrong("nothing can follow the name", rest);
        streams_.push_back({std::string(name), {}});
        closed_ = false;
        return {};
    }

    // 0x and up to 32 digits: the word as one number.
    Status add_word(std::string_view line) {
        const auto token = next_token(line);
        if (!token.starts_with("0x") || token.size() < 3 || token.size() > 34)
            return wrong("a word is 0x and 1 to 32 hexadecimal digits", token);
        std::string digits(34 - token.size(), '0');
        digits += token.substr(2);
        auto bytes = REEF_TRY(hex_bytes(digits, token));
        std::ranges::reverse(bytes);
        append(bytes);
        return end_of(line);
    }

    Status add_bytes(std::string_view line) {
        const auto token = next_token(line);
        if (token.empty() || token.size() % 2 || token.size() > 30)
            return wrong(".bytes takes 1 to 15 bytes, two hexadecimal digits each", token);
        append(REEF_TRY(hex_bytes(token, token)));
        closed_ = true;
        return end_of(line);
    }

    static Status end_of(std::string_view line) {
        if (const auto rest = next_token(line); !rest.empty())
            return wrong("nothing can follow the data", rest);
        return {};
    }

    static Result<std::vector<std::byte>> hex_bytes(std::string_view digits,
                                                    std::string_view token) {
        std::vector<std::byte> out(digits.size() / 2);
        for (std::size_t i = 0; i < out.size(); ++i) {
            unsigned value = 0;
            const char* begin = digits.data() + 2 * i;
            const auto [stop, code] = std::from_chars(begin, begin + 2, value, 16);
            if (code != std::errc{} || stop != begin + 2)
                return wrong("not a hexadecimal number", token);
            out[i] = static_cast<std::byte>(value);
        }
        return out;
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

Result<std::vector<AssembledStream>> assemble_streams(std::string_view text) {
    return Assembler().run(text);
}

Result<std::vector<std::byte>> assemble(std::string_view text) {
    auto streams = REEF_TRY(assemble_streams(text));
    if (streams.size() > 1)
        return fail(Cause::bad_input,
                    fmt::format("the text has {} streams where one is expected", streams.size()));
    return streams.empty() ? std::vector<std::byte>{} : std::move(streams[0].bytes);
}

}  // namespace reef::edgetpu
