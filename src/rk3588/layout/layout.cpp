#include "reef/rk3588/layout.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

// The numbers in the header's formulas, which compile without the description.
static_assert(spec::kernel_lanes == 32 && spec::int8_group_kernels == 32 &&
              spec::fp16_group_kernels == 16 && spec::int8_depthwise_lanes == 64 &&
              spec::fp16_depthwise_lanes == 32);

/// Calls `move(offset in the cube, offset in the rows, bytes)` for every atom.
template <typename Move>
void each_atom(const CubeShape& shape, std::size_t element_bytes, Move move) {
    for (std::size_t surface = 0; surface < shape.surfaces(); ++surface) {
        const std::size_t first = surface * shape.c2;
        const std::size_t lanes = std::min(shape.c2, shape.channels - first);
        for (std::size_t pixel = 0; pixel < shape.height * shape.width; ++pixel)
            move((surface * shape.height * shape.width + pixel) * shape.c2 * element_bytes,
                 (pixel * shape.channels + first) * element_bytes, lanes * element_bytes);
    }
}

}  // namespace

void to_cube(const CubeShape& shape, std::size_t element_bytes, Bytes nhwc, MutableBytes cube,
             std::byte pad) {
    assert(cube.size() == shape.elements() * element_bytes);
    const std::size_t atom = shape.c2 * element_bytes;
    each_atom(shape, element_bytes, [&](std::size_t to, std::size_t from, std::size_t bytes) {
        std::memcpy(cube.data() + to, nhwc.data() + from, bytes);
        if (bytes < atom)
            std::memset(cube.data() + to + bytes, std::to_integer<int>(pad), atom - bytes);
    });
}

void from_cube(const CubeShape& shape, std::size_t element_bytes, Bytes cube, MutableBytes nhwc) {
    assert(cube.size() == shape.elements() * element_bytes);
    each_atom(shape, element_bytes, [&](std::size_t from, std::size_t to, std::size_t bytes) {
        std::memcpy(nhwc.data() + to, cube.data() + from, bytes);
    });
}

void pack_int8_weights(const WeightShape& shape, std::size_t kernels, std::size_t channels,
                       Bytes ohwi, std::byte pad_lane, MutableBytes packed) {
    assert(packed.size() == shape.elements() && channels <= shape.lanes &&
           kernels <= shape.kernels);
    const std::size_t taps = shape.height * shape.width;
    for (std::size_t k = 0; k < shape.kernels; ++k)
        for (std::size_t tap = 0; tap < taps; ++tap)
            for (std::size_t first = 0; first < shape.lanes; first += spec::kernel_lanes) {
                const std::size_t y = tap / shape.width, x = tap % shape.width;
                std::byte* to = packed.data() + int8_weight_index(shape, k, y, x, first);
                const std::size_t lanes =
                    std::min<std::size_t>(spec::kernel_lanes, shape.lanes - first);
                const std::size_t known =
                    k < kernels && first < channels ? std::min(lanes, channels - first) : 0;
                if (known != 0)
                    std::memcpy(to, ohwi.data() + (k * taps + tap) * channels + first, known);
                std::fill(to + known, to + lanes, k < kernels ? pad_lane : std::byte{0});
            }
}

void pack_int8_depthwise_weights(const WeightShape& shape, std::size_t channels, Bytes hwc,
                                 std::byte pad_lane, MutableBytes packed) {
    assert(packed.size() == shape.elements() && shape.kernels == 1);
    for (std::size_t y = 0; y < shape.height; ++y)
        for (std::size_t x = 0; x < shape.width; ++x)
            for (std::size_t lane = 0; lane < shape.lanes; ++lane)
                packed[depthwise_weight_index(shape, spec::int8_depthwise_lanes, y, x, lane)] =
                    lane < channels ? hwc[(y * shape.width + x) * channels + lane] : pad_lane;
}

void pack_fp16_weights(const WeightShape& shape, std::size_t kernels, std::size_t channels,
                       Bytes ohwi, MutableBytes packed) {
    assert(packed.size() == 2 * shape.elements());
    std::ranges::fill(packed, std::byte{0});
    for (std::size_t k = 0; k < kernels; ++k)
        for (std::size_t y = 0; y < shape.height; ++y)
            for (std::size_t x = 0; x < shape.width; ++x)
                for (std::size_t c = 0; c < channels; ++c)
                    std::memcpy(packed.data() + 2 * fp16_weight_index(shape, k, y, x, c),
                                ohwi.data() +
                                    2 * (((k * shape.height + y) * shape.width + x) * channels + c),
                                2);
}

}  // namespace reef::rk3588
