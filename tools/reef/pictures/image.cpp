#include "pictures/image.h"

#include <fmt/format.h>

namespace reef::tool {
namespace {

bool starts_with(Bytes file, std::string_view magic) {
    return as_text(file).starts_with(magic);
}

constexpr std::string_view bmp_magic = "BM";
constexpr std::string_view png_magic = "\x89PNG";
constexpr std::string_view jpeg_magic = "\xFF\xD8\xFF";

}  // namespace

bool looks_like_image(Bytes file) {
    return starts_with(file, bmp_magic) || starts_with(file, png_magic) ||
           starts_with(file, jpeg_magic);
}

Result<Image> decode_image(Bytes file) {
    if (starts_with(file, bmp_magic)) return decode_bmp(file);
    if (starts_with(file, png_magic)) return decode_png(file);
    if (starts_with(file, jpeg_magic)) return decode_jpeg(file);
    if (file.empty()) return fail(Cause::bad_input, "the file is empty");
    return fail(Cause::bad_input, "not a picture that reef reads", {},
                "BMP, PNG and JPEG files are read");
}

Status check_image_size(std::int64_t width, std::int64_t height) {
    if (width <= 0 || height <= 0) {
        return fail(Cause::bad_input, fmt::format("a picture of {}x{} pixels", width, height));
    }
    if (height > max_image_pixels || width > max_image_pixels / height) {
        return fail(Cause::unsupported,
                    fmt::format("a picture of {}x{} pixels is too large", width, height), {},
                    fmt::format("at most {} pixels are read", max_image_pixels));
    }
    return {};
}

}  // namespace reef::tool
