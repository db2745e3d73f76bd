// A stroke font for pictures: printable ASCII as pen strokes, smooth at any size.
#pragma once

#include <string_view>
#include <vector>

namespace reef::drawing {

struct Point {
    double x = 0;
    double y = 0;
};
using Stroke = std::vector<Point>;

/// The strokes of one line of text whose baseline starts at (0, 0), x to the right, y down, with
/// capitals `cap_height` tall. Curves are given as short chords. A stroke of one point is a dot.
/// Characters outside printable ASCII show as an empty box.
[[nodiscard]] std::vector<Stroke> text_strokes(std::string_view text, double cap_height);

/// Width of the text from the first stroke's left edge to the last one's right edge.
[[nodiscard]] double text_width(std::string_view text, double cap_height);

}  // namespace reef::drawing
