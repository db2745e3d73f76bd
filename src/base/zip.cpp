#include "base/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/allocate.h"

namespace reef {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t central_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t zip64_locator_signature = 0x07064b50;
constexpr std::uint32_t zip64_end_signature = 0x06064b50;
constexpr std::size_t local_size = 30;
constexpr std::size_t central_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t zip64_locator_size = 20;
constexpr std::size_t zip64_end_size = 56;
constexpr std::uint16_t zip64_extra = 0x0001;

constexpr std::uint16_t flag_encrypted = 1u << 0;
constexpr std::uint16_t flag_descriptor = 1u << 3;
constexpr std::uint16_t flag_patch = 1u << 5;
constexpr std::uint16_t flag_strong_encryption = 1u << 6;
constexpr std::uint16_t flag_utf8 = 1u << 11;
constexpr std::uint16_t flag_masked = 1u << 13;

constexpr std::uint32_t in_zip64 = 0xffffffff;
constexpr std::uint32_t max_members = 0xfffe;
constexpr std::uint16_t version_needed = 20;  // deflate
constexpr std::uint16_t dos_date = 0x0021;    // 1980-01-01

std::unexpected<Error> too_large_to_write() {
    return fail(Cause::unsupported, "an archive of 4 GiB or 65535 members, which needs zip64", "",
                "keep it smaller, or use separate .npy files");
}

std::string_view method_name(unsigned method) {
    switch (method) {
        case 1:
            return "shrink";
        case 6:
            return "implode";
        case 9:
            return "deflate64";
        case 12:
            return "bzip2";
        case 14:
            return "lzma";
        case 93:
            return "zstd";
        case 95:
            return "xz";
        case 98:
            return "ppmd";
        case 99:
            return "encrypted with AES";
        default:
            return "without a name here";
    }
}

struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t members = 0;
};

std::unexpected<Error> multi_disk() {
    return fail(Cause::unsupported, "a multi-disk ZIP archive", "", "join its parts first");
}

/// `end`: where the directory must end.
Result<Directory> checked(const Directory& directory, std::uint64_t end) {
    if (directory.offset <= end && directory.size == end - directory.offset) return directory;
    return fail(Cause::bad_input, fmt::format("the ZIP directory at byte offset {} with {} bytes "
                                              "does not end at its end record at {}",
                                              directory.offset, directory.size, end));
}

/// What the locator in front of the end record points at (APPNOTE.TXT 4.3.14 and 4.3.15).
Result<Directory> read_zip64_end(Bytes archive, ByteReader locator) {
    const unsigned disk = REEF_TRY(locator.u32());
    const std::uint64_t offset = REEF_TRY(locator.u64());
    const unsigned disks = REEF_TRY(locator.u32());
    if (disk != 0 || disks > 1) return multi_disk();
    ByteReader reader(archive);
    REEF_CHECK(reader.seek(offset));
    ByteReader record(REEF_TRY(reader.take(zip64_end_size)));
    if (REEF_TRY(record.u32()) != zip64_end_signature)
        return fail(Cause::bad_input, fmt::format("no zip64 end record at byte offset {}", offset));
    REEF_CHECK(record.skip(8 + 4));  // size of the record, versions made by and needed
    const std::uint32_t here = REEF_TRY(record.u32());
    const std::uint32_t directory_disk = REEF_TRY(record.u32());
    const std::uint64_t members_here = REEF_TRY(record.u64());
    Directory directory;
    directory.members = REEF_TRY(record.u64());
    directory.size = REEF_TRY(record.u64());
    directory.offset = REEF_TRY(record.u64());
    if (here != 0 || directory_disk != 0 || members_here != directory.members) return multi_disk();
    return checked(directory, offset);
}

