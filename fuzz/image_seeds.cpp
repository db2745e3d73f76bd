#include <png.h>
// jpeglib.h needs these two before it.
#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "seeds.h"

namespace reef::fuzz {
namespace {

constexpr int width = 5;
constexpr int height = 3;

std::vector<std::byte> bytes_of(const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    return {begin, begin + size};
}

std::array<std::uint8_t, width * height * 3> pixels() {
    std::array<std::uint8_t, width * height * 3> rgb{};
    for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * 37);
    return rgb;
}

/// Rows of `bits` per pixel behind the two headers and a palette of 256 colours if bits is 8.
std::vector<std::byte> bmp(int bits, bool top_down) {
    const std::uint32_t palette = bits == 8 ? 256 * 4 : 0;
    const std::uint32_t row = static_cast<std::uint32_t>((width * bits / 8 + 3) / 4 * 4);
    std::vector<std::uint8_t> file(54 + palette + row * height);
    const auto put = [&](std::size_t at, std::uint32_t value, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i)
            file[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    };
    file[0] = 'B';
    file[1] = 'M';
    put(2, static_cast<std::uint32_t>(file.size()), 4);
    put(10, 54 + palette, 4);
    put(14, 40, 4);
    put(18, width, 4);
    put(22, static_cast<std::uint32_t>(top_down ? -height : height), 4);
    put(26, 1, 2);
    put(28, static_cast<std::uint32_t>(bits), 2);
    for (std::size_t i = 54; i < file.size(); ++i) file[i] = static_cast<std::uint8_t>(i * 11);
    return bytes_of(file.data(), file.size());
}

std::vector<std::byte> png(std::uint32_t format) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width;
    image.height = height;
    image.format = format;
    const std::vector<std::uint8_t> samples(PNG_IMAGE_SIZE(image), 99);
    std::vector<std::byte> file(4096);
    png_alloc_size_t size = file.size();
    if (png_image_write_to_memory(&image, file.data(), &size, 0, samples.data(), 0, nullptr) == 0)
        return {};
    file.resize(size);
    return file;
}

std::vector<std::byte> jpeg(bool progressive) {
    jpeg_compress_struct state{};
    jpeg_error_mgr errors{};
    state.err = jpeg_std_error(&errors);
    jpeg_create_compress(&state);
    unsigned char* buffer = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&state, &buffer, &size);
    state.image_width = width;
    state.image_height = height;
    state.input_components = 3;
    state.in_color_space = JCS_RGB;
    jpeg_set_defaults(&state);
    if (progressive) jpeg_simple_progression(&state);
    jpeg_start_compress(&state, TRUE);
    auto rgb = pixels();
    for (int y = 0; y < height; ++y) {
        JSAMPROW line = rgb.data() + y * width * 3;
        jpeg_write_scanlines(&state, &line, 1);
    }
    jpeg_finish_compress(&state);
    auto file = bytes_of(buffer, size);
    jpeg_destroy_compress(&state);
    std::free(buffer);
    return file;
}

}  // namespace

Result<Seeds> image_seeds() {
    return Seeds{{"8.bmp", bmp(8, false)},           {"24.bmp", bmp(24, false)},
                 {"32_top_down.bmp", bmp(32, true)}, {"rgb.png", png(PNG_FORMAT_RGB)},
                 {"rgba.png", png(PNG_FORMAT_RGBA)}, {"grey.png", png(PNG_FORMAT_GRAY)},
                 {"baseline.jpg", jpeg(false)},      {"progressive.jpg", jpeg(true)}};
}

}  // namespace reef::fuzz
