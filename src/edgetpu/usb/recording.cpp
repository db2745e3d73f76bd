#include "reef/edgetpu/usb/recording.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/recording_items.h"
#include "edgetpu/usb/register_map.h"
#include "reef/base/file.h"
#include "reef/base/sha256.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t most_recording = std::size_t{1} << 30;

struct GzipEnd {
    void operator()(z_stream* stream) const { inflateEnd(stream); }
};

/// Why nothing more can be unpacked of the member that begins at byte `begin`.
std::unexpected<Error> bad_member(int code, const z_stream& stream, std::size_t begin,
                                  std::size_t at) {
    if (code == Z_MEM_ERROR) return fail(Cause::io_failed, "out of memory for inflate");
    const std::string why = code == Z_BUF_ERROR     ? "the file ends in it"
                            : stream.msg == nullptr ? "no gzip data"
                                                    : stream.msg;
    return fail(Cause::bad_input, fmt::format("the gzip member at byte {}: {}", begin, why),
                fmt::format("byte {}", at), "the file is cut off or damaged: get it again");
}

/// All members: gzip files may stand behind each other (RFC 1952, 2.2).
Result<std::vector<std::byte>> inflated(Bytes packed) {
    z_stream stream{};
    constexpr int gzip_window = 15 + 16;
    if (inflateInit2(&stream, gzip_window) != Z_OK)
        return fail(Cause::io_failed, "out of memory for inflate");
    const std::unique_ptr<z_stream, GzipEnd> owner(&stream);
    // zlib does not write to its input.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    std::vector<std::byte> out;
    std::vector<std::byte> room(std::size_t{1} << 20);
    std::size_t begin = 0, at = 0;
    while (true) {
        // zlib counts in 32 bits: a stretch at a time.
        const std::size_t stretch = std::min(packed.size() - at, room.size());
        stream.avail_in = static_cast<uInt>(stretch);
        stream.next_out = reinterpret_cast<Bytef*>(room.data());
        stream.avail_out = static_cast<uInt>(room.size());
        const int code = inflate(&stream, Z_NO_FLUSH);
        at += stretch - stream.avail_in;
        out.insert(out.end(), room.begin(), room.end() - stream.avail_out);
        if (out.size() > most_recording)
            return fail(Cause::bad_input,
                        fmt::format("it unpacks to more than {} bytes", most_recording),
                        fmt::format("byte {}", at), "record fewer runs at once");
        if (code == Z_STREAM_END && at == packed.size()) return out;
        if (code != Z_OK && code != Z_STREAM_END) return bad_member(code, stream, begin, at);
        if (code == Z_STREAM_END) {
            begin = at;
            inflateReset(&stream);
        }
    }
}

/// PATH or PATH.gz.
Result<std::vector<std::byte>> read_either(const std::string& path) {
    auto plain = read_file(path);
    if (plain) return std::vector<std::byte>(plain->view().begin(), plain->view().end());
    const auto packed = read_file(path + ".gz");
    if (!packed) return std::unexpected(plain.error());
    return in_place(inflated(packed->view()), path + ".gz");
}

/// Cuts the out stream of the single-endpoint mode by its headers.
class OutStream {
  public:
    void add(const RecordedItem& item) {
        pieces_.push_back({{item.data.begin(), item.data.end()}, item.size});
        cut_ = cut_ || item.cut();
    }

    void print(const RecordedItems& items, std::uint8_t endpoint, bool single,
               std::vector<std::string>& lines) const {
        if (cut_) return print_beginnings(endpoint, lines);
        std::vector<std::byte> bytes;
        for (const auto& [piece, size] : pieces_) {
            const auto kept = single ? piece : items.without_addresses(piece);
            bytes.insert(bytes.end(), kept.begin(), kept.end());
        }
        if (!single) {
            lines.push_back(fmt::format("out ep {:02x} bytes {} sha256 {}", endpoint, bytes.size(),
                                        to_hex(sha256(bytes))));
            return;
        }
        for (std::size_t at = 0; at + header_bytes <= bytes.size();) {
            std::uint32_t header[2];
            std::memcpy(header, bytes.data() + at, sizeof header);
            at += header_bytes;
            const std::size_t size = std::min<std::size_t>(header[0], bytes.size() - at);
            const Bytes payload = Bytes(bytes).subspan(at, size);
            const bool program = header[1] == static_cast<std::uint32_t>(Tag::instructions);
            const auto kept = program ? items.without_addresses(payload)
                                      : std::vector<std::byte>(payload.begin(), payload.end());
            lines.push_back(fmt::format("out tag {} len {} sha256 {}{}", header[1], header[0],
                                        to_hex(sha256(kept)),
                                        size == header[0] ? "" : " TRUNCATED"));
            at += size;
        }
    }

  private:
    struct Piece {
        std::vector<std::byte> bytes;
        std::size_t size = 0;
    };
    /// Of a recording that holds only the first bytes of transfers.
    void print_beginnings(std::uint8_t endpoint, std::vector<std::string>& lines) const {
        for (const auto& [bytes, size] : pieces_) {
            lines.push_back(
                fmt::format("out ep {:02x} len {} begins {}", endpoint, size, to_hex(bytes)));
        }
    }

    std::vector<Piece> pieces_;
    bool cut_ = false;
};

std::string control_line(const RecordedItem& item) {
    const Setup& setup = item.setup;
    std::string payload;
    if (!setup.to_host()) {
        payload =
            item.data.size() <= 8 ? to_hex(item.data) : to_hex(sha256(item.data)).substr(0, 16);
    }
    return fmt::format("ctrl {:02x} {:02x} {:04x} {:04x} {} {}", setup.request_type, setup.request,
                       setup.value, setup.index, setup.length, payload);
}