Result<Directory> read_end_record(Bytes archive, std::size_t offset) {
    ByteReader reader(archive.subspan(offset + 4));
    const unsigned disk = REEF_TRY(reader.u16());
    const unsigned directory_disk = REEF_TRY(reader.u16());
    const unsigned members_here = REEF_TRY(reader.u16());
    const unsigned members = REEF_TRY(reader.u16());
    const std::uint32_t size = REEF_TRY(reader.u32());
    const std::uint32_t start = REEF_TRY(reader.u32());
    if (offset >= zip64_locator_size) {
        ByteReader locator(archive.subspan(offset - zip64_locator_size));
        if (REEF_TRY(locator.u32()) == zip64_locator_signature)
            return read_zip64_end(archive, locator);
    }
    if (disk != 0 || directory_disk != 0 || members != members_here) return multi_disk();
    return checked({start, size, members}, offset);
}

/// The end record is the last one whose comment reaches exactly to the end of the file.
Result<Directory> find_directory(Bytes archive) {
    constexpr std::size_t max_comment = 0xffff;
    for (std::size_t comment = 0; comment <= max_comment; ++comment) {
        if (archive.size() < end_size + comment) break;
        const std::size_t offset = archive.size() - end_size - comment;
        ByteReader reader(archive.subspan(offset));
        if (REEF_TRY(reader.u32()) != end_signature) continue;
        REEF_CHECK(reader.seek(end_size - 2));
        if (REEF_TRY(reader.u16()) == comment) return read_end_record(archive, offset);
    }
    return fail(Cause::bad_input, "not a ZIP archive, or a truncated one: no end record", "",
                ".npz files are ZIP archives");
}

struct CentralRecord {
    ZipMember member;
    std::uint16_t flags = 0;
    std::uint64_t packed_size = 0;
    std::uint64_t offset = 0;  // of the local header
};

/// Numbers that have no room in a header's 32 bits stand in its zip64 field, in this order.
Status read_zip64_field(Bytes extra, std::initializer_list<std::uint64_t*> numbers) {
    ByteReader reader(extra);
    while (reader.remaining() >= 4) {
        const unsigned id = REEF_TRY(reader.u16());
        ByteReader field(REEF_TRY(reader.take(REEF_TRY(reader.u16()))));
        if (id != zip64_extra) continue;
        for (std::uint64_t* number : numbers)
            if (*number == in_zip64) *number = REEF_TRY(field.u64());
        return {};
    }
    if (std::ranges::any_of(numbers, [](const std::uint64_t* n) { return *n == in_zip64; }))
        return fail(Cause::bad_input, "a size or offset of 4 GiB or more without its zip64 field");
    return {};
}

Status check_flags(unsigned flags, unsigned method) {
    if ((flags & (flag_encrypted | flag_strong_encryption | flag_masked)) != 0) {
        return fail(Cause::unsupported, "an encrypted ZIP member", "", "decrypt the archive first");
    }
    if ((flags & flag_patch) != 0) return fail(Cause::unsupported, "a patched ZIP member");
    if (method != static_cast<unsigned>(ZipMethod::stored) &&
        method != static_cast<unsigned>(ZipMethod::deflated)) {
        return fail(Cause::unsupported,
                    fmt::format("ZIP compression method {} ({})", method, method_name(method)), "",
                    "stored and deflated members are read");
    }
    return {};
}

Status check_sizes(const CentralRecord& record) {
    const std::uint64_t size = record.member.size;
    const std::uint64_t packed = record.packed_size;
    if (record.member.method == ZipMethod::stored && size != packed) {
        return fail(Cause::bad_input,
                    fmt::format("a stored ZIP member of {} bytes in {}", size, packed));
    }
    if (size / max_deflate_ratio > packed ||
        (size / max_deflate_ratio == packed && size % max_deflate_ratio != 0)) {
        return fail(Cause::bad_input,
                    fmt::format("{} bytes cannot unpack to {}: deflate expands at most {} times",
                                packed, size, max_deflate_ratio));
    }
    return {};
}

Status check_name(const CentralRecord& record) {
    const std::string& name = record.member.name;
    const bool ascii =
        std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if ((record.flags & flag_utf8) == 0 && !ascii) {
        return fail(Cause::unsupported, "a ZIP member name in a legacy code page", "",
                    "archive it again with UTF-8 names");
    }
    if (!is_utf8(name)) return fail(Cause::bad_input, "a ZIP member name that is not UTF-8");
    if (name.find('\0') != std::string::npos) {
        return fail(Cause::bad_input, "a ZIP member name with a zero byte");
    }
    return {};
}

