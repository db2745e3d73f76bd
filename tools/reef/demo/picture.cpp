#include "demo/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reef/drawing/plot.h"

namespace reef::tool {
namespace {

using namespace drawing;

constexpr int margin = 36;
constexpr int columns = 6;
constexpr int zoom = 3;
constexpr int gap = 24;
constexpr int kernel_zoom = 9;

constexpr Color paper{250, 250, 247};
constexpr Color ink{28, 34, 46};
constexpr Color quiet{98, 108, 124};
constexpr Color rule{214, 216, 220};
constexpr Color calm{47, 133, 90};
constexpr Color alarm{214, 69, 28};
constexpr Color blue{28, 108, 194};

// Heat of a zone from none to the largest of the run.
constexpr std::array<Color, 5> heat_stops{
    Color{20, 18, 48}, {92, 22, 110}, {186, 54, 85}, {243, 132, 24}, {252, 240, 150}};
// One colour per direction of edges, in the order of the orientations; they repeat beyond four.
constexpr std::array<Color, 4> direction_colors{
    Color{255, 84, 72}, {250, 198, 40}, {64, 156, 255}, {72, 222, 128}};

Color heat(double t) {
    const double position = std::clamp(t, 0.0, 1.0) * (heat_stops.size() - 1);
    const auto below = std::min(static_cast<std::size_t>(position), heat_stops.size() - 2);
    return mix(heat_stops[below], heat_stops[below + 1], position - static_cast<double>(below));
}

Color direction_color(int orientation) {
    return direction_colors[static_cast<std::size_t>(orientation) % direction_colors.size()];
}

std::string seconds_text(const std::optional<double>& seconds) {
    if (!seconds) return "-";
    return *seconds > 99 ? "> 99 s" : fmt::format("{:.2f} s", *seconds);
}

std::string_view verdict_word(apps::Motion motion) {
    switch (motion) {
        case apps::Motion::approaching:
            return "APPROACHING";
        case apps::Motion::receding:
            return "RECEDING";
        case apps::Motion::steady:
            break;
    }
    return "STEADY";
}

/// Draws one section after the other, top to bottom.
class Strip {
  public:
    Strip(const DemoRun& run, Canvas& canvas) : run_(run), canvas_(canvas) {
        const auto last = static_cast<int>(run.frames.size()) - 1;
        // The last still frame, then equal steps of the approach.
        const int first = std::clamp(run.still_frames - 1, 0, last);
        for (int i = 0; i < columns; ++i) {
            const double step = static_cast<double>(last - first) * i / (columns - 1);
            chosen_.push_back(static_cast<std::size_t>(first + std::lround(step)));
        }
    }

    void draw() {
        header();
        frames();
        gabor_responses();
        zones();
        kernels();
        plots();
        footer();
    }

    [[nodiscard]] int bottom() const { return y_; }

  private:
    [[nodiscard]] int column_x(int column) const {
        return margin + column * (run_.side * zoom + gap);
    }
    const DemoFrame& chosen(int column) const {
        return run_.frames[chosen_[static_cast<std::size_t>(column)]];
    }

    void heading(std::string_view number, std::string_view title, std::string_view explanation);
    void header();
    void frames();
    void gabor_responses();
    void zones();
    void kernels();
    void plots();
    void footer();
    void direction_legend(double right, double baseline);
    void heat_legend(int right, int baseline, int largest);
    Color feature_color(const DemoFrame& frame, int column, int row, double full) const;
    double largest_answer() const;
    std::vector<double> marked_times() const;