/// The write that makes endpoint 1 carry every tag.
bool selects_single_endpoint(const RecordedItem& item) {
    const auto offset = csr::multi_bo_ep->offset;
    return item.setup.request_type == register_write && item.setup.value == (offset & 0xffff) &&
           item.setup.index == offset >> 16 &&
           std::ranges::all_of(item.data, [](std::byte byte) { return byte == std::byte{0}; });
}

/// Its lines are numbered.
bool may_be_recording(std::string_view text) {
    const std::string_view number = text.substr(0, std::min(text.find(' '), text.size()));
    return text.empty() || (!number.empty() && number.size() < text.size() &&
                            number.find_first_not_of("0123456789") == std::string_view::npos);
}

}  // namespace

Result<Recording> read_recording(const std::string& path) {
    const auto text = REEF_TRY(read_either(path));
    if (is_usbmon(as_text(text))) return in_place(recording_of_usbmon(as_text(text)), path);
    if (!may_be_recording(as_text(text)))
        return fail(Cause::bad_input, "neither a recording nor a capture of usbmon", path,
                    "reef record writes recordings; of captures, give the kernel's text or an "
                    "export with every detail");
    auto data = REEF_TRY(read_either(path + ".bin"));
    return Recording{.text = std::string(as_text(text)), .data = std::move(data)};
}

Status write_recording(const std::string& path, const Recording& recording) {
    const NamedContents files[] = {{path + ".bin", recording.data},
                                   {path, as_bytes(recording.text)}};
    return write_files(files);
}

Result<bool> holds_transfers(const Recording& recording) {
    const RecordedItems items = REEF_TRY(parse_recording(recording));
    return std::ranges::any_of(items.items, [](const RecordedItem& item) {
        return item.kind != RecordedItem::Kind::open && item.kind != RecordedItem::Kind::close;
    });
}

Result<std::vector<RegisterTransfer>> register_transfers(const Recording& recording) {
    const RecordedItems items = REEF_TRY(parse_recording(recording));
    std::vector<RegisterTransfer> all;
    for (const RecordedItem& item : items.items) {
        const Setup& setup = item.setup;
        const bool is_one =
            item.kind == RecordedItem::Kind::control &&
            (setup.request_type == register_read || setup.request_type == register_write);
        if (!is_one) continue;
        RegisterTransfer transfer{.line = item.line,
                                  .to_host = setup.to_host(),
                                  .offset = std::uint32_t{setup.index} << 16 | setup.value,
                                  .bits = setup.length * 8U};
        // A capture may hold no payload, which memcpy() must not be given.
        if (const std::size_t held = std::min(item.data.size(), sizeof transfer.value); held != 0)
            std::memcpy(&transfer.value, item.data.data(), held);
        all.push_back(transfer);
    }
    return all;
}

Recording without_data_transfers(const Recording& recording) {
    Recording out{.text = {}, .data = recording.data};
    std::string_view rest = recording.text;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        const std::string_view line = rest.substr(0, end);
        const std::string_view what = line.substr(std::min(line.find(' ') + 1, line.size()));
        if (!what.starts_with("BULK") && !what.starts_with("INTR") && !what.starts_with("WAIT"))
            out.text += line;
        rest.remove_prefix(end);
    }
    return out;
}

Result<std::vector<std::string>> wire_view(const Recording& recording) {
    using Kind = RecordedItem::Kind;
    const RecordedItems items = REEF_TRY(parse_recording(recording));
    std::vector<std::string> lines, events;
    std::map<std::uint8_t, OutStream> out;
    std::map<std::uint8_t, std::vector<std::byte>> in;
    std::map<std::uint8_t, std::size_t> cut;  ///< bytes of input that were not recorded
    bool single = false;
    for (const RecordedItem& item : items.items) {
        switch (item.kind) {
            case Kind::control:
                lines.push_back(control_line(item));
                single = single || selects_single_endpoint(item);
                break;
            case Kind::out:
                out[item.endpoint].add(item);
                break;
            case Kind::completed:
                if (item.endpoint == output_endpoint) {
                    auto& bytes = in[item.endpoint];
                    bytes.insert(bytes.end(), item.data.begin(), item.data.end());
                    cut[item.endpoint] += item.size - item.data.size();
                } else {
                    events.push_back(
                        fmt::format("event ep {:02x} {}", item.endpoint, to_hex(item.data)));
                }
                break;
            case Kind::failed:
                if (item.fault == Fault::cancelled) break;
                events.push_back(
                    fmt::format("fault ep {:02x} {}", item.endpoint, to_string(*item.fault)));
                break;
            case Kind::in:
            case Kind::sent:
            case Kind::waited:
                break;
            default: {
                // A device that comes back from a reset as another one reports a fault, or not.
                std::string text(item.kind == Kind::reset ? std::string_view("reset") : item.text);
                std::ranges::transform(text, text.begin(), [](unsigned char letter) {
                    return static_cast<char>(std::tolower(letter));
                });
                lines.push_back(std::move(text));
            }
        }
    }
    for (const auto& [endpoint, stream] : out) {
        stream.print(items, endpoint, single && endpoint == out_endpoint, lines);
    }
    for (const auto& [endpoint, bytes] : in) {
        const std::size_t missing = cut[endpoint];
        lines.push_back(missing == 0
                            ? fmt::format("in ep {:02x} bytes {} sha256 {}", endpoint, bytes.size(),
                                          to_hex(sha256(bytes)))
                            : fmt::format("in ep {:02x} bytes {} of which {} were not recorded",
                                          endpoint, bytes.size() + missing, missing));
    }
    lines.insert(lines.end(), events.begin(), events.end());
    return lines;
}

}  // namespace reef::edgetpu::usb
