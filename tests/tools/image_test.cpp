#include "pictures/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>

#include <cstdio>
#include <random>

namespace reef::tool {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint8_t> random_pixels(int width, int height, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width) * height * 3);
    for (auto& value : rgb) value = static_cast<std::uint8_t>(random());
    return rgb;
}

void put(std::vector<std::byte>& file, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(value >> (8 * i)));
}

struct BmpForm {
    int bits = 24;
    bool top_down = false;
    std::uint32_t compression = 0;
    std::uint32_t palette_size = 0;
};

/// 8 bits: the palette is (i, 255 - i, i / 2) and the red value is the index.
std::vector<std::byte> bmp_file(const Image& image, const BmpForm& form) {
    const bool masks = form.compression == 3;
    const std::uint32_t palette = form.bits == 8 ? 1024 : masks ? 12 : 0;
    std::vector<std::byte> file = {std::byte{'B'}, std::byte{'M'}};
    put(file, 0, 4), put(file, 0, 4), put(file, 14 + 40 + palette, 4);
    put(file, 40, 4), put(file, static_cast<std::uint32_t>(image.width), 4);
    put(file, static_cast<std::uint32_t>(form.top_down ? -image.height : image.height), 4);
    put(file, 1, 2), put(file, static_cast<std::uint32_t>(form.bits), 2);
    put(file, form.compression, 4), put(file, 0, 4), put(file, 0, 4), put(file, 0, 4);
    put(file, form.palette_size, 4), put(file, 0, 4);
    if (form.bits == 8) {
        for (std::uint32_t i = 0; i < 256; ++i) {
            put(file, i / 2, 1), put(file, 255 - i, 1), put(file, i, 1), put(file, 0, 1);
        }
    }
    if (masks) put(file, 0xFF, 4), put(file, 0xFF00, 4), put(file, 0xFF0000, 4);
    for (int row = 0; row < image.height; ++row) {
        const int y = form.top_down ? row : image.height - 1 - row;
        const std::size_t start = file.size();
        for (int x = 0; x < image.width; ++x) {
            const auto* pixel = &image.rgb[(static_cast<std::size_t>(y) * image.width + x) * 3];
            if (form.bits == 8) {
                put(file, pixel[0], 1);
            } else if (masks) {
                put(file, pixel[0] | pixel[1] << 8 | pixel[2] << 16, 4);
            } else {
                put(file, static_cast<std::uint32_t>(pixel[2] | pixel[1] << 8 | pixel[0] << 16),
                    form.bits / 8);
            }
        }
        while ((file.size() - start) % 4 != 0) file.push_back(std::byte{0xEE});
    }
    return file;
}

Image palette_image(int width, int height) {
    Image image{width, height, random_pixels(width, height, 5)};
    for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
        const std::uint8_t index = image.rgb[i];
        image.rgb[i + 1] = static_cast<std::uint8_t>(255 - index);
        image.rgb[i + 2] = index / 2;
    }
    return image;
}

TEST(Bmp, EveryFormGivesThePixels) {
    for (const int width : {1, 2, 3, 4, 7}) {
        const Image image{width, 5, random_pixels(width, 5, 1)};
        for (const bool top_down : {false, true}) {
            for (const int bits : {24, 32}) {
                const auto decoded = decode_image(bmp_file(image, {bits, top_down}));
                ASSERT_TRUE(decoded) << decoded.error().message();
                EXPECT_EQ(*decoded, image) << width << " wide, " << bits << " bits";
            }
            const auto masked = decode_image(bmp_file(image, {32, top_down, 3}));
            ASSERT_TRUE(masked) << masked.error().message();
            EXPECT_EQ(*masked, image);
            const Image coloured = palette_image(width, 5);
            const auto indexed = decode_image(bmp_file(coloured, {8, top_down}));
            ASSERT_TRUE(indexed) << indexed.error().message();
            EXPECT_EQ(*indexed, coloured);
        }
    }
}

TEST(Bmp, EveryTruncationIsAnError) {
    const std::vector<std::byte> file = bmp_file(palette_image(5, 4), {8});
    for (std::size_t size = 0; size < file.size(); ++size) {
        EXPECT_FALSE(decode_image(Bytes(file).first(size))) << size << " bytes";
    }
}