Result<CentralRecord> read_central(ByteReader& reader) {
    const Bytes fixed = REEF_TRY(reader.take(central_size));
    ByteReader fields(fixed);
    if (REEF_TRY(fields.u32()) != central_signature) {
        return fail(Cause::bad_input, "no central directory signature");
    }
    CentralRecord record;
    REEF_CHECK(fields.skip(4));  // versions made by and needed
    record.flags = REEF_TRY(fields.u16());
    const unsigned method = REEF_TRY(fields.u16());
    REEF_CHECK(fields.skip(4));  // time and date
    record.member.crc = REEF_TRY(fields.u32());
    record.packed_size = REEF_TRY(fields.u32());
    record.member.size = REEF_TRY(fields.u32());
    const std::size_t name_size = REEF_TRY(fields.u16());
    const std::size_t extra_size = REEF_TRY(fields.u16());
    const std::size_t comment_size = REEF_TRY(fields.u16());
    const unsigned disk = REEF_TRY(fields.u16());
    REEF_CHECK(fields.skip(6));  // internal and external attributes
    record.offset = REEF_TRY(fields.u32());
    record.member.name = as_text(REEF_TRY(reader.take(name_size)));
    const Bytes extra = REEF_TRY(reader.take(extra_size));
    REEF_CHECK(reader.skip(comment_size));

    REEF_CHECK(check_name(record));
    const auto checked = [&]() -> Status {
        REEF_CHECK(
            read_zip64_field(extra, {&record.member.size, &record.packed_size, &record.offset}));
        if (disk != 0) return multi_disk();
        REEF_CHECK(check_flags(record.flags, method));
        record.member.method = static_cast<ZipMethod>(method);
        return check_sizes(record);
    };
    REEF_CHECK(in_place(checked(), fmt::format("member '{}'", record.member.name)));
    return record;
}

/// NumPy writes a zip64 field into local headers even of small members; the central directory then
/// still has the sizes, and both must agree.
Status check_local_sizes(Bytes extra, std::uint64_t packed, std::uint64_t size,
                         const CentralRecord& record) {
    REEF_CHECK(read_zip64_field(extra, {&size, &packed}));
    const bool unknown_yet = (record.flags & flag_descriptor) != 0 && packed == 0 && size == 0;
    if (unknown_yet || (packed == record.packed_size && size == record.member.size)) return {};
    return fail(Cause::bad_input, "the local ZIP header and the directory give different sizes");
}

/// Checks the local header against the directory and finds the packed bytes. Returns the offset
/// just after them.
Result<std::size_t> locate(Bytes archive, CentralRecord& record) {
    ByteReader reader(archive);
    REEF_CHECK(reader.seek(record.offset));
    ByteReader fields(REEF_TRY(reader.take(local_size)));
    if (REEF_TRY(fields.u32()) != local_signature) {
        return fail(Cause::bad_input,
                    fmt::format("no local ZIP header at byte offset {}", record.offset));
    }
    REEF_CHECK(fields.skip(4));  // version needed, flags
    const unsigned method = REEF_TRY(fields.u16());
    REEF_CHECK(fields.skip(8));  // time, date, CRC
    const std::uint32_t packed = REEF_TRY(fields.u32());
    const std::uint32_t size = REEF_TRY(fields.u32());
    const std::size_t name_size = REEF_TRY(fields.u16());
    const std::size_t extra_size = REEF_TRY(fields.u16());
    const std::string_view name = as_text(REEF_TRY(reader.take(name_size)));
    const Bytes extra = REEF_TRY(reader.take(extra_size));
    if (name != record.member.name || method != static_cast<unsigned>(record.member.method)) {
        return fail(Cause::bad_input,
                    fmt::format("the local ZIP header at byte offset {} is for another member",
                                record.offset));
    }
    REEF_CHECK(check_local_sizes(extra, packed, size, record));
    record.member.packed = REEF_TRY(reader.take(record.packed_size));
    return reader.offset();
}

