#include "demo/scene.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace reef::tool {
namespace {

constexpr int samples = 8;  // per pixel and axis
constexpr int fine_side = ApproachScene::side * samples;
// A pinhole camera with a field of view of 60 degrees: 32 pixels / tan 30.
constexpr double focal_length = 32 * std::numbers::sqrt3;

constexpr double corridor_half_width = 1.0;
constexpr double end_wall_distance =
    corridor_half_width * focal_length / 12;  // seen 24 pixels wide
constexpr double wall_tile_along = 0.6;
constexpr double wall_tile_across = 0.66;
constexpr double end_wall_tile = 0.5;
constexpr double end_wall_grey = 45;
constexpr double noise_deviation = 2;

double slope_of(int fine) {
    return ((fine + 0.5) / samples - ApproachScene::side / 2.0) / focal_length;
}

bool odd_tile(double a, double b) {
    return (static_cast<long>(std::floor(a)) + static_cast<long>(std::floor(b))) % 2 != 0;
}

/// Grey level along the ray (u, v, 1): checkered walls, floor and ceiling that fade into the
/// distance, and a checkered end wall.
double corridor_grey(double u, double v) {
    const double steepest = std::max({std::abs(u), std::abs(v), 1e-9});
    const double z = std::min(corridor_half_width / steepest, end_wall_distance);
    if (z == end_wall_distance) {
        const bool light = odd_tile(u * z / end_wall_tile + 100, v * z / end_wall_tile + 100);
        return end_wall_grey + (light ? 28 : -28);
    }
    const bool on_side_wall = std::abs(u) > std::abs(v);
    const double across = on_side_wall ? v * z : u * z;
    const double paint = on_side_wall ? 120 : v > 0 ? 100 : 140;
    const bool light = odd_tile(z / wall_tile_along, across / wall_tile_across + 100);
    const double near = 1.2;
    const double fade =
        0.8 * std::pow(std::clamp((z - near) / (end_wall_distance - near), 0.0, 1.0), 0.6);
    return std::lerp(paint + (light ? 60 : -60), end_wall_grey, fade);
}

/// Six sectors, light and dark in turn.
double ball_grey(double u, double v) {
    const double turn = (std::atan2(v, u) + 0.35) / (2 * std::numbers::pi) + 1;
    return static_cast<int>(std::floor(turn * 6)) % 2 == 0 ? 250 : 90;
}

std::uint64_t mixed_bits(std::uint64_t x) {  // splitmix64's finaliser
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/// Close to a normal distribution: the sum of four uniform numbers.
double sensor_noise(int frame, int pixel) {
    const std::uint64_t bits =
        mixed_bits(static_cast<std::uint64_t>(frame) << 32 | static_cast<std::uint64_t>(pixel));
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(bits >> (16 * i) & 0xFFFF) / 65535 - 0.5;
    return sum * std::sqrt(3.0) * noise_deviation;
}

}  // namespace

ApproachScene::ApproachScene(int frames)
    : frames_(frames),
      still_frames_(frames / 5),
      corridor_(static_cast<std::size_t>(fine_side) * fine_side) {
    for (int y = 0; y < fine_side; ++y) {
        for (int x = 0; x < fine_side; ++x) {
            corridor_[static_cast<std::size_t>(y) * fine_side + static_cast<std::size_t>(x)] =
                static_cast<float>(corridor_grey(slope_of(x), slope_of(y)));
        }
    }
}

double ApproachScene::speed() const {
    return (first_distance - last_distance) / ((frames_ - still_frames_) * frame_time);
}

double ApproachScene::distance(int frame) const {
    const int moving = std::max(0, frame + 1 - still_frames_);
    return first_distance - speed() * frame_time * moving;
}

std::optional<double> ApproachScene::time_to_contact(int frame) const {
    if (frame < still_frames_) return std::nullopt;
    return distance(frame) / speed();
}

std::vector<std::uint8_t> ApproachScene::picture(int frame) const {
    const double radius = ball_radius / distance(frame);
    std::vector<std::uint8_t> out;
    out.reserve(static_cast<std::size_t>(side) * side);
    for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
            double sum = 0;
            for (int i = 0; i < samples * samples; ++i) {
                const int fine_x = x * samples + i % samples;
                const int fine_y = y * samples + i / samples;
                const double u = slope_of(fine_x);
                const double v = slope_of(fine_y);
                const auto background = corridor_[static_cast<std::size_t>(fine_y) * fine_side +
                                                  static_cast<std::size_t>(fine_x)];
                sum += u * u + v * v < radius * radius ? ball_grey(u, v) : background;
            }
            const double grey = sum / (samples * samples) + sensor_noise(frame, y * side + x);
            out.push_back(static_cast<std::uint8_t>(std::lround(std::clamp(grey, 0.0, 255.0))));
        }
    }
    return out;
}

}  // namespace reef::tool
