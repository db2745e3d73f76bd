// An RGB picture to draw on: filled areas, smooth lines, text, magnified tiles.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "reef/drawing/stroke_font.h"

namespace reef::drawing {

struct Color {
    std::uint8_t r = 0, g = 0, b = 0;
    friend bool operator==(const Color&, const Color&) = default;
};

/// a for t = 0, b for t = 1.
[[nodiscard]] Color mix(Color a, Color b, double t);

enum class Anchor : std::uint8_t { left, middle, right };

struct Area {
    int x = 0, y = 0, width = 0, height = 0;
};

/// Coordinates in pixels from the top left corner; what lies outside is clipped.
class Canvas {
  public:
    Canvas(int width, int height, Color background);

    [[nodiscard]] int width() const { return width_; }
    [[nodiscard]] int height() const { return height_; }
    /// height x width x 3 bytes, row by row.
    [[nodiscard]] const std::vector<std::uint8_t>& rgb() const { return rgb_; }
    [[nodiscard]] Color at(int x, int y) const;

    void fill(Area area, Color color);
    /// A border `thickness` wide just outside the area.
    void outline(Area area, int thickness, Color color);
    void line(Point from, Point to, double thickness, Color color);
    /// `dash` pixels on, as many off.
    void dashed_line(Point from, Point to, double thickness, double dash, Color color);
    void polyline(const std::vector<Point>& points, double thickness, Color color);
    void dot(Point center, double radius, Color color);
    /// `at` is the left, middle or right end of the baseline. `weight` multiplies the pen's width.
    void text(Point at, std::string_view text, double cap_height, Color color,
              Anchor anchor = Anchor::left, double weight = 1);
    /// A picture of columns x rows whose pixels are `zoom` canvas pixels wide.
    void tile(int x, int y, int columns, int rows, int zoom,
              const std::function<Color(int column, int row)>& pixel);

  private:
    void blend(int x, int y, Color color, double coverage);
    int width_;
    int height_;
    std::vector<std::uint8_t> rgb_;
};

}  // namespace reef::drawing
