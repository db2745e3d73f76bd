// The vendor's compiler's own places and order of instructions, where every bit of its programs is
// known to follow from the layer's shape and numbers: networks of one layer with int8 weights, a
// scale for each output channel and no bias but 0. Of these, the streams of 512 and 1024 units and
// of three convolutions are the reference; real sticks have run the latter.
#pragma once

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {

/// A plan behind the pass "tile", with its parameters laid out and placed. Errors: bad_argument for
/// networks whose programs are not known.
[[nodiscard]] Result<Plan> placed_as_vendor(Plan plan);
/// Precondition: the plan comes from placed_as_vendor().
[[nodiscard]] Result<Programs> emit_as_vendor(const Plan& plan, const EmitOptions& options);

/// Rows in front of a group of output channels: factors and zero points.
constexpr std::uint32_t front_rows = 2;
/// Words between the input of a dense layer and the slices of it that tiles received.
constexpr std::uint32_t dense_staging_words = 128;

/// Where the vendor's program of a convolution has what, by tile. Words and rows.
struct ConvolutionGeometry {
    ConvolutionGeometry(std::int32_t image_height, std::int32_t image_width, std::int32_t channels);

    std::int32_t words = 0;  ///< of a pixel
    std::int32_t height = 0, width = 0;
    std::int32_t pitch = 0;         ///< of the image with its halo, which begins at word 0
    std::int32_t staging = 0;       ///< words: two rows of the input's image; then the output
    std::int32_t image_row = 0;     ///< words
    std::int32_t identity = 0;      ///< words
    std::int32_t message_rows = 0;  ///< of an image row
    std::int32_t slots = 0;         ///< rows: two image rows
    std::int32_t positions = 0;
    std::uint32_t groups = 0, group_lanes = 0;  ///< of output channels
    bool inner = false;                         ///< whole sums at once; else by four input channels
    std::int32_t group_rows = 0;                ///< that a visit reads
    std::int32_t sums = 0, body = 0, head = 0;  ///< rows of wide memory
    [[nodiscard]] std::int32_t output_words() const { return positions * words; }
    [[nodiscard]] std::int32_t narrow_bytes() const;
    [[nodiscard]] std::int32_t parameter_rows() const;
};

/// Waits until rows that tiles write are there.
void wait_for_rows(Emitter& code);
/// Waits until the tiles are idle; counters go on.
void wait_until_idle(Emitter& code);

// By kind of layer.
[[nodiscard]] Result<Programs> emit_dense_as_vendor(const Plan& plan, const EmitOptions& options);
[[nodiscard]] Result<Programs> emit_convolution_as_vendor(const Plan& plan,
                                                          const EmitOptions& options);

}  // namespace reef::edgetpu::lowering
