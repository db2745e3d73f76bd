// How photographs are turned: the orientation tag of Exif 2.3 (a TIFF directory in a JPEG file).
#include <algorithm>
#include <optional>
#include <string_view>

#include "pictures/image.h"

namespace reef::tool {
namespace {

/// Numbers of a TIFF file, in the byte order that its first bytes name.
class TiffReader {
  public:
    static std::optional<TiffReader> of(Bytes file) {
        const std::string_view order = as_text(file.first(std::min<std::size_t>(2, file.size())));
        if (order != "II" && order != "MM") return std::nullopt;
        return TiffReader(file, order == "MM");
    }
    /// Nothing beyond the end.
    [[nodiscard]] std::optional<std::uint32_t> number(std::size_t at, std::size_t bytes) const {
        if (at > file_.size() || file_.size() - at < bytes) return std::nullopt;
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i) {
            const auto byte =
                std::to_integer<std::uint32_t>(file_[at + (big_ ? i : bytes - 1 - i)]);
            value = value << 8 | byte;
        }
        return value;
    }

  private:
    TiffReader(Bytes file, bool big) : file_(file), big_(big) {}
    Bytes file_;
    bool big_;
};

}  // namespace

unsigned exif_orientation(Bytes app1) {
    constexpr std::string_view exif("Exif\0\0", 6);
    constexpr std::uint32_t orientation_tag = 0x0112;
    constexpr std::size_t directory_at = 4, entry_bytes = 12, value_at = 8;
    if (!as_text(app1).starts_with(exif)) return 1;
    const auto tiff = TiffReader::of(app1.subspan(exif.size()));
    if (!tiff) return 1;
    const auto directory = tiff->number(directory_at, 4);
    const auto entries = directory ? tiff->number(*directory, 2) : std::nullopt;
    for (std::uint32_t i = 0; i < entries.value_or(0); ++i) {
        const std::size_t entry = std::size_t{*directory} + 2 + i * entry_bytes;
        const auto tag = tiff->number(entry, 2);
        if (!tag) return 1;
        if (*tag != orientation_tag) continue;
        const auto value = tiff->number(entry + value_at, 2);
        return value && *value >= 1 && *value <= 8 ? *value : 1;
    }
    return 1;
}

Image oriented(Image image, unsigned orientation) {
    if (orientation == 1) return image;
    const bool exchanged = orientation >= 5;
    // Where the shown picture's first row and column begin in the stored one.
    const bool from_bottom =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool from_right =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const auto width = static_cast<std::size_t>(image.width);
    const auto height = static_cast<std::size_t>(image.height);
    Image out{exchanged ? image.height : image.width, exchanged ? image.width : image.height, {}};
    out.rgb.resize(image.rgb.size());
    auto* pixel = out.rgb.data();
    for (std::size_t row = 0; row < static_cast<std::size_t>(out.height); ++row)
        for (std::size_t column = 0; column < static_cast<std::size_t>(out.width); ++column) {
            const std::size_t down = exchanged ? column : row, across = exchanged ? row : column;
            const std::size_t y = from_bottom ? height - 1 - down : down;
            const std::size_t x = from_right ? width - 1 - across : across;
            pixel = std::copy_n(&image.rgb[(y * width + x) * 3], 3, pixel);
        }
    return out;
}

}  // namespace reef::tool
