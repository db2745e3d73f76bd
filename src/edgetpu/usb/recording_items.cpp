#include "edgetpu/usb/recording_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace reef::edgetpu::usb {
namespace {

using Kind = RecordedItem::Kind;

/// The value of "NAME=VALUE" in a line, up to the next blank.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
    for (std::size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || line[at - 1] == ' ') && end < line.size() && line[end] == '=') {
            return line.substr(end + 1, line.find(' ', end) - end - 1);
        }
    }
    return std::nullopt;
}

template <class T>
bool parse(std::string_view text, int base, T& value) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value, base);
    return error == std::errc() && at == end && !text.empty();
}

std::optional<Fault> fault_named(std::string_view name) {
    for (const Fault fault :
         {Fault::stall, Fault::timed_out, Fault::overflow, Fault::disconnected, Fault::cancelled,
          Fault::denied, Fault::busy, Fault::failed, Fault::no_bus}) {
        if (to_string(fault) == name) return fault;
    }
    return std::nullopt;
}

std::string_view first_word(std::string_view text) {
    return text.substr(0, text.find(' '));
}

/// Reads the fields of one line; the first that is wrong makes the line wrong.
class Line {
  public:
    Line(std::string_view text, Bytes data) : text_(text), data_(data) {}

    template <class T>
    Line& field(std::string_view name, int base, T& value) {
        const auto text = value_of(text_, name);
        if (!text || !parse(*text, base, value)) wrong_ = name;
        return *this;
    }
    /// len=, held= and off=; without them there are no bytes.
    Line& payload(RecordedItem& item) {
        std::size_t offset = 0;
        if (!value_of(text_, "len")) return *this;
        field("len", 10, item.size);
        if (item.size == 0 || !wrong_.empty()) return *this;
        std::size_t held = item.size;
        if (value_of(text_, "held")) field("held", 10, held);
        field("off", 10, offset);
        if (!wrong_.empty()) return *this;
        if (held > item.size) {
            wrong_ = "held";
        } else if (offset > data_.size() || held > data_.size() - offset) {
            wrong_ = "off";
        } else {
            item.data = data_.subspan(offset, held);
        }
        return *this;
    }
    [[nodiscard]] std::string_view wrong() const { return wrong_; }

  private:
    std::string_view text_;
    Bytes data_;
    std::string_view wrong_;
};

class Parser {
  public:
    explicit Parser(const Recording& recording) : data_(recording.data) {}

    Status add(std::string_view line, std::size_t number) {
        if (line.empty()) return {};
        // "000123 TEXT"
        const std::size_t blank = line.find(' ');
        if (blank == line.npos) return fail(Cause::bad_input, "no number in front");
        item_ = {};
        item_.line = number;
        item_.text = line.substr(blank + 1);
        const std::string_view text = item_.text;
        if (text.starts_with("#")) return add_remark(text);
        REEF_CHECK(add_fault());
        if (text.starts_with("OPEN ")) return add_open(first_word(text.substr(5)));
        if (text == "CLOSE") return push(Kind::close);
        if (first_word(text) == "RESET") return push(Kind::reset);
        if (text.starts_with("CLAIM ")) {
            return add_interface(Kind::claim, first_word(text.substr(6)));
        }
        if (text.starts_with("RELEASE ")) {
            return add_interface(Kind::release, first_word(text.substr(8)));
        }
        if (text.starts_with("SETCONFIG")) return {};
        if (text.starts_with("CLEAR ")) {
            if (!parse(first_word(text.substr(6)), 16, item_.endpoint)) {
                return fail(Cause::bad_input, "CLEAR without an endpoint");
            }
            return push(Kind::clear);
        }
        if (text.starts_with("WAIT ")) return add_wait();
        if (text.starts_with("CTRL ")) return add_control();
        if (text.starts_with("BULK ") || text.starts_with("INTR ")) return add_transfer();
        return fail(Cause::bad_input, fmt::format("{:.20} is no item of a recording", text));
    }

    RecordedItems take() && { return std::move(out_); }

  private:
    Status push(Kind kind) {
        item_.kind = kind;
        out_.items.push_back(item_);
        return {};
    }

    Status add_fault() {
        const auto name = value_of(item_.text, "fault");
        if (!name) return {};
        item_.fault = fault_named(*name);
        if (item_.fault) return {};
        return fail(Cause::bad_input, fmt::format("{:.20} is no fault", *name));
    }

    Status add_wait() {
        std::uint32_t ms = 0;
        if (!item_.fault && !Line(item_.text, data_).field("ms", 10, ms).wrong().empty()) {
            return fail(Cause::bad_input, "WAIT without ms or fault");
        }
        item_.waited = Milliseconds(ms);
        return push(Kind::waited);
    }

