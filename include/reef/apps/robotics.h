// Robotics networks that are made from formulas alone, without training: int8 TFLite models that
// any TFLite runtime reads, and what their outputs mean.
//
// Every network starts with QUANTIZE (uint8 to int8) and ends with QUANTIZE back to uint8. A real
// weight w is stored as round(w / s) with s = max|w| / 127 and zero point 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::apps {

/// Rows and columns of the looming network's zone grid.
inline constexpr std::int32_t looming_grid = 3;
inline constexpr std::size_t looming_zones = 9;

/// Quantisation of an int8 activation.
struct ActivationScale {
    float scale = 1;
    std::int32_t zero_point = 0;
    friend bool operator==(const ActivationScale&, const ActivationScale&) = default;
};

/// The defaults were measured for 64x64 pictures with 256 grey levels. Sum, pool and output share
/// `x_square`. A Sobel response is at most 127.5 grey levels in magnitude, whatever the size, so
/// that the defaults suit other sizes too.
struct LoomingScales {
    float input = 1;  ///< grey levels per step; the input's zero point is 0
    ActivationScale x_response{0.985294104F, 0};
    ActivationScale y_response{0.990686297F, -1};
    float x_square = 71.6335754F;  ///< zero points of the squares: -128
    float y_square = 62.6299629F;
};

/// Each side is at least 3 and at most 4096, and must hold exactly three windows of side / 3:
/// windows are whole pixels, so that side mod 3 rows or columns at the far edge belong to no zone.
/// The sides 5 and 8 do not work: side / 3 rounded down fits more than three times.
struct LoomingOptions {
    std::int32_t height = 64;
    std::int32_t width = 64;
    LoomingScales scales{};
};

/// Looming detector, uint8 [1, height, width, 1] -> uint8 [1, 9]: mean edge energy of 3x3 zones,
/// row by row; index 4 is the centre.
///
/// Sobel x = [[-1,0,1],[-2,0,2],[-1,0,1]] / 8 and Sobel y, its transpose (CONV_2D, SAME); each
/// response squared (MUL); ADD; AVERAGE_POOL_2D with window and stride (height / 3, width / 3);
/// RESHAPE. Errors: bad_argument that names the side or scale that cannot work.
[[nodiscard]] Result<model::Model> looming_model(const LoomingOptions& options);

/// Limits: sides from kernel_size to 4096; odd kernel_size from 3 to 31; 1 to 64 channels; at most
/// 2^27 output elements before pooling; pool 1 (none) or a divisor of both sides.
struct GaborOptions {
    std::int32_t height = 64;
    std::int32_t width = 64;
    std::int32_t orientations = 4;
    std::vector<double> sigmas{1.5, 3.0};  ///< widths of the Gaussian envelope, in pixels
    std::int32_t kernel_size = 7;
    std::int32_t pool = 1;              ///< side of the average pool; 4 gives the form for flow
    float input_scale = 1.0F / 255.0F;  ///< input zero point 0
    float output_scale = 0.00226956932F;

    [[nodiscard]] std::int32_t channels() const {
        return orientations * static_cast<std::int32_t>(sigmas.size());
    }
};

/// The real weights of one channel, kernel_size x kernel_size row by row, largest magnitude 1.
///
/// channel = orientations * k + o stands for sigma = sigmas[k] and theta = o * pi / orientations.
/// With x and y counted from the kernel's middle, x' = x cos + y sin, y' = -x sin + y cos and
/// lambda = 2 sigma: w = exp(-(x'^2 + y'^2) / (2 sigma^2)) cos(2 pi y' / lambda). The wave runs
/// along y': orientation o answers to lines that lie at theta to the x axis (y down).
/// Precondition: options that gabor_model accepts, 0 <= channel < channels().
[[nodiscard]] std::vector<double> gabor_kernel(const GaborOptions& options, std::int32_t channel);

/// Gabor features, uint8 [1, height, width, 1] -> uint8 [1, height / pool, width / pool, channels]:
/// DEPTHWISE_CONV_2D (SAME, ReLU) with the kernels above, one scale per channel, then
/// AVERAGE_POOL_2D when pool > 1. Errors: bad_argument that names the option that cannot work.
[[nodiscard]] Result<model::Model> gabor_model(const GaborOptions& options);

/// The largest quotient that nine uint8 zones can have: 255 over a mean of one eighth.
inline constexpr double max_tau = 2040;

/// Edge energy of the centre zone over the mean of the eight around it, from the looming network's
/// output as it is (its zero point is 0, and the scale cancels). No unit. Above 1 the middle of the
/// picture holds more edges than its surround, as in front of an obstacle. Always finite: 1 when no
/// zone shows any edge, max_tau when only the centre does.
[[nodiscard]] double tau(std::span<const std::uint8_t, looming_zones> zones);

/// Time to contact in seconds from two values of tau that are `dt` seconds apart, counted from the
/// later one: dt / (tau_now / tau_before - 1).
///
/// The outline of an object at distance Z is seen with a length that goes as 1/Z, and so do its
/// edge energy and tau, as long as it stays inside the centre zone before an unchanging surround.
/// With Z falling at constant speed v, tau_now / tau_before = 1 + v dt / Z, and Z / v is the time
/// left. Nothing when tau does not grow (steady or receding), or when an argument is not a positive
/// finite number.
[[nodiscard]] std::optional<double> time_to_contact(double tau_before, double tau_now, double dt);

enum class Motion : std::uint8_t { steady, approaching, receding };

/// Smooths time_to_contact over several frames. tau goes as 1/Z, so that under constant speed 1/tau
/// falls along a straight line that reaches zero at contact. A least-squares line through the last
/// `window` values of 1/tau is followed to zero.
class ApproachEstimator {
  public:
    struct Estimate {
        Motion motion = Motion::steady;
        std::optional<double> time_to_contact;  ///< seconds from the newest frame; approaching only
    };

    /// `window` frames, at least 3. Shorter windows follow a change sooner and are noisier.
    explicit ApproachEstimator(std::size_t window = 8);

    /// Takes the next frame's tau, `dt` seconds after the one before. Approaching or receding is
    /// said when the line's slope differs from zero by more than three standard errors and moves
    /// 1/tau by more than 5 % of its mean within the window; steady otherwise, and until three
    /// frames are known. A tau or dt that is not positive and finite starts the window anew.
    Estimate update(double tau, double dt);

  private:
    struct Sample {
        double time = 0;
        double inverse_tau = 0;
    };
    std::size_t window_;
    double now_ = 0;
    std::deque<Sample> samples_;
};

}  // namespace reef::apps