/// Overlapping members are how a small archive unpacks to a huge one.
Status check_overlap(std::vector<std::pair<std::size_t, std::size_t>> extents,
                     std::size_t directory_offset) {
    std::ranges::sort(extents);
    extents.emplace_back(directory_offset, directory_offset);
    for (std::size_t i = 1; i < extents.size(); ++i) {
        if (extents[i - 1].second > extents[i].first) {
            return fail(Cause::bad_input,
                        fmt::format("overlapping ZIP members at byte offset {}", extents[i].first));
        }
    }
    return {};
}

struct InflateEnd {
    void operator()(z_stream* stream) const { inflateEnd(stream); }
};
struct DeflateEnd {
    void operator()(z_stream* stream) const { deflateEnd(stream); }
};

Bytef* z_input(Bytes bytes) {
    // zlib's next_in is const only under ZLIB_CONST; it is never written through.
    return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

Status inflate_into(std::vector<std::byte>& out, Bytes packed) {
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return fail(Cause::io_failed, "out of memory for inflate");
    }
    const std::unique_ptr<z_stream, InflateEnd> owner(&stream);
    Bytef nothing = 0;
    stream.next_in = z_input(packed);
    stream.next_out = out.empty() ? &nothing : reinterpret_cast<Bytef*>(out.data());
    // zlib counts in 32 bits: a stretch at a time.
    constexpr std::size_t at_once = std::size_t{1} << 20;
    std::size_t in_left = packed.size(), out_left = out.size();
    int code = Z_OK;
    while (code == Z_OK) {
        const std::size_t in = std::min(in_left, at_once), room = std::min(out_left, at_once);
        stream.avail_in = static_cast<uInt>(in);
        stream.avail_out = static_cast<uInt>(room);
        const bool last = in == in_left && room == out_left;
        code = inflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
        in_left -= in - stream.avail_in;
        out_left -= room - stream.avail_out;
    }
    if (code == Z_STREAM_END && out_left == 0 && in_left == 0) return {};
    if (code == Z_DATA_ERROR) {
        return fail(Cause::bad_input,
                    fmt::format("corrupt deflate data after {} packed bytes: {}",
                                packed.size() - in_left, stream.msg == nullptr ? "" : stream.msg));
    }
    if (code == Z_MEM_ERROR) return fail(Cause::io_failed, "out of memory for inflate");
    return fail(
        Cause::bad_input,
        fmt::format("the deflate data does not unpack to the declared {} bytes", out.size()));
}

Result<std::vector<std::byte>> deflate_all(Bytes contents) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return fail(Cause::io_failed, "out of memory for deflate");
    }
    const std::unique_ptr<z_stream, DeflateEnd> owner(&stream);
    std::vector<std::byte> out = REEF_TRY(allocate_bytes(deflateBound(&stream, contents.size())));
    stream.next_in = z_input(contents);
    stream.avail_in = static_cast<uInt>(contents.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), in_zip64 - 1));
    // The bound is enough room unless it was cut to what an archive without zip64 can hold.
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return too_large_to_write();
    out.resize(stream.total_out);
    return out;
}