    Status add_remark(std::string_view text) {
        constexpr std::string_view patches = "patches(bit:desc:pos)";
        const std::size_t at = text.find(patches);
        if (!text.starts_with("#   chunk ") || at == text.npos) return {};
        std::size_t size = 0;
        if (Line(text, data_).field("size", 10, size).wrong() != "") {
            return fail(Cause::bad_input, "chunk without a size");
        }
        auto found = std::ranges::find(out_.addresses, size,
                                       &std::pair<std::size_t, std::set<std::size_t>>::first);
        if (found == out_.addresses.end()) {
            out_.addresses.push_back({size, {}});
            found = out_.addresses.end() - 1;
        }
        std::string_view rest = text.substr(at + patches.size());
        while (!rest.empty()) {
            const std::size_t start = rest.find_first_not_of(' ');
            if (start == rest.npos) break;
            rest.remove_prefix(start);
            std::size_t bit = 0;
            if (!parse(rest.substr(0, rest.find(':')), 10, bit) || bit > size * 8 ||
                bit + 32 > size * 8) {
                return fail(Cause::bad_input, "a patch outside its chunk");
            }
            found->second.insert(bit);
            rest.remove_prefix(std::min(rest.find(' '), rest.size()));
        }
        return {};
    }

    Status add_open(std::string_view ids) {
        const std::size_t colon = ids.find(':');
        if (colon == ids.npos || !parse(ids.substr(0, colon), 16, item_.vendor) ||
            !parse(ids.substr(colon + 1), 16, item_.product)) {
            return fail(Cause::bad_input, "OPEN without vendor:product");
        }
        return push(Kind::open);
    }

    Status add_interface(Kind kind, std::string_view number) {
        if (!parse(number, 10, item_.interface)) {
            return fail(Cause::bad_input, "no interface number");
        }
        return push(kind);
    }

    Status add_control() {
        Line line(item_.text, data_);
        line.field("bmRequestType", 16, item_.setup.request_type)
            .field("bRequest", 16, item_.setup.request)
            .field("wValue", 16, item_.setup.value)
            .field("wIndex", 16, item_.setup.index)
            .field("wLength", 10, item_.setup.length)
            .field("ret", 10, item_.result)
            .payload(item_);
        if (!line.wrong().empty()) {
            return fail(Cause::bad_input, fmt::format("control transfer: {}", line.wrong()));
        }
        if (item_.data.size() > item_.setup.length) {
            return fail(Cause::bad_input, "control transfer: more data than wLength");
        }
        return push(Kind::control);
    }

    Status add_transfer() {
        const std::string_view text = item_.text;
        Line line(text, data_);
        line.field("ep", 16, item_.endpoint);
        const Kind submitted = text.starts_with("BULK OUT") ? Kind::out : Kind::in;
        if (item_.fault) {
            line.field("len", 10, item_.asked);
            return push_transfer(submitted, line);
        }
        line.field("id", 10, item_.id);
        if (text.ends_with(" cancelled")) {
            item_.fault = Fault::cancelled;
            return push_transfer(Kind::failed, line);
        }
        if (const std::size_t at = text.find(" failed "); at != text.npos) {
            item_.fault = fault_named(text.substr(at + 8)).value_or(Fault::failed);
            return push_transfer(Kind::failed, line);
        }
        if (submitted == Kind::out) {
            if (text.ends_with(" complete")) return push_transfer(Kind::sent, line);
            return push_transfer(Kind::out, line.payload(item_));
        }
        if (text.contains(" submit ")) {
            return push_transfer(Kind::in, line.field("len", 10, item_.asked));
        }
        if (text.contains(" complete ")) {
            return push_transfer(Kind::completed, line.payload(item_));
        }
        return fail(Cause::bad_input, "neither submit, complete, cancelled nor failed");
    }

    Status push_transfer(Kind kind, const Line& line) {
        if (line.wrong().empty()) return push(kind);
        return fail(Cause::bad_input, fmt::format("transfer: {}", line.wrong()));
    }

    Bytes data_;
    RecordedItem item_;
    RecordedItems out_;
};

}  // namespace

std::vector<std::byte> RecordedItems::without_addresses(Bytes payload) const {
    std::vector<std::byte> bytes(payload.begin(), payload.end());
    for (const auto& [size, bits] : addresses) {
        if (size != payload.size()) continue;
        for (const std::size_t first : bits) {
            for (std::size_t bit = first; bit < first + 32; ++bit) {
                bytes[bit / 8] &= ~(std::byte{1} << (bit % 8));
            }
        }
    }
    return bytes;
}

Result<RecordedItems> parse_recording(const Recording& recording) {
    Parser parser(recording);
    std::string_view rest = recording.text;
    for (std::size_t number = 1; !rest.empty(); ++number) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        REEF_CHECK(
            in_place(parser.add(rest.substr(0, end), number), fmt::format("line {}", number)));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return std::move(parser).take();
}

}  // namespace reef::edgetpu::usb
