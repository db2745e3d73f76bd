#include "base/npy_header.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace reef {
namespace {

struct Dtype {
    std::string_view code;  // kind and item size, as in numpy.dtype.str without the byte order
    ElementType type;
};

constexpr std::array dtypes{
    Dtype{"b1", ElementType::boolean},   Dtype{"i1", ElementType::int8},
    Dtype{"i2", ElementType::int16},     Dtype{"i4", ElementType::int32},
    Dtype{"i8", ElementType::int64},     Dtype{"u1", ElementType::uint8},
    Dtype{"u2", ElementType::uint16},    Dtype{"u4", ElementType::uint32},
    Dtype{"u8", ElementType::uint64},    Dtype{"f2", ElementType::float16},
    Dtype{"f4", ElementType::float32},   Dtype{"f8", ElementType::float64},
    Dtype{"c8", ElementType::complex64}, Dtype{"c16", ElementType::complex128},
    Dtype{"?", ElementType::boolean},
};

std::string_view kind_name(char kind) {
    switch (kind) {
        case 'O':
            return "Python objects";
        case 'S':
        case 'a':
            return "byte strings";
        case 'U':
            return "Unicode strings";
        case 'V':
            return "void or structured items";
        case 'M':
            return "datetime64";
        case 'm':
            return "timedelta64";
        case 'f':
            return "a float width without an element type here";
        case 'c':
            return "a complex width without an element type here";
        default:
            return "an unknown kind";
    }
}

/// Reads the subset of Python literals that the header consists of.
class LiteralReader {
  public:
    LiteralReader(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

    void skip_space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n\f").contains(text_[at_])) ++at_;
    }
    /// After white space; '\0' at the end.
    [[nodiscard]] char peek() {
        skip_space();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    [[nodiscard]] bool at_end() {
        skip_space();
        return at_ == text_.size();
    }
    [[nodiscard]] bool accept(char wanted) {
        if (at_end() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    [[nodiscard]] Status expect(char wanted) {
        if (accept(wanted)) return {};
        return malformed(fmt::format("expected '{}'", wanted));
    }

    [[nodiscard]] Result<std::string_view> string();
    [[nodiscard]] Result<bool> boolean();
    [[nodiscard]] Result<std::int64_t> dimension();
    [[nodiscard]] Result<std::vector<std::int64_t>> shape();

    [[nodiscard]] std::unexpected<Error> malformed(std::string_view what) const {
        return fail(Cause::bad_input,
                    fmt::format(".npy header: {} at byte offset {}", what, offset_ + at_));
    }

  private:
    std::string_view text_;
    std::size_t offset_;
    std::size_t at_ = 0;
};

Result<std::string_view> LiteralReader::string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return malformed("expected a quoted string");
    const std::size_t start = at_ + 1;
    const std::size_t end = text_.find(quote, start);
    if (end == std::string_view::npos) return malformed("a string without an end");
    const std::string_view value = text_.substr(start, end - start);
    if (value.find_first_of("\\\n") != std::string_view::npos) {
        return malformed("a string with an escape");
    }
    at_ = end + 1;
    return value;
}

Result<bool> LiteralReader::boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>("True", true),
                                      std::pair<std::string_view, bool>("False", false)}) {
        if (text_.substr(at_).starts_with(word)) {
            at_ += word.size();
            return value;
        }
    }
    return malformed("expected True or False");
}

Result<std::int64_t> LiteralReader::dimension() {
    if (peek() == '-') return malformed("a negative dimension");
    const char* first = text_.data() + at_;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) return malformed("a dimension beyond 63 bits");
    if (error != std::errc()) return malformed("expected a dimension");
    if (*first == '0' && end != first + 1) return malformed("a dimension with leading zeros");
    at_ += static_cast<std::size_t>(end - first);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
}

Result<std::vector<std::int64_t>> LiteralReader::shape() {
    REEF_CHECK(expect('('));
    std::vector<std::int64_t> dimensions;
    bool comma = true;
    while (!accept(')')) {
        if (!comma) return malformed("expected ',' or ')' in the shape");
        if (dimensions.size() == max_npy_dimensions) {
            return malformed(fmt::format("more than {} dimensions", max_npy_dimensions));
        }
        dimensions.push_back(REEF_TRY(dimension()));
        comma = accept(',');
    }
    if (dimensions.size() == 1 && !comma) return malformed("a shape that is not a tuple, as (3,)");
    return dimensions;
}

