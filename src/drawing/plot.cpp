#include "reef/drawing/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reef::drawing {
namespace {

constexpr Color background{255, 255, 255};
constexpr Color shade{238, 241, 238};
constexpr Color grid{228, 230, 234};
constexpr Color axis{120, 128, 140};
constexpr Color ink{28, 34, 46};
constexpr Color quiet{98, 108, 124};

class Painter {
  public:
    Painter(Canvas& canvas, const Plot& plot) : canvas_(canvas), plot_(plot) {}

    void draw() {
        canvas_.fill(plot_.area, background);
        shaded();
        axes();
        if (plot_.level) level();
        for (const Series& series : plot_.series) curve(series);
        if (plot_.series.size() > 1) legend();
    }

  private:
    [[nodiscard]] double x_of(double x) const {
        return plot_.area.x + x / plot_.x_max * plot_.area.width;
    }
    [[nodiscard]] double y_of(double y) const {
        return plot_.area.y + plot_.area.height * (1 - y / plot_.y_max);
    }
    [[nodiscard]] double left() const { return plot_.area.x; }
    [[nodiscard]] double right() const { return plot_.area.x + plot_.area.width; }
    [[nodiscard]] double top() const { return plot_.area.y; }
    [[nodiscard]] double bottom() const { return plot_.area.y + plot_.area.height; }

    void shaded() {
        if (plot_.shaded_until <= 0) return;
        const int width = static_cast<int>(x_of(plot_.shaded_until)) - plot_.area.x;
        canvas_.fill({plot_.area.x, plot_.area.y, width, plot_.area.height}, shade);
        canvas_.text({left() + width / 2.0, top() + 20}, plot_.shaded_text, 10, quiet,
                     Anchor::middle);
    }

    void axes() {
        canvas_.text({left() - 44, top() - 14}, plot_.title, 12, ink, Anchor::left, 1.2);
        const double y_step = tick_step(plot_.y_max, 6);
        for (double y = 0; y <= plot_.y_max * 1.0001; y += y_step) {
            canvas_.line({left(), y_of(y)}, {right(), y_of(y)}, 1, grid);
            canvas_.text({left() - 10, y_of(y) + 5}, fmt::format("{:.4g}", y), 10, ink,
                         Anchor::right);
        }
        const double x_step = tick_step(plot_.x_max, 8);
        for (double x = 0; x <= plot_.x_max * 1.0001; x += x_step) {
            canvas_.line({x_of(x), bottom()}, {x_of(x), bottom() + 5}, 1, axis);
            canvas_.text({x_of(x), bottom() + 20}, fmt::format("{:.4g}", x), 10, ink,
                         Anchor::middle);
        }
        canvas_.text({(left() + right()) / 2, bottom() + 42}, plot_.x_title, 11, ink,
                     Anchor::middle);
        canvas_.line({left(), top()}, {left(), bottom()}, 1.4, axis);
        canvas_.line({left(), bottom()}, {right(), bottom()}, 1.4, axis);
        for (const double mark : plot_.marks) triangle(x_of(mark));
    }

    void triangle(double x) {
        for (int i = 0; i < 8; ++i) {
            canvas_.line({x - i / 2.0, bottom() - 8 + i}, {x + i / 2.0, bottom() - 8 + i}, 1, ink);
        }
    }

    void level() {
        const double y = y_of(*plot_.level);
        canvas_.dashed_line({left(), y}, {right(), y}, 1.4, 5, axis);
        canvas_.text({right() - 8, y + 16}, plot_.level_text, 10, quiet, Anchor::right);
    }

    void curve(const Series& series) {
        for (std::size_t i = 0; i < series.points.size(); ++i) {
            const Point p{x_of(series.points[i].x), std::max(top(), y_of(series.points[i].y))};
            if (i > 0) {
                const Point before{x_of(series.points[i - 1].x),
                                   std::max(top(), y_of(series.points[i - 1].y))};
                canvas_.line(before, p, 2.2, series.color);
            }
            if (!series.dots) continue;
            canvas_.dot(p, 4, series.color);
            if (series.points[i].y > plot_.y_max) canvas_.dot(p, 2, background);
        }
    }

    void legend() {
        double y = top() + 20;
        for (const Series& series : plot_.series) {
            const double x = right() - 14 - text_width(series.name, 11);
            canvas_.line({x - 44, y - 5}, {x - 12, y - 5}, 2.2, series.color);
            if (series.dots) canvas_.dot({x - 28, y - 5}, 4, series.color);
            canvas_.text({x, y}, series.name, 11, ink);
            y += 22;
        }
    }

    Canvas& canvas_;
    const Plot& plot_;
};

}  // namespace

double tick_step(double range, int most) {
    double step = std::pow(10, std::floor(std::log10(range / most)));
    for (const double factor : {2.0, 2.5, 2.0}) {
        if (range / step <= most) return step;
        step *= factor;
    }
    return step;
}

void draw_plot(Canvas& canvas, const Plot& plot) {
    Painter(canvas, plot).draw();
}

}  // namespace reef::drawing