TEST(Bmp, OtherFormsAreRefusedByName) {
    const Image image{2, 2, random_pixels(2, 2, 1)};
    const auto message = [&](BmpForm form) {
        const auto decoded = decode_image(bmp_file(image, form));
        return decoded ? std::string("decoded") : decoded.error().message();
    };
    EXPECT_THAT(message({4}), HasSubstr("4 bits per pixel"));
    EXPECT_THAT(message({16}), HasSubstr("16 bits per pixel"));
    EXPECT_THAT(message({8, false, 1}), HasSubstr("run-length 8-bit"));
    EXPECT_THAT(message({8, false, 0, 300}), HasSubstr("palette of 300 colours"));
}

TEST(Bmp, HostileSizesTakeNoMemory) {
    std::vector<std::byte> file = bmp_file({2, 2, random_pixels(2, 2, 1)}, {24});
    for (const std::uint32_t side : {0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 100000u, 0u}) {
        for (std::size_t i = 0; i < 4; ++i) {
            file[18 + i] = file[22 + i] = static_cast<std::byte>(side >> (8 * i));
        }
        EXPECT_FALSE(decode_image(file)) << side;
    }
}

TEST(Png, WhatIsWrittenIsRead) {
    for (const int width : {1, 3, 64}) {
        const Image image{width, 7, random_pixels(width, 7, 2)};
        const auto file = encode_png(image.width, image.height, image.rgb);
        ASSERT_TRUE(file) << file.error().message();
        const auto decoded = decode_image(*file);
        ASSERT_TRUE(decoded) << decoded.error().message();
        EXPECT_EQ(*decoded, image);
        EXPECT_EQ(*file, *encode_png(image.width, image.height, image.rgb));
    }
}

TEST(Png, RefusesPixelsOfAnotherSize) {
    EXPECT_FALSE(encode_png(2, 2, random_pixels(2, 1, 1)));
    EXPECT_FALSE(encode_png(0, 2, {}));
}

TEST(Png, DamageIsAnError) {
    const Image image{9, 9, random_pixels(9, 9, 3)};
    const std::vector<std::byte> file = *encode_png(9, 9, image.rgb);
    // The last twelve bytes are the empty IEND chunk, whose absence libpng forgives.
    for (std::size_t size = 4; size + 12 < file.size(); size += 3) {
        EXPECT_FALSE(decode_image(Bytes(file).first(size))) << size << " bytes";
    }
    std::vector<std::byte> huge = file;
    for (const std::size_t at : {16, 20}) huge[at] = std::byte{0x7F};
    EXPECT_FALSE(decode_image(huge));
}

/// One colour, so that the compression loses next to nothing.
std::vector<std::byte> jpeg_file(int width, int height, J_COLOR_SPACE space,
                                 std::span<const std::uint8_t> pixel) {
    jpeg_compress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char* memory = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&jpeg, &memory, &size);
    jpeg.image_width = static_cast<JDIMENSION>(width);
    jpeg.image_height = static_cast<JDIMENSION>(height);
    jpeg.input_components = static_cast<int>(pixel.size());
    jpeg.in_color_space = space;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    std::vector<std::uint8_t> row;
    for (int x = 0; x < width; ++x) {
        for (const std::uint8_t value : pixel) row.push_back(value);
    }
    JSAMPROW rows = row.data();
    while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, &rows, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    const auto bytes = std::as_bytes(std::span(memory, size));
    std::vector<std::byte> file(bytes.begin(), bytes.end());
    std::free(memory);
    return file;
}

TEST(Jpeg, ColourAndGreyAreRead) {
    const std::uint8_t colour[] = {200, 100, 50};
    const std::uint8_t grey[] = {77};
    const auto coloured = decode_image(jpeg_file(20, 10, JCS_RGB, colour));
    ASSERT_TRUE(coloured) << coloured.error().message();
    EXPECT_EQ(coloured->width, 20);
    EXPECT_EQ(coloured->height, 10);
    for (std::size_t i = 0; i < coloured->rgb.size(); ++i) {
        EXPECT_NEAR(coloured->rgb[i], colour[i % 3], 2);
    }
    const auto plain = decode_image(jpeg_file(3, 3, JCS_GRAYSCALE, grey));
    ASSERT_TRUE(plain) << plain.error().message();
    for (const std::uint8_t value : plain->rgb) EXPECT_NEAR(value, 77, 1);
}

