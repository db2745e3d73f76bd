// The demo's synthetic camera: a ball that hangs still in a tiled corridor, then comes straight at
// the camera at constant speed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace reef::tool {

/// Lengths in metres, times in seconds. Frames are numbered from 0.
class ApproachScene {
  public:
    static constexpr int side = 64;            ///< pixels
    static constexpr double frame_time = 0.1;  ///< seconds between frames
    static constexpr double ball_radius = 0.2;
    static constexpr double first_distance = 5.2;
    static constexpr double last_distance = 1.15;  ///< the ball then fills the centre zone
    static constexpr int fewest_frames = 16;
    static constexpr int most_frames = 500;

    /// The ball hangs still during the first fifth of the frames. Precondition: frames within the
    /// limits above.
    explicit ApproachScene(int frames);

    [[nodiscard]] int frames() const { return frames_; }
    [[nodiscard]] int still_frames() const { return still_frames_; }
    [[nodiscard]] double speed() const;
    [[nodiscard]] double time(int frame) const { return frame * frame_time; }
    [[nodiscard]] double distance(int frame) const;
    /// Time until the distance would be zero; nothing while the ball hangs still.
    [[nodiscard]] std::optional<double> time_to_contact(int frame) const;
    /// side x side grey levels. The same frame is the same picture, sensor noise included.
    [[nodiscard]] std::vector<std::uint8_t> picture(int frame) const;

  private:
    int frames_;
    int still_frames_;
    std::vector<float> corridor_;  ///< the static background, supersampled
};

}  // namespace reef::tool
