// JPEG through libjpeg. Its errors end in a long jump: decode() therefore holds only objects
// without destructors, and what it fills belongs to the caller.
#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>

// After <cstdio>: it uses FILE without declaring it.
#include <jpeglib.h>

#include "pictures/image.h"

namespace reef::tool {
namespace {

struct ErrorManager {
    jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
    std::jmp_buf on_error;
    char message[JMSG_LENGTH_MAX];
};

extern "C" {
static void leave(j_common_ptr info) {
    auto* manager = reinterpret_cast<ErrorManager*>(info->err);
    info->err->format_message(info, manager->message);
    std::longjmp(manager->on_error, 1);
}
static void stay_silent(j_common_ptr) {}
}

enum class Outcome : std::uint8_t { decoded, broken, refused };

/// What a decode leaves behind for its caller.
struct Decoded {
    Image image;
    Error refusal;
    unsigned orientation = 1;
};

constexpr int exif_marker = JPEG_APP0 + 1;

/// As in accept_header(): not inlined.
[[gnu::noinline]] unsigned orientation_of(const jpeg_decompress_struct& jpeg) {
    for (const auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next)
        if (marker->marker == exif_marker)
            return exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
    return 1;
}

/// Takes the picture's memory once its size is known. Not inlined: its locals must not live in the
/// function that longjmp returns to.
[[gnu::noinline]] bool accept_header(jpeg_decompress_struct& jpeg, Decoded& decoded) {
    if (auto size = check_image_size(jpeg.image_width, jpeg.image_height); !size) {
        decoded.refusal = size.error();
        return false;
    }
    if (jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK) {
        decoded.refusal = {
            Cause::unsupported, "a JPEG file in CMYK colours", {}, "convert it to RGB"};
        return false;
    }
    decoded.image.width = static_cast<int>(jpeg.image_width);
    decoded.image.height = static_cast<int>(jpeg.image_height);
    decoded.image.rgb.resize(std::size_t{jpeg.image_width} * jpeg.image_height * 3);
    return true;
}

Outcome decode(Bytes file, jpeg_decompress_struct& jpeg, ErrorManager& errors, Decoded& decoded) {
    if (setjmp(errors.on_error) != 0) return Outcome::broken;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_save_markers(&jpeg, exif_marker, 0xffff);
    jpeg_read_header(&jpeg, TRUE);
    decoded.orientation = orientation_of(jpeg);
    if (!accept_header(jpeg, decoded)) return Outcome::refused;
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    const std::size_t row_size = std::size_t{jpeg.output_width} * 3;
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = decoded.image.rgb.data() + jpeg.output_scanline * row_size;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    return Outcome::decoded;
}

}  // namespace

Result<Image> decode_jpeg(Bytes file) {
    jpeg_decompress_struct jpeg{};
    ErrorManager errors{};
    Decoded decoded;
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave;
    errors.base.output_message = stay_silent;
    const Outcome outcome = decode(file, jpeg, errors, decoded);
    const long warnings = errors.base.num_warnings;
    if (outcome == Outcome::decoded && warnings > 0) {
        errors.base.format_message(reinterpret_cast<j_common_ptr>(&jpeg), errors.message);
    }
    jpeg_destroy_decompress(&jpeg);
    if (outcome == Outcome::refused) return std::unexpected(std::move(decoded.refusal));
    // libjpeg fills what a truncated file lacks with grey and calls it a warning.
    if (outcome == Outcome::broken || warnings > 0) {
        return fail(Cause::bad_input, fmt::format("unreadable JPEG file: {}", errors.message));
    }
    return oriented(std::move(decoded.image), decoded.orientation);
}

}  // namespace reef::tool