Status read_dtype(std::string_view descr, NpyHeader& header) {
    std::string_view code = descr;
    char byte_order = '=';
    if (!code.empty() && std::string_view("<>=|").contains(code[0])) {
        byte_order = code[0];
        code.remove_prefix(1);
    }
    for (const Dtype& dtype : dtypes) {
        if (dtype.code != code) continue;
        const bool multi_byte = size_of(dtype.type) != 1;
        if (byte_order == '|' && multi_byte) {
            return fail(Cause::bad_input,
                        fmt::format(".npy header: dtype '{}' has no byte order", descr));
        }
        header.type = dtype.type;
        header.big_endian = byte_order == '>' && multi_byte;
        return {};
    }
    return fail(
        Cause::unsupported,
        fmt::format(".npy dtype '{}' ({})", descr, kind_name(code.empty() ? '\0' : code[0])), "",
        "convert the array to a plain number type with astype()");
}

Status read_descr(LiteralReader& reader, NpyHeader& header) {
    switch (reader.peek()) {
        case '[':
        case '{':
            return fail(Cause::unsupported, "a structured .npy dtype", "",
                        "save its fields as separate arrays");
        case '(':
            return fail(Cause::unsupported, "a subarray .npy dtype", "",
                        "save a plain array with the subarray's dimensions appended");
        default:
            return read_dtype(REEF_TRY(reader.string()), header);
    }
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text, std::size_t offset) {
    LiteralReader reader(text, offset);
    NpyHeader header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    const auto first_time = [&](bool& seen, std::string_view key) -> Status {
        if (seen) return reader.malformed(fmt::format("a second '{}'", key));
        seen = true;
        return {};
    };
    REEF_CHECK(reader.expect('{'));
    bool comma = true;
    while (!reader.accept('}')) {
        if (!comma) return reader.malformed("expected ',' or '}'");
        const std::string_view key = REEF_TRY(reader.string());
        REEF_CHECK(reader.expect(':'));
        if (key == "descr") {
            REEF_CHECK(first_time(has_descr, key));
            REEF_CHECK(read_descr(reader, header));
        } else if (key == "fortran_order") {
            REEF_CHECK(first_time(has_order, key));
            header.order = REEF_TRY(reader.boolean()) ? Order::fortran : Order::c;
        } else if (key == "shape") {
            REEF_CHECK(first_time(has_shape, key));
            header.shape = REEF_TRY(reader.shape());
        } else {
            return reader.malformed(
                "a key other than descr, fortran_order, shape before the value");
        }
        comma = reader.accept(',');
    }
    if (!reader.at_end()) return reader.malformed("text after the dictionary");
    if (!has_descr) return reader.malformed("no 'descr'");
    if (!has_order) return reader.malformed("no 'fortran_order'");
    if (!has_shape) return reader.malformed("no 'shape'");
    return header;
}

Result<std::string> print_npy_header(ElementType type, const std::vector<std::int64_t>& shape,
                                     Order order) {
    for (const Dtype& dtype : dtypes) {
        if (dtype.type != type) continue;
        const char byte_order = size_of(type) == 1 ? '|' : '<';
        std::string text =
            fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': (", byte_order,
                        dtype.code, order == Order::fortran ? "True" : "False");
        for (std::size_t i = 0; i < shape.size(); ++i) {
            text += fmt::format("{}{}", i == 0 ? "" : " ", shape[i]);
            if (i + 1 < shape.size() || shape.size() == 1) text += ',';
        }
        return text + "), }";
    }
    return fail(Cause::unsupported,
                fmt::format("an array of element type {} as .npy", name_of(type)), "",
                "NumPy has no dtype for it");
}

Result<std::uint64_t> npy_byte_count(ElementType type, const std::vector<std::int64_t>& shape) {
    if (shape.size() > max_npy_dimensions) {
        return fail(Cause::bad_input,
                    fmt::format("{} dimensions, at most {}", shape.size(), max_npy_dimensions));
    }
    const auto item = size_of(type);
    if (!item) {
        return fail(Cause::unsupported,
                    fmt::format("an array of element type {} as .npy", name_of(type)), "",
                    "NumPy has no dtype for it");
    }
    constexpr std::uint64_t limit = std::numeric_limits<std::int64_t>::max();
    std::uint64_t bytes = *item;
    bool empty = false;
    for (const std::int64_t dimension : shape) {
        if (dimension < 0) {
            return fail(Cause::bad_input, fmt::format("a dimension of {}", dimension));
        }
        if (dimension == 0) {
            empty = true;
        } else if (static_cast<std::uint64_t>(dimension) > limit / bytes) {
            return fail(Cause::bad_input, "the shape's size is beyond 63 bits");
        } else {
            bytes *= static_cast<std::uint64_t>(dimension);
        }
    }
    return empty ? 0 : bytes;
}

}  // namespace reef