    const DemoRun& run_;
    Canvas& canvas_;
    std::vector<std::size_t> chosen_;
    int y_ = margin;
};

void Strip::heading(std::string_view number, std::string_view title, std::string_view explanation) {
    y_ += 30;
    canvas_.fill({margin, y_, canvas_.width() - 2 * margin, 1}, rule);
    y_ += 30;
    const double x = margin;
    canvas_.text({x, static_cast<double>(y_)}, number, 15, blue, Anchor::left, 1.35);
    canvas_.text({x + 28, static_cast<double>(y_)}, title, 15, ink, Anchor::left, 1.25);
    const double after = x + 28 + text_width(title, 15) + 22;
    canvas_.text({after, static_cast<double>(y_)}, explanation, 11, quiet);
    y_ += 18;
}

void Strip::header() {
    y_ += 22;
    canvas_.text({margin, static_cast<double>(y_)},
                 "Reef demo: a ball approaches, two small int8 networks watch", 22, ink,
                 Anchor::left, 1.2);
    y_ += 30;
    canvas_.text({margin, static_cast<double>(y_)},
                 fmt::format("A ball {:.2f} m wide hangs still for {:.1f} s, then comes at {:.2f} "
                             "m/s. Grey pictures of {}x{} pixels, {:.0f} per second. Both networks "
                             "are built from formulas and ran on {}.",
                             run_.ball_width, run_.still_frames * run_.frame_time, run_.speed,
                             run_.side, run_.side, 1 / run_.frame_time, run_.device),
                 11, quiet);
}

void Strip::frames() {
    heading("1", "What the camera sees",
            "frame colour: the verdict that follows from tau, see 3 and 5");
    y_ += 8;
    for (int c = 0; c < columns; ++c) {
        const DemoFrame& frame = chosen(c);
        const bool near = frame.estimate.motion == apps::Motion::approaching;
        const Color verdict = near ? alarm : calm;
        const int x = column_x(c);
        canvas_.outline({x, y_, run_.side * zoom, run_.side * zoom}, 4, verdict);
        canvas_.tile(x, y_, run_.side, run_.side, zoom, [&](int px, int py) {
            const auto v = frame.picture[static_cast<std::size_t>(py * run_.side + px)];
            return Color{v, v, v};
        });
        const double text_y = y_ + run_.side * zoom + 26;
        canvas_.text({static_cast<double>(x), text_y}, fmt::format("t = {:.1f} s", frame.time), 12,
                     ink);
        canvas_.text({static_cast<double>(x), text_y + 21},
                     fmt::format("{:.2f} m away", frame.distance), 11, quiet);
        canvas_.text({static_cast<double>(x + run_.side * zoom), text_y},
                     verdict_word(frame.estimate.motion), 9.5, verdict, Anchor::right, 1.4);
    }
    y_ += run_.side * zoom + 47;
}

double Strip::largest_answer() const {
    const auto channels = static_cast<std::size_t>(run_.gabor.channels());
    const auto orientations = static_cast<long>(run_.gabor.orientations);
    std::vector<int> answers;
    for (int c = 0; c < columns; ++c) {
        const auto& features = chosen(c).features;
        for (std::size_t i = 0; i < features.size(); i += channels) {
            const auto first = features.begin() + static_cast<long>(i);
            answers.push_back(*std::max_element(first, first + orientations));
        }
    }
    // The upper two percent may saturate, so that the rest shows.
    const auto nth = answers.begin() + static_cast<long>(answers.size() * 98 / 100);
    std::nth_element(answers.begin(), nth, answers.end());
    return std::max(1, *nth);
}

/// Light of each direction's colour, as strong as the answer of the finest kernel of it.
Color Strip::feature_color(const DemoFrame& frame, int column, int row, double full) const {
    const auto channels = static_cast<std::size_t>(run_.gabor.channels());
    const auto* pixel =
        frame.features.data() + static_cast<std::size_t>(row * run_.side + column) * channels;
    // Only what stands out from the weakest direction has a direction.
    const int common = *std::min_element(pixel, pixel + run_.gabor.orientations);
    std::array<double, 3> light{12, 14, 22};
    for (int o = 0; o < run_.gabor.orientations; ++o) {
        const Color color = direction_color(o);
        const double strength = std::min(1.0, (pixel[o] - common) / full);
        light[0] += color.r * strength;
        light[1] += color.g * strength;
        light[2] += color.b * strength;
    }
    const auto clip = [](double v) { return static_cast<std::uint8_t>(std::min(255.0, v)); };
    return {clip(light[0]), clip(light[1]), clip(light[2])};
}

void Strip::direction_legend(double right, double baseline) {
    for (int o = run_.gabor.orientations - 1; o >= 0; --o) {
        const double theta = o * std::numbers::pi / run_.gabor.orientations;
        const std::string text = fmt::format("{:.0f} deg", theta * 180 / std::numbers::pi);
        canvas_.text({right, baseline}, text, 11, ink, Anchor::right);
        right -= text_width(text, 11) + 18;
        const Point middle{right, baseline - 5.5};
        canvas_.fill({static_cast<int>(middle.x) - 11, static_cast<int>(middle.y) - 10, 22, 22},
                     {18, 20, 30});
        canvas_.line({middle.x - 8 * std::cos(theta), middle.y - 8 * std::sin(theta)},
                     {middle.x + 8 * std::cos(theta), middle.y + 8 * std::sin(theta)}, 4,
                     direction_color(o));
        right -= 34;
    }
}

void Strip::gabor_responses() {
    heading("2", "Gabor network: which way lines and edges run",
            fmt::format("colour: direction (sigma {:.1f})", run_.gabor.sigmas[0]));
    direction_legend(canvas_.width() - margin, y_ - 18);
    y_ += 4;
    const double full = largest_answer();
    for (int c = 0; c < columns; ++c) {
        const DemoFrame& frame = chosen(c);
        canvas_.tile(column_x(c), y_, run_.side, run_.side, zoom,
                     [&](int px, int py) { return feature_color(frame, px, py, full); });
    }
    y_ += run_.side * zoom;
}

void Strip::heat_legend(int right, int baseline, int largest) {
    const std::string high = fmt::format("{}", largest);
    canvas_.text({static_cast<double>(right), static_cast<double>(baseline)}, high, 11, ink,
                 Anchor::right);
    const int bar_right = right - static_cast<int>(text_width(high, 11)) - 8;
    for (int i = 0; i < 160; ++i) {
        canvas_.fill({bar_right - 160 + i, baseline - 12, 1, 14}, heat(i / 159.0));
    }
    canvas_.text({bar_right - 168.0, static_cast<double>(baseline)}, "0", 11, ink, Anchor::right);
}

void Strip::zones() {
    heading("3", "Looming network: edge energy in 3x3 zones",
            "tau = middle zone / mean of the other eight");
    int largest = 1;
    for (int c = 0; c < columns; ++c) {
        largest = std::max<int>(largest, std::ranges::max(chosen(c).zones));
    }
    heat_legend(canvas_.width() - margin, y_ - 18, largest);
    y_ += 4;
    const int cell = run_.side * zoom / apps::looming_grid;
    for (int c = 0; c < columns; ++c) {
        const DemoFrame& frame = chosen(c);
        for (int i = 0; i < static_cast<int>(apps::looming_zones); ++i) {
            const int value = frame.zones[static_cast<std::size_t>(i)];
            const Area area{column_x(c) + i % apps::looming_grid * cell,
                            y_ + i / apps::looming_grid * cell, cell - 2, cell - 2};
            const double t = static_cast<double>(value) / largest;
            canvas_.fill(area, heat(t));
            canvas_.text({area.x + area.width / 2.0, area.y + area.height / 2.0 + 7},
                         fmt::format("{}", value), 14, t > 0.6 ? ink : Color{255, 255, 255},
                         Anchor::middle, i == 4 ? 1.5 : 1);
        }
        const double x = column_x(c);
        canvas_.text({x, y_ + run_.side * zoom + 24.0}, fmt::format("tau {:.2f}", frame.tau), 14,
                     blue, Anchor::left, 1.2);
        canvas_.text({x, y_ + run_.side * zoom + 48.0},
                     fmt::format("contact in {}", seconds_text(frame.estimate.time_to_contact)), 11,
                     frame.estimate.time_to_contact ? alarm : quiet);
        canvas_.text({x, y_ + run_.side * zoom + 68.0},
                     fmt::format("truth {}", seconds_text(frame.true_time)), 11, quiet);
    }
    y_ += run_.side * zoom + 68;
}

void Strip::kernels() {
    const DemoFrame& frame = chosen(columns - 1);
    heading("4", fmt::format("The {} Gabor kernels and their answers", run_.gabor.channels()),
            "weights: red positive, blue negative; answers to the last picture above, flat colour: "
            "at the limit");
    const int channels = run_.gabor.channels();
    const int size = run_.gabor.kernel_size;
    const int tile = run_.side * 2;
    const double pitch =
        static_cast<double>(canvas_.width() - 2 * margin - tile) / std::max(1, channels - 1);
    for (int c = 0; c < channels; ++c) {
        const int x = margin + static_cast<int>(c * pitch);
        const auto kernel = apps::gabor_kernel(run_.gabor, c);
        canvas_.tile(x, y_, size, size, kernel_zoom, [&](int px, int py) {
            const double w = kernel[static_cast<std::size_t>(py * size + px)];
            return mix({245, 245, 245}, w < 0 ? blue : alarm, std::abs(w));
        });
        canvas_.outline({x, y_, size * kernel_zoom, size * kernel_zoom}, 1, rule);
        const double text_x = x + size * kernel_zoom + 8;
        canvas_.text(
            {text_x, y_ + 26.0},
            fmt::format("{} deg", c % run_.gabor.orientations * 180 / run_.gabor.orientations), 10,
            ink);
        canvas_.text(
            {text_x, y_ + 46.0},
            fmt::format("sigma {:.1f}",
                        run_.gabor.sigmas[static_cast<std::size_t>(c / run_.gabor.orientations)]),
            10, quiet);
        canvas_.tile(x, y_ + size * kernel_zoom + 10, run_.side, run_.side, 2, [&](int px, int py) {
            const auto v =
                frame.features[static_cast<std::size_t>((py * run_.side + px) * channels + c)];
            return mix({18, 20, 30}, direction_color(c % run_.gabor.orientations), v / 200.0);
        });
    }
    y_ += size * kernel_zoom + 10 + tile;
}

std::vector<double> Strip::marked_times() const {
    std::vector<double> times;
    for (int c = 0; c < columns; ++c) times.push_back(chosen(c).time);
    return times;
}

void Strip::plots() {
    heading("5", "What follows: is something coming, and when will it be here?",
            "triangles: the six frames above");
    const int width = (canvas_.width() - 2 * margin - 40) / 2;
    Plot tau;
    tau.area = {margin + 44, y_ + 34, width - 44, 260};
    tau.title = "tau (no unit)";
    tau.x_title = "time in s";
    tau.x_max = run_.frames.back().time;
    tau.shaded_until = run_.still_frames * run_.frame_time;
    tau.shaded_text = "still";
    tau.marks = marked_times();
    Plot contact = tau;
    contact.area.x += width + 40;
    contact.title = "time to contact in s";
    Series tau_series{.name = "tau", .color = blue, .dots = true, .points = {}};
    Series truth{.name = "truth", .color = quiet, .dots = false, .points = {}};
    Series estimate{.name = fmt::format("from tau, line through {} frames", run_.window),
                    .color = alarm,
                    .dots = true,
                    .points = {}};
    for (const DemoFrame& frame : run_.frames) {
        tau_series.points.push_back({frame.time, frame.tau});
        tau.y_max = std::max(tau.y_max, frame.tau * 1.1);
        if (frame.true_time) {
            truth.points.push_back({frame.time, *frame.true_time});
            contact.y_max = std::max(contact.y_max, *frame.true_time * 1.5);
        }
        if (const auto& seconds = frame.estimate.time_to_contact) {
            estimate.points.push_back({frame.time, *seconds});
        }
    }
    tau.level = 1;
    tau.level_text = "1: as many edges in the middle as around";
    tau.series = {tau_series};
    contact.series = {truth, estimate};
    draw_plot(canvas_, tau);
    draw_plot(canvas_, contact);
    y_ += 34 + 260 + 50;
}

void Strip::footer() {
    y_ += 22;
    canvas_.text({margin, static_cast<double>(y_)},
                 "How far to trust it: tau goes as 1 / distance only while the ball stays inside "
                 "the middle zone before an unchanging surround,",
                 11, quiet);
    y_ += 22;
    std::string accuracy = "and the zones are whole numbers, so that small values step.";
    if (run_.mean_relative_error) {
        accuracy += fmt::format(" Mean error of the time to contact in this run: {:.0f} %.",
                                *run_.mean_relative_error * 100);
    }
    canvas_.text({margin, static_cast<double>(y_)}, accuracy, 11, quiet);
    y_ += margin;
}

}  // namespace

drawing::Canvas draw_demo(const DemoRun& run) {
    const int width = 2 * margin + columns * run.side * zoom + (columns - 1) * gap;
    Canvas measured(width, 1, paper);
    Strip measure(run, measured);
    measure.draw();
    Canvas canvas(width, measure.bottom(), paper);
    Strip(run, canvas).draw();
    return canvas;
}

}  // namespace reef::tool
