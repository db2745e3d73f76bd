// BMP, PNG and JPEG: what decodes has as many pixels as it says, and survives PNG.
#include "check.h"
#include "pictures/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using reef::fuzz::check;
    const auto image = reef::tool::decode_image(std::as_bytes(std::span(data, size)));
    if (!image) {
        check(!image.error().what.empty(), "an error says what is wrong");
        return 0;
    }
    const auto pixels =
        static_cast<std::size_t>(image->width) * static_cast<std::size_t>(image->height);
    check(pixels > 0 && image->rgb.size() == pixels * 3, "every pixel has three bytes");
    if (pixels > 10'000) return 0;
    const auto file = reef::tool::encode_png(image->width, image->height, image->rgb);
    check(file.has_value(), "a picture can be written");
    const auto again = reef::tool::decode_image(*file);
    check(again.has_value() && *again == *image, "PNG keeps every pixel");
    return 0;
}
