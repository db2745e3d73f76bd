// PNG through libpng's simplified interface, which keeps its long jumps to itself.
#include <fmt/format.h>
#include <png.h>

#include <cstring>

#include "pictures/image.h"

namespace reef::tool {
namespace {

/// A png_image that is always freed.
class PngImage {
  public:
    PngImage() { control_.version = PNG_IMAGE_VERSION; }
    PngImage(const PngImage&) = delete;
    PngImage& operator=(const PngImage&) = delete;
    ~PngImage() { png_image_free(&control_); }

    [[nodiscard]] png_image* operator->() { return &control_; }
    [[nodiscard]] png_image* get() { return &control_; }
    [[nodiscard]] std::string message() const {
        return std::string(control_.message, strnlen(control_.message, sizeof control_.message));
    }

  private:
    png_image control_{};
};

}  // namespace

Result<Image> decode_png(Bytes file) {
    PngImage png;
    if (png_image_begin_read_from_memory(png.get(), file.data(), file.size()) == 0) {
        return fail(Cause::bad_input, fmt::format("unreadable PNG file: {}", png.message()));
    }
    REEF_CHECK(check_image_size(png->width, png->height));
    // RGBA, so that libpng does not blend transparent pixels with a background.
    png->format = PNG_FORMAT_RGBA;
    png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    std::vector<std::uint8_t> rgba(PNG_IMAGE_SIZE(*png.get()));
    if (png_image_finish_read(png.get(), nullptr, rgba.data(), 0, nullptr) == 0) {
        return fail(Cause::bad_input, fmt::format("unreadable PNG file: {}", png.message()));
    }
    Image image{static_cast<int>(png->width), static_cast<int>(png->height), {}};
    image.rgb.resize(rgba.size() / 4 * 3);
    for (std::size_t from = 0, to = 0; from < rgba.size(); from += 4, to += 3) {
        std::memcpy(&image.rgb[to], &rgba[from], 3);
    }
    return image;
}

Result<std::vector<std::byte>> encode_png(int width, int height,
                                          std::span<const std::uint8_t> rgb) {
    REEF_CHECK(check_image_size(width, height));
    const std::size_t expected = static_cast<std::size_t>(width) * height * 3;
    if (rgb.size() != expected) {
        return fail(Cause::bad_argument, fmt::format("{} bytes of pixels for {}x{}, which needs {}",
                                                     rgb.size(), width, height, expected));
    }
    PngImage png;
    png->width = static_cast<png_uint_32>(width);
    png->height = static_cast<png_uint_32>(height);
    png->format = PNG_FORMAT_RGB;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(*png.get());
    std::vector<std::byte> file(size);
    if (png_image_write_to_memory(png.get(), file.data(), &size, 0, rgb.data(), 0, nullptr) == 0) {
        return fail(Cause::io_failed, fmt::format("libpng: {}", png.message()));
    }
    file.resize(size);
    return file;
}

}  // namespace reef::tool