/// "APP1" of a photograph: a TIFF directory of one entry, in either byte order.
std::vector<std::byte> exif(unsigned orientation, bool big) {
    const auto words = [&](std::string& out, unsigned value, int bytes) {
        for (int i = 0; i < bytes; ++i)
            out += static_cast<char>(value >> (8 * (big ? bytes - 1 - i : i)));
    };
    std::string text("Exif\0\0", 6);
    text += big ? "MM" : "II";
    for (const auto& [value, bytes] : {std::pair(42U, 2),
                                       {8U, 4},
                                       {1U, 2},
                                       {0x112U, 2},
                                       {3U, 2},
                                       {1U, 4},
                                       {orientation, 2},
                                       {0U, 2},
                                       {0U, 4}})
        words(text, value, bytes);
    const auto bytes = as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

TEST(Exif, TheTagIsFound) {
    for (unsigned orientation = 1; orientation <= 8; ++orientation)
        for (const bool big : {false, true})
            EXPECT_EQ(exif_orientation(exif(orientation, big)), orientation);
    for (const unsigned none : {0U, 9U}) EXPECT_EQ(exif_orientation(exif(none, false)), 1U);
    const auto whole = exif(6, false);
    for (std::size_t size = 0; size + 6 < whole.size(); ++size)
        EXPECT_EQ(exif_orientation(Bytes(whole).first(size)), 1U) << size;
}

TEST(Exif, PicturesAreTurned) {
    // Rows "a b c" and "d e f" as they are stored; what is shown, row by row.
    const std::vector<std::string> shown = {"abcdef", "cbafed", "fedcba", "defabc",
                                            "adbecf", "daebfc", "fcebda", "cfbead"};
    Image stored{3, 2, {}};
    for (const char letter : std::string("abcdef"))
        stored.rgb.insert(stored.rgb.end(), 3, static_cast<std::uint8_t>(letter));
    for (unsigned orientation = 1; orientation <= 8; ++orientation) {
        const Image image = oriented(stored, orientation);
        EXPECT_EQ(image.width, orientation < 5 ? 3 : 2);
        EXPECT_EQ(image.height, orientation < 5 ? 2 : 3);
        std::string letters;
        for (std::size_t i = 0; i < image.rgb.size(); i += 3)
            letters += static_cast<char>(image.rgb[i]);
        EXPECT_EQ(letters, shown[orientation - 1]) << orientation;
    }
}

TEST(Exif, PhotographsAreReadAsTheyAreShown) {
    const std::uint8_t grey[] = {77};
    auto file = jpeg_file(20, 10, JCS_GRAYSCALE, grey);
    const auto tag = exif(6, true);
    std::vector<std::byte> marker = {std::byte{0xFF}, std::byte{0xE1}, std::byte{0},
                                     static_cast<std::byte>(tag.size() + 2)};
    marker.insert(marker.end(), tag.begin(), tag.end());
    file.insert(file.begin() + 2, marker.begin(), marker.end());
    const auto image = decode_image(file);
    ASSERT_TRUE(image) << image.error().message();
    EXPECT_EQ(image->width, 10);
    EXPECT_EQ(image->height, 20);
}

TEST(Jpeg, CmykIsRefusedByName) {
    const std::uint8_t ink[] = {1, 2, 3, 4};
    const auto decoded = decode_image(jpeg_file(8, 8, JCS_CMYK, ink));
    ASSERT_FALSE(decoded);
    EXPECT_THAT(decoded.error().message(), HasSubstr("CMYK"));
}

TEST(Jpeg, EveryTruncationIsAnError) {
    const std::uint8_t colour[] = {10, 20, 30};
    const std::vector<std::byte> file = jpeg_file(40, 40, JCS_RGB, colour);
    // Two bytes mark the end of the picture.
    for (std::size_t size = 3; size + 2 < file.size(); ++size) {
        EXPECT_FALSE(decode_image(Bytes(file).first(size))) << size << " of " << file.size();
    }
}

TEST(Pictures, OtherFilesAreNamed) {
    EXPECT_THAT(decode_image(as_bytes("GIF89a....")).error().message(),
                HasSubstr("BMP, PNG and JPEG"));
    EXPECT_THAT(decode_image({}).error().message(), HasSubstr("empty"));
    EXPECT_FALSE(check_image_size(1 << 20, 1 << 20));
    EXPECT_TRUE(check_image_size(8192, 8192));
}

}  // namespace
}  // namespace reef::tool
