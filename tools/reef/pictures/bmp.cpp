// Windows bitmaps. Layout: BITMAPFILEHEADER (14 bytes), then an information header whose first
// word is its size (40 BITMAPINFOHEADER, 52 to 124 its extensions), the palette, the rows padded to
// four bytes.
#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "pictures/image.h"

namespace reef::tool {
namespace {

struct Header {
    std::uint32_t pixel_offset = 0;
    std::uint32_t palette_offset = 0;
    std::uint32_t palette_size = 0;
    std::int64_t width = 0;
    std::int64_t height = 0;
    bool top_down = false;
    unsigned bits = 0;
    unsigned red_byte = 2, green_byte = 1, blue_byte = 0;  ///< within a pixel of 24 or 32 bits
};

constexpr std::uint32_t file_header_size = 14;

std::string_view compression_name(std::uint32_t compression) {
    constexpr std::array<std::string_view, 7> names = {
        "uncompressed", "run-length 8-bit", "run-length 4-bit", "bit fields", "JPEG",
        "PNG",          "alpha bit fields"};
    return compression < names.size() ? names[compression] : "unknown";
}

/// The byte that a channel's mask selects, for masks of one whole byte.
Result<unsigned> byte_of_mask(std::uint32_t mask) {
    for (unsigned byte = 0; byte < 4; ++byte) {
        if (mask == 0xFFu << (8 * byte)) return byte;
    }
    return fail(Cause::unsupported,
                fmt::format("a BMP file whose channel mask is 0x{:08x}, not one byte", mask));
}

/// Masks follow the 40-byte header, or are part of its longer forms at the same place.
Status read_masks(ByteReader& reader, Header& header) {
    REEF_CHECK(reader.seek(file_header_size + 40));
    header.red_byte = REEF_TRY(byte_of_mask(REEF_TRY(reader.u32())));
    header.green_byte = REEF_TRY(byte_of_mask(REEF_TRY(reader.u32())));
    header.blue_byte = REEF_TRY(byte_of_mask(REEF_TRY(reader.u32())));
    return {};
}

Result<Header> read_header(ByteReader& reader) {
    Header header;
    REEF_CHECK(reader.seek(10));
    header.pixel_offset = REEF_TRY(reader.u32());
    const std::uint32_t size = REEF_TRY(reader.u32());
    if (size == 12) return fail(Cause::unsupported, "a BMP file of the OS/2 1.x form");
    if (size < 40 || size > 4096) {
        return fail(Cause::bad_input, fmt::format("a BMP header of {} bytes", size));
    }
    header.width = static_cast<std::int32_t>(REEF_TRY(reader.u32()));
    header.height = static_cast<std::int32_t>(REEF_TRY(reader.u32()));
    header.top_down = header.height < 0;
    header.height = std::abs(header.height);
    REEF_CHECK(check_image_size(header.width, header.height));
    REEF_CHECK(reader.skip(2));
    header.bits = REEF_TRY(reader.u16());
    const std::uint32_t compression = REEF_TRY(reader.u32());
    REEF_CHECK(reader.seek(file_header_size + 32));
    header.palette_size = REEF_TRY(reader.u32());
    header.palette_offset = file_header_size + size;

    const bool masked = header.bits == 32 && (compression == 3 || compression == 6);
    if (compression != 0 && !masked) {
        return fail(Cause::unsupported,
                    fmt::format("a BMP file with {} pixels of {} bits",
                                compression_name(compression), header.bits),
                    {}, "uncompressed 24-bit, 32-bit and 8-bit palette files are read");
    }
    if (header.bits != 8 && header.bits != 24 && header.bits != 32) {
        return fail(Cause::unsupported, fmt::format("a BMP file of {} bits per pixel", header.bits),
                    {}, "24-bit, 32-bit and 8-bit palette files are read");
    }
    if (masked) REEF_CHECK(read_masks(reader, header));
    return header;
}

struct Colour {
    std::uint8_t red = 0, green = 0, blue = 0;
};

/// Entries are blue, green, red and a spare byte. Colours beyond a short palette are black.
Result<std::array<Colour, 256>> read_palette(ByteReader& reader, const Header& header) {
    const std::uint32_t count = header.palette_size == 0 ? 256 : header.palette_size;
    if (count > 256) {
        return fail(Cause::bad_input, fmt::format("a BMP palette of {} colours", count));
    }
    std::array<Colour, 256> palette{};
    REEF_CHECK(reader.seek(header.palette_offset));
    const Bytes entries = REEF_TRY(reader.take(std::size_t{count} * 4));
    for (std::uint32_t i = 0; i < count; ++i) {
        palette[i] = {static_cast<std::uint8_t>(entries[i * 4 + 2]),
                      static_cast<std::uint8_t>(entries[i * 4 + 1]),
                      static_cast<std::uint8_t>(entries[i * 4])};
    }
    return palette;
}

}  // namespace

Result<Image> decode_bmp(Bytes file) {
    ByteReader reader(file);
    const Header header = REEF_TRY(in_place(read_header(reader), "BMP header"));
    std::array<Colour, 256> palette{};
    if (header.bits == 8) palette = REEF_TRY(in_place(read_palette(reader, header), "BMP palette"));

    const auto width = static_cast<std::size_t>(header.width);
    const auto height = static_cast<std::size_t>(header.height);
    const std::size_t pixel_size = header.bits / 8;
    const std::size_t row_size = (width * pixel_size + 3) / 4 * 4;
    REEF_CHECK(in_place(reader.seek(header.pixel_offset), "BMP pixels"));
    const Bytes pixels = REEF_TRY(in_place(reader.take(row_size * height), "BMP pixels"));

    Image image{static_cast<int>(width), static_cast<int>(height), {}};
    image.rgb.resize(width * height * 3);
    std::uint8_t* out = image.rgb.data();
    for (std::size_t y = 0; y < height; ++y) {
        const std::byte* row = &pixels[(header.top_down ? y : height - 1 - y) * row_size];
        for (std::size_t x = 0; x < width; ++x, row += pixel_size, out += 3) {
            if (header.bits == 8) {
                const Colour colour = palette[static_cast<std::uint8_t>(*row)];
                out[0] = colour.red, out[1] = colour.green, out[2] = colour.blue;
            } else {
                out[0] = static_cast<std::uint8_t>(row[header.red_byte]);
                out[1] = static_cast<std::uint8_t>(row[header.green_byte]);
                out[2] = static_cast<std::uint8_t>(row[header.blue_byte]);
            }
        }
    }
    return image;
}

}  // namespace reef::tool
