#include "reef/drawing/canvas.h"

#include <algorithm>
#include <cmath>

namespace reef::drawing {
namespace {

double distance_to_segment(Point p, Point a, Point b) {
    const double dx = b.x - a.x;
    const double dy = b.y - a.y;
    const double length2 = dx * dx + dy * dy;
    const double t =
        length2 == 0 ? 0 : std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0);
    return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

}  // namespace

Color mix(Color a, Color b, double t) {
    t = std::clamp(t, 0.0, 1.0);
    const auto channel = [t](std::uint8_t from, std::uint8_t to) {
        return static_cast<std::uint8_t>(std::lround(from + (to - from) * t));
    };
    return {channel(a.r, b.r), channel(a.g, b.g), channel(a.b, b.b)};
}

Canvas::Canvas(int width, int height, Color background) : width_(width), height_(height) {
    rgb_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
    fill({0, 0, width, height}, background);
}

Color Canvas::at(int x, int y) const {
    const auto i = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                    static_cast<std::size_t>(x)) *
                   3;
    return {rgb_[i], rgb_[i + 1], rgb_[i + 2]};
}

void Canvas::blend(int x, int y, Color color, double coverage) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_ || coverage <= 0) return;
    const Color mixed = mix(at(x, y), color, coverage);
    const auto i = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                    static_cast<std::size_t>(x)) *
                   3;
    rgb_[i] = mixed.r;
    rgb_[i + 1] = mixed.g;
    rgb_[i + 2] = mixed.b;
}

void Canvas::fill(Area area, Color color) {
    for (int y = area.y; y < area.y + area.height; ++y) {
        for (int x = area.x; x < area.x + area.width; ++x) blend(x, y, color, 1);
    }
}

void Canvas::outline(Area a, int t, Color color) {
    fill({a.x - t, a.y - t, a.width + 2 * t, t}, color);
    fill({a.x - t, a.y + a.height, a.width + 2 * t, t}, color);
    fill({a.x - t, a.y, t, a.height}, color);
    fill({a.x + a.width, a.y, t, a.height}, color);
}

void Canvas::line(Point from, Point to, double thickness, Color color) {
    polyline({from, to}, thickness, color);
}

void Canvas::dashed_line(Point from, Point to, double thickness, double dash, Color color) {
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const auto along = [&](double d) {
        const double t = length == 0 ? 0 : d / length;
        return Point{from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t};
    };
    for (double d = 0; d < length; d += 2 * dash) {
        line(along(d), along(std::min(d + dash, length)), thickness, color);
    }
}

// The whole line is covered once: where its segments meet, the nearest one counts.
void Canvas::polyline(const std::vector<Point>& points, double thickness, Color color) {
    if (points.empty()) return;
    const double reach = thickness / 2 + 1;
    const auto [left, right] = std::ranges::minmax(points, {}, &Point::x);
    const auto [top, bottom] = std::ranges::minmax(points, {}, &Point::y);
    const int last_x = std::min(width_ - 1, static_cast<int>(std::ceil(right.x + reach)));
    const int last_y = std::min(height_ - 1, static_cast<int>(std::ceil(bottom.y + reach)));
    for (int y = std::max(0, static_cast<int>(std::floor(top.y - reach))); y <= last_y; ++y) {
        for (int x = std::max(0, static_cast<int>(std::floor(left.x - reach))); x <= last_x; ++x) {
            const Point p{x + 0.5, y + 0.5};
            double nearest = distance_to_segment(p, points.front(), points.front());
            for (std::size_t i = 1; i < points.size(); ++i) {
                nearest = std::min(nearest, distance_to_segment(p, points[i - 1], points[i]));
            }
            blend(x, y, color, std::clamp(thickness / 2 + 0.5 - nearest, 0.0, 1.0));
        }
    }
}

void Canvas::dot(Point center, double radius, Color color) {
    polyline({center}, 2 * radius, color);
}

void Canvas::text(Point at, std::string_view text, double cap_height, Color color, Anchor anchor,
                  double weight) {
    const double width = text_width(text, cap_height);
    const double left = anchor == Anchor::left     ? at.x
                        : anchor == Anchor::middle ? at.x - width / 2
                                                   : at.x - width;
    const double pen = std::max(1.1, cap_height * 0.13) * weight;
    for (Stroke& stroke : text_strokes(text, cap_height)) {
        for (Point& p : stroke) p = {p.x + left, p.y + at.y};
        const bool is_dot = stroke.size() == 1;
        polyline(stroke, is_dot ? pen * 1.3 : pen, color);
    }
}

void Canvas::tile(int x, int y, int columns, int rows, int zoom,
                  const std::function<Color(int, int)>& pixel) {
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            fill({x + column * zoom, y + row * zoom, zoom, zoom}, pixel(column, row));
        }
    }
}

}  // namespace reef::drawing
