// A small line plot on a Canvas.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reef/drawing/canvas.h"

namespace reef::drawing {

struct Series {
    std::string name;
    Color color;
    bool dots = false;
    std::vector<Point> points;  ///< in the units of the axes, x ascending
};

/// Both axes begin at zero. Values above y_max show as an open ring at the upper edge.
struct Plot {
    Area area;  ///< inside the axes; numbers and titles lie around it
    std::string title;
    std::string x_title;
    double x_max = 1;
    double y_max = 1;
    double shaded_until = 0;  ///< x
    std::string shaded_text;
    std::vector<double> marks;    ///< x of small triangles on the x axis
    std::optional<double> level;  ///< y of a dashed line
    std::string level_text;
    std::vector<Series> series;  ///< drawn in this order; named in the legend when there are two
};

void draw_plot(Canvas& canvas, const Plot& plot);

/// The step 1, 2 or 5 times a power of ten that divides 0 to `range` into at most `most` parts.
[[nodiscard]] double tick_step(double range, int most);

}  // namespace reef::drawing
