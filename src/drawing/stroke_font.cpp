#include "reef/drawing/stroke_font.h"

#include <algorithm>
#include <array>

namespace reef::drawing {
namespace {

// One entry per character from '!' to '~'. A stroke is a list of points, each two digits x and y;
// strokes are parted by ';'. The baseline is y = 3, lower case reaches 7, capitals 9, descenders 0.
// '~' begins a curve: its inner points are the control points of a quadratic B-spline; a curve that
// ends where it began is closed.
constexpr std::array<std::string_view, 94> glyphs{
    "09 05;03",                                        // !
    "09 07;29 27",                                     // "
    "19 13;39 33;07 47;05 45",                         // #
    "~48 49 09 06 46 43 03 04;29 23",                  // $
    "49 03;~07 09 29 27 07;~23 25 45 43 23",           // %
    "~43 08 09 39 37 05 03 33 45",                     // &
    "09 07",                                           // '
    "~19 08 03 12",                                    // (
    "~09 18 13 02",                                    // )
    "28 24;07 45;47 05",                               // *
    "27 23;05 45",                                     // +
    "13 01",                                           // ,
    "05 25",                                           // -
    "03",                                              // .
    "02 39",                                           // /
    "~09 03 43 49 09",                                 // 0
    "07 29 23;03 43",                                  // 1
    "~08 09 49 46 03;03 43",                           // 2
    "~08 09 49 46 16;~16 46 43 03 04",                 // 3
    "33 39 05 45",                                     // 4
    "49 09 06;~06 46 43 03 04",                        // 5
    "~49 09 04;~03 06 46 43 03",                       // 6
    "09 49 13",                                        // 7
    "~06 09 49 46 06;~03 06 46 43 03",                 // 8
    "~06 09 49 46 06;~03 43 48",                       // 9
    "06;03",                                           // :
    "06;03 01",                                        // ;
    "37 05 33",                                        // <
    "06 36;04 34",                                     // =
    "07 35 03",                                        // >
    "~08 09 49 46 25;23",                              // ?
    "~36 16 14 34 36;~36 34 44 47 49 09 03 43",        // @
    "03 29 43;15 35",                                  // A
    "03 09 29;~29 49 46 26;06 26;~26 46 43 23;23 03",  // B
    "~48 49 09 03 43 44",                              // C
    "03 09 19;~19 49 43 13;13 03",                     // D
    "49 09 03 43;06 36",                               // E
    "49 09 03;06 36",                                  // F
    "~48 49 09 03 43 46;46 26",                        // G
    "09 03;49 43;06 46",                               // H
    "09 03",                                           // I
    "39 35;~35 33 03 05",                              // J
    "09 03;49 05;16 43",                               // K
    "09 03 43",                                        // L
    "03 09 25 49 43",                                  // M
    "03 09 43 49",                                     // N
    "~09 03 43 49 09",                                 // O
    "03 09 29;~29 49 46 26;26 06",                     // P
    "~09 03 43 49 09;25 42",                           // Q
    "03 09 29;~29 49 46 26;26 06;26 43",               // R
    "~48 49 09 06 46 43 03 04",                        // S
    "09 49;29 23",                                     // T
    "09 05;~05 03 43 45;45 49",                        // U
    "09 23 49",                                        // V
    "09 13 28 33 49",                                  // W
    "09 43;49 03",                                     // X
    "09 26 49;26 23",                                  // Y
    "09 49 03 43",                                     // Z
    "19 09 02 12",                                     // [
    "09 32",                                           // backslash
    "09 19 12 02",                                     // ]
    "07 29 47",                                        // ^
    "02 42",                                           // _
    "09 17",                                           // `
    "~07 03 33 37 07;37 33",                           // a
    "09 03;~07 03 33 37 07",                           // b
    "~36 37 07 03 33 34",                              // c
    "39 33;~07 03 33 37 07",                           // d
    "05 35;~35 37 07 03 33 34",                        // e
    "~29 19 17;17 13;07 27",                           // f
    "~07 03 33 37 07;37 32;~32 30 00 01",              // g
    "09 03;~05 07 37 35;35 33",                        // h
    "07 03;09",                                        // i
    "17 12;~12 10 00;19",                              // j
    "09 03;37 05 33",                                  // k
    "09 04;~04 03 13",                                 // l
    "07 03;~05 07 27 25;25 23;~25 27 47 45;45 43",     // m
    "07 03;~05 07 37 35;35 33",                        // n
    "~07 03 33 37 07",                                 // o
    "07 01;~07 03 33 37 07",                           // p
    "37 31;~07 03 33 37 07",                           // q
    "07 03;~05 07 27",                                 // r
    "~36 37 07 05 35 33 03 04",                        // s
    "19 14;~14 13 23;07 27",                           // t
    "07 05;~05 03 33 35;37 33",                        // u
    "07 23 47",                                        // v
    "07 13 26 33 47",                                  // w
    "07 33;37 03",                                     // x
    "07 23;47 11",                                     // y
    "07 37 03 33",                                     // z
    "~29 19 16 06;~06 16 12 22",                       // {
    "09 02",                                           // |
    "~09 19 16 26;~26 16 12 02",                       // }
    "~05 17 33 45",                                    // ~
};
constexpr std::string_view box = "09 49 43 03 09";

constexpr double baseline = 3;
constexpr double capital = 6;  // units from the baseline to the top of a capital
constexpr double letter_space = 1.7;
constexpr double word_space = 3.4;

struct Glyph {
    std::vector<Stroke> strokes;
    double width = 0;
};

Point middle(Point a, Point b) {
    return {(a.x + b.x) / 2, (a.y + b.y) / 2};
}

void append_curve(Stroke& out, Point from, Point control, Point to) {
    constexpr int chords = 8;
    for (int i = 1; i <= chords; ++i) {
        const double t = static_cast<double>(i) / chords;
        const double s = 1 - t;
        out.push_back({s * s * from.x + 2 * s * t * control.x + t * t * to.x,
                       s * s * from.y + 2 * s * t * control.y + t * t * to.y});
    }
}

Stroke smoothed(Stroke points) {
    const bool closed = points.size() > 3 && points.front().x == points.back().x &&
                        points.front().y == points.back().y;
    Stroke out;
    if (closed) {
        points.pop_back();
        const std::size_t n = points.size();
        out.push_back(middle(points[n - 1], points[0]));
        for (std::size_t i = 0; i < n; ++i) {
            append_curve(out, out.back(), points[i], middle(points[i], points[(i + 1) % n]));
        }
        return out;
    }
    out.push_back(points.front());
    for (std::size_t i = 1; i + 1 < points.size(); ++i) {
        const bool last = i + 2 == points.size();
        append_curve(out, out.back(), points[i],
                     last ? points[i + 1] : middle(points[i], points[i + 1]));
    }
    return out;
}

Glyph parse(std::string_view text) {
    Glyph glyph;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(';'), text.size());
        std::string_view part = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const bool curve = part.front() == '~';
        if (curve) part.remove_prefix(1);
        Stroke points;
        for (std::size_t i = 0; i + 1 < part.size(); i += 3) {
            points.push_back(
                {static_cast<double>(part[i] - '0'), static_cast<double>(part[i + 1] - '0')});
            glyph.width = std::max(glyph.width, points.back().x);
        }
        glyph.strokes.push_back(curve ? smoothed(std::move(points)) : std::move(points));
    }
    return glyph;
}

const Glyph& glyph_of(char c) {
    static const std::vector<Glyph> all = [] {
        std::vector<Glyph> parsed;
        for (const std::string_view text : glyphs) parsed.push_back(parse(text));
        parsed.push_back(parse(box));
        return parsed;
    }();
    return c > ' ' && c <= '~' ? all[static_cast<std::size_t>(c - '!')] : all.back();
}

double advance(char c) {
    return c == ' ' ? word_space : glyph_of(c).width + letter_space;
}

}  // namespace

std::vector<Stroke> text_strokes(std::string_view text, double cap_height) {
    const double unit = cap_height / capital;
    std::vector<Stroke> out;
    double left = 0;
    for (const char c : text) {
        if (c != ' ') {
            for (Stroke stroke : glyph_of(c).strokes) {
                for (Point& p : stroke) p = {(left + p.x) * unit, (baseline - p.y) * unit};
                out.push_back(std::move(stroke));
            }
        }
        left += advance(c);
    }
    return out;
}

double text_width(std::string_view text, double cap_height) {
    double width = 0;
    for (const char c : text) width += advance(c);
    return text.empty() ? 0 : (width - letter_space) * cap_height / capital;
}

}  // namespace reef::drawing
