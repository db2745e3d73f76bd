#include "reef/model/flexbuffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace reef::model {
namespace {

// Type numbers of the format; the lower two bits of a packed type are log2 of the width.
enum class Type : std::uint8_t {
    null = 0,
    integer = 1,
    unsigned_integer = 2,
    real = 3,
    key = 4,
    string = 5,
    indirect_integer = 6,
    indirect_unsigned = 7,
    indirect_real = 8,
    map = 9,
    vector = 10,
    first_typed_vector = 11,
    last_typed_vector = 24,
    blob = 25,
    boolean = 26,
    boolean_vector = 36,
};

/// Where a value is and how to read it. Scalars stand at `at` in `width` bytes of their parent;
/// others are an offset backwards from there, and have elements of `own_width`.
struct Slot {
    std::size_t at;
    std::size_t width;
    Type type;
    std::size_t own_width;
};

Slot slot_of(std::size_t at, std::size_t width, std::uint8_t packed_type) {
    return {at, width, static_cast<Type>(packed_type >> 2), std::size_t{1} << (packed_type & 3)};
}

// FlatBuffers 2.0's own flexbuffers::Verifier passes keys without a terminator and key vectors off
// alignment, so that its accessors then read past the end; hence this reader of the few forms
// needed.
class Reader {
  public:
    explicit Reader(Bytes bytes) : bytes_(bytes) {}

    Result<FlexMap> root() const {
        if (bytes_.size() < 3) return bad(0, "too short");
        const std::size_t width = std::to_integer<std::size_t>(bytes_.back());
        if (!valid_width(width) || bytes_.size() < 2 + width) {
            return bad(bytes_.size() - 1, fmt::format("root width {}", width));
        }
        const auto packed = std::to_integer<std::uint8_t>(bytes_[bytes_.size() - 2]);
        const Slot root = slot_of(bytes_.size() - 2 - width, width, packed);
        if (root.type != Type::map) {
            return bad(bytes_.size() - 2,
                       fmt::format("the root has type {}, not map", static_cast<int>(root.type)));
        }
        return map(REEF_TRY(target(root)), root.own_width);
    }

  private:
    static bool valid_width(std::size_t width) { return width <= 8 && std::has_single_bit(width); }

    static std::unexpected<Error> bad(std::size_t offset, const std::string& what) {
        return fail(Cause::bad_input, "no sound FlexBuffer: " + what,
                    fmt::format("byte {}", offset));
    }

    /// The `count` bytes at `offset`.
    Result<Bytes> at(std::size_t offset, std::size_t count) const {
        if (offset <= bytes_.size() && count <= bytes_.size() - offset) {
            return bytes_.subspan(offset, count);
        }
        return bad(offset, fmt::format("{} bytes reach past the end at {}", count, bytes_.size()));
    }

    Result<std::uint64_t> unsigned_at(std::size_t offset, std::size_t width) const {
        const Bytes raw = REEF_TRY(at(offset, width));
        std::uint64_t value = 0;
        std::memcpy(&value, raw.data(), width);
        return value;
    }

    Result<std::int64_t> signed_at(std::size_t offset, std::size_t width) const {
        const std::uint64_t value = REEF_TRY(unsigned_at(offset, width));
        const unsigned unused = 64 - 8 * static_cast<unsigned>(width);
        return static_cast<std::int64_t>(value << unused) >> unused;
    }

    Result<double> real_at(std::size_t offset, std::size_t width) const {
        const std::uint64_t value = REEF_TRY(unsigned_at(offset, width));
        if (width == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(value));
        if (width == 8) return std::bit_cast<double>(value);
        return bad(offset, fmt::format("a real of {} bytes", width));
    }

    /// `at` minus the offset that stands there.
    Result<std::size_t> back_from(std::size_t at, std::size_t width) const {
        const std::uint64_t offset = REEF_TRY(unsigned_at(at, width));
        if (offset <= at) return at - static_cast<std::size_t>(offset);
        return bad(at, fmt::format("an offset of {} bytes before the start", offset));
    }
    Result<std::size_t> target(const Slot& slot) const { return back_from(slot.at, slot.width); }

    /// The number that stands `places` widths before `first`, such as a vector's length.
    Result<std::uint64_t> before(std::size_t first, std::size_t width, std::size_t places) const {
        if (first < places * width) return bad(first, "a vector without room for its length");
        return unsigned_at(first - places * width, width);
    }

    Result<Bytes> sized_bytes(const Slot& slot) const {
        const std::size_t first = REEF_TRY(target(slot));
        return at(first, REEF_TRY(before(first, slot.own_width, 1)));
    }

    /// A bound on keys keeps the time linear when all of them share one place.
    Result<std::string_view> terminated(std::size_t first) const {
        constexpr std::size_t longest = 255;
        if (first > bytes_.size()) return bad(first, "a key past the end");
        const std::string_view rest = as_text(bytes_.subspan(first)).substr(0, longest + 1);
        const std::size_t length = rest.find('\0');
        if (length == std::string_view::npos) {
            return bad(first, fmt::format("a key of more than {} bytes or without end", longest));
        }
        return rest.substr(0, length);
    }