std::uint32_t crc_of(Bytes bytes) {
    return static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Appends little-endian numbers.
class Appender {
  public:
    explicit Appender(std::vector<std::byte>& out) : out_(out) {}

    Appender& u16(std::uint32_t value) { return bytes(value, 2); }
    Appender& u32(std::uint32_t value) { return bytes(value, 4); }
    Appender& text(Bytes value) {
        out_.insert(out_.end(), value.begin(), value.end());
        return *this;
    }

  private:
    Appender& bytes(std::uint32_t value, int count) {
        for (int i = 0; i < count; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
        return *this;
    }

    std::vector<std::byte>& out_;
};

}  // namespace

Result<std::vector<ZipMember>> read_zip(Bytes archive) {
    const Directory directory = REEF_TRY(find_directory(archive));
    ByteReader reader(archive.subspan(directory.offset, directory.size));
    std::vector<ZipMember> members;
    std::vector<std::pair<std::size_t, std::size_t>> extents;
    for (std::uint64_t i = 0; i < directory.members; ++i) {
        CentralRecord record =
            REEF_TRY(in_place(read_central(reader), fmt::format("ZIP directory entry {}", i)));
        const std::size_t end = REEF_TRY(
            in_place(locate(archive, record), fmt::format("member '{}'", record.member.name)));
        extents.emplace_back(record.offset, end);
        members.push_back(std::move(record.member));
    }
    if (reader.remaining() != 0) {
        return fail(Cause::bad_input, fmt::format("{} bytes after the last of {} directory entries",
                                                  reader.remaining(), directory.members));
    }
    REEF_CHECK(check_overlap(std::move(extents), directory.offset));
    return members;
}

Result<std::vector<std::byte>> unpack(const ZipMember& member) {
    std::vector<std::byte> out = REEF_TRY(allocate_bytes(member.size));
    if (member.method == ZipMethod::stored) {
        std::ranges::copy(member.packed, out.begin());
    } else {
        REEF_CHECK(inflate_into(out, member.packed));
    }
    const std::uint32_t crc = crc_of(out);
    if (crc != member.crc) {
        return fail(Cause::bad_input,
                    fmt::format("CRC-32 {:08x}, the archive says {:08x}", crc, member.crc), "",
                    "the file is damaged: get it again");
    }
    return out;
}

Status ZipWriter::add(const std::string& name, Bytes contents, ZipMethod method) {
    if (!is_utf8(name) || name.find('\0') != std::string::npos || name.size() > 0xffff) {
        return fail(Cause::bad_argument,
                    "a ZIP member name must be UTF-8 without zero bytes, of at "
                    "most 65535 bytes");
    }
    std::vector<std::byte> deflated;
    Bytes packed = contents;
    if (contents.size() < in_zip64 && method == ZipMethod::deflated) {
        deflated = REEF_TRY(deflate_all(contents));
        packed = deflated;
    }
    if (contents.size() >= in_zip64 || packed.size() >= in_zip64 || archive_.size() >= in_zip64 ||
        count_ == max_members) {
        return too_large_to_write();
    }
    const auto offset = static_cast<std::uint32_t>(archive_.size());
    // The part that both headers share: version needed to the length of the extra field.
    std::vector<std::byte> shared;
    Appender(shared)
        .u16(version_needed)
        .u16(flag_utf8)
        .u16(static_cast<std::uint16_t>(method))
        .u16(0)
        .u16(dos_date)
        .u32(crc_of(contents))
        .u32(static_cast<std::uint32_t>(packed.size()))
        .u32(static_cast<std::uint32_t>(contents.size()))
        .u16(static_cast<std::uint32_t>(name.size()))
        .u16(0);
    Appender(archive_).u32(local_signature).text(shared).text(as_bytes(name)).text(packed);
    Appender(directory_)
        .u32(central_signature)
        .u16(version_needed)
        .text(shared)
        .u16(0)
        .u16(0)
        .u16(0)
        .u32(0)
        .u32(offset)
        .text(as_bytes(name));
    ++count_;
    return {};
}

Result<std::vector<std::byte>> ZipWriter::finish() && {
    if (archive_.size() >= in_zip64 || directory_.size() >= in_zip64) return too_large_to_write();
    const auto offset = static_cast<std::uint32_t>(archive_.size());
    Appender(archive_)
        .text(directory_)
        .u32(end_signature)
        .u16(0)
        .u16(0)
        .u16(count_)
        .u16(count_)
        .u32(static_cast<std::uint32_t>(directory_.size()))
        .u32(offset)
        .u16(0);
    return std::move(archive_);
}

bool is_utf8(std::string_view text) {
    // Smallest code point that needs a sequence of that many bytes: shorter ones are overlong.
    constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const int length = lead < 0x80               ? 1
                           : (lead & 0xe0u) == 0xc0u ? 2
                           : (lead & 0xf0u) == 0xe0u ? 3
                           : (lead & 0xf8u) == 0xf0u ? 4
                                                     : 0;
        if (length == 0 || i + static_cast<std::size_t>(length) > text.size()) return false;
        std::uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
        for (int k = 1; k < length; ++k) {
            const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
            if ((next & 0xc0u) != 0x80u) return false;
            code = code << 6 | (next & 0x3fu);
        }
        if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
            return false;
        }
        i += static_cast<std::size_t>(length);
    }
    return true;
}

}  // namespace reef
