// Pictures: BMP, PNG and JPEG files to RGB pixels, and RGB pixels to PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::tool {

/// Rows from top to bottom, pixels from left to right, one byte each of red, green and blue.
struct Image {
    int width = 0;
    int height = 0;
    std::vector<std::uint8_t> rgb;  ///< height * width * 3

    friend bool operator==(const Image&, const Image&) = default;
};

/// Larger pictures are refused before any memory is taken for them.
inline constexpr std::int64_t max_image_pixels = std::int64_t{64} * 1024 * 1024;

/// True when the bytes start like one of the formats that decode_image() knows.
[[nodiscard]] bool looks_like_image(Bytes file);

/// BMP, PNG or JPEG, told apart by their first bytes. Transparency is dropped, grey is repeated
/// over the three channels, 16-bit samples are reduced to 8, and photographs are turned as
/// their orientation tag (Exif) says.
[[nodiscard]] Result<Image> decode_image(Bytes file);

/// As Exif counts them: how a stored picture is to be shown. 1 as it is, 2 mirrored, 3 turned by
/// 180 degrees, 4 upside down, 5 to 8 with rows and columns exchanged: 5 transposed, 6 to be turned
/// clockwise, 7 transposed along the other diagonal, 8 to be turned counter-clockwise.
/// Precondition: 1 to 8.
[[nodiscard]] Image oriented(Image image, unsigned orientation);
/// Of the payload of a JPEG file's APP1 marker; 1 when it holds none, or no Exif.
[[nodiscard]] unsigned exif_orientation(Bytes app1);

/// Windows bitmaps, uncompressed: 24 and 32 bits per pixel, 8 bits with a palette; rows bottom up
/// or top down. Others are refused by name.
[[nodiscard]] Result<Image> decode_bmp(Bytes file);
[[nodiscard]] Result<Image> decode_png(Bytes file);
/// CMYK files are refused by name.
[[nodiscard]] Result<Image> decode_jpeg(Bytes file);

/// `rgb` holds height * width * 3 bytes. Equal pixels give equal files.
[[nodiscard]] Result<std::vector<std::byte>> encode_png(int width, int height,
                                                        std::span<const std::uint8_t> rgb);

/// Errors: bad_input when a side is not positive, unsupported above max_image_pixels.
[[nodiscard]] Status check_image_size(std::int64_t width, std::int64_t height);

}  // namespace reef::tool
