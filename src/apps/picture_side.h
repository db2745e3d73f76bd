// How large the networks' pictures may be.
#pragma once

#include <cstdint>

namespace reef::apps {

/// Of a picture's width and height, in pixels.
inline constexpr std::int32_t maximum_side = 4096;

}  // namespace reef::apps