    Result<FlexMap> map(std::size_t first, std::size_t width) const {
        const std::uint64_t count = REEF_TRY(before(first, width, 1));
        const std::uint64_t key_width = REEF_TRY(before(first, width, 2));
        if (!valid_width(key_width)) return bad(first, fmt::format("keys of width {}", key_width));
        REEF_TRY(before(first, width, 3));
        const std::size_t keys = REEF_TRY(back_from(first - 3 * width, width));
        if (REEF_TRY(before(keys, key_width, 1)) != count) {
            return bad(keys, "a map with unlike numbers of keys and values");
        }
        // Each value takes its width and a type byte.
        if (count > bytes_.size() / (width + 1)) return bad(first, "a map past the end");
        std::vector<FlexMap::Entry> entries;
        entries.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t key = REEF_TRY(back_from(keys + i * key_width, key_width));
            const auto packed = REEF_TRY(unsigned_at(first + count * width + i, 1));
            const Slot slot = slot_of(first + i * width, width, static_cast<std::uint8_t>(packed));
            entries.emplace_back(REEF_TRY(terminated(key)), REEF_TRY(value(slot)));
        }
        return FlexMap(std::move(entries));
    }

    static FlexValue of_unsigned(std::uint64_t number) {
        if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            return FlexOther{"unsigned above 2^63"};
        }
        return static_cast<std::int64_t>(number);
    }

    Result<FlexValue> value(const Slot& slot) const {
        switch (slot.type) {
            case Type::null:
                return std::monostate{};
            case Type::integer:
                return REEF_TRY(signed_at(slot.at, slot.width));
            case Type::unsigned_integer:
                return of_unsigned(REEF_TRY(unsigned_at(slot.at, slot.width)));
            case Type::real:
                return REEF_TRY(real_at(slot.at, slot.width));
            case Type::boolean:
                return REEF_TRY(unsigned_at(slot.at, slot.width)) != 0;
            case Type::indirect_integer:
                return REEF_TRY(signed_at(REEF_TRY(target(slot)), slot.own_width));
            case Type::indirect_unsigned:
                return of_unsigned(REEF_TRY(unsigned_at(REEF_TRY(target(slot)), slot.own_width)));
            case Type::indirect_real:
                return REEF_TRY(real_at(REEF_TRY(target(slot)), slot.own_width));
            case Type::key:
                return REEF_TRY(terminated(REEF_TRY(target(slot))));
            case Type::string:
                return as_text(REEF_TRY(sized_bytes(slot)));
            case Type::blob:
                return REEF_TRY(sized_bytes(slot));
            case Type::map:
                return FlexOther{"map"};
            case Type::vector:
                return FlexOther{"vector"};
            default:
                break;
        }
        const bool typed =
            slot.type == Type::boolean_vector ||
            (slot.type >= Type::first_typed_vector && slot.type <= Type::last_typed_vector);
        if (typed) return FlexOther{"typed vector"};
        return bad(slot.at, fmt::format("unknown type {}", static_cast<int>(slot.type)));
    }

    Bytes bytes_;
};

std::unexpected<Error> wrong_kind(std::string_view key, std::string_view wanted) {
    return fail(Cause::bad_input, fmt::format("the option '{}' is no {}", key, wanted));
}

}  // namespace

const FlexValue* FlexMap::find(std::string_view key) const {
    const auto at = std::ranges::find(entries_, key, &Entry::first);
    return at == entries_.end() ? nullptr : &at->second;
}

Result<FlexValue> FlexMap::value(std::string_view key) const {
    if (const FlexValue* value = find(key)) return *value;
    return fail(Cause::not_found, fmt::format("there is no option '{}'", key));
}

Result<std::int64_t> FlexMap::integer(std::string_view key) const {
    const FlexValue found = REEF_TRY(value(key));
    if (const auto* number = std::get_if<std::int64_t>(&found)) return *number;
    if (const auto* flag = std::get_if<bool>(&found)) return *flag ? 1 : 0;
    return wrong_kind(key, "integer");
}

Result<double> FlexMap::real(std::string_view key) const {
    const FlexValue found = REEF_TRY(value(key));
    if (const auto* number = std::get_if<double>(&found)) return *number;
    if (const auto* number = std::get_if<std::int64_t>(&found)) return static_cast<double>(*number);
    if (const auto* flag = std::get_if<bool>(&found)) return *flag ? 1.0 : 0.0;
    return wrong_kind(key, "number");
}

Result<bool> FlexMap::boolean(std::string_view key) const {
    const FlexValue found = REEF_TRY(value(key));
    if (const auto* flag = std::get_if<bool>(&found)) return *flag;
    if (const auto* number = std::get_if<std::int64_t>(&found)) return *number != 0;
    return wrong_kind(key, "bool");
}

Result<Bytes> FlexMap::bytes(std::string_view key) const {
    const FlexValue found = REEF_TRY(value(key));
    if (const auto* text = std::get_if<std::string_view>(&found)) return as_bytes(*text);
    if (const auto* blob = std::get_if<Bytes>(&found)) return *blob;
    return wrong_kind(key, "string or blob");
}

Result<FlexMap> read_flexbuffer(Bytes bytes) {
    return Reader(bytes).root();
}

}  // namespace reef::model
