// A layer of an executable as the host's tensor: what is sent for an input, and where the elements
// of an output are in the bytes that the chip sends.
//
// The host's tensor is NHWC without padding, y_dim * x_dim * z_dim elements. The chip computes in
// unsigned numbers: signed elements cross the wire with their top bit flipped. Spatial outputs come
// in tiles, whose places are in the layer's OutputLayout.
#pragma once

#include <cstdint>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/element_type.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

/// uint8, int8, uint16 or int16. Errors: unsupported for the chip's other types.
[[nodiscard]] Result<ElementType> element_type_of(const Layer& layer);

/// Bytes of the host's tensor. Errors: those of element_type_of; unsupported for layers that run
/// several times per inference; bad_input for negative or impossibly large dimensions.
[[nodiscard]] Result<std::size_t> tensor_bytes(const Layer& layer);

/// Writes a tensor as the chip takes it: top bits of signed elements flipped, zeros up to
/// wire.size(). Allocates nothing.
/// Errors: those of tensor_bytes; bad_argument when `tensor` has another size or does not fit.
[[nodiscard]] Status pack_input(const Layer& layer, Bytes tensor, MutableBytes wire);

/// The definition of OutputUnpacker::run, one element at a time by the formula of OutputLayout.
[[nodiscard]] Status unpack_output_by_formula(const Layer& layer, Bytes wire, MutableBytes tensor);

/// The host's tensor of an output layer from the layer's bytes. The layout's tables are turned into
/// runs of copies once.
class OutputUnpacker {
  public:
    /// `count` rows of `row_bytes`, `wire_stride` apart on the wire and adjacent in the tensor.
    struct Rows {
        std::size_t wire = 0;
        std::size_t wire_stride = 0;
        std::size_t tensor = 0;
        std::size_t row_bytes = 0;
        std::size_t count = 0;
    };

    /// Errors: those of tensor_bytes; bad_input for a layout whose tables are shorter than the
    /// dimensions or point outside the layer; unsupported for 16-bit elements in several positions,
    /// whose tables' unit is not known.
    [[nodiscard]] static Result<OutputUnpacker> prepare(const Layer& layer);

    [[nodiscard]] std::size_t wire_bytes() const { return wire_bytes_; }
    [[nodiscard]] std::size_t tensor_bytes() const { return tensor_bytes_; }

    /// Allocates nothing. Preconditions: wire.size() >= wire_bytes() and tensor.size() ==
    /// tensor_bytes(); they do not overlap.
    void run(Bytes wire, MutableBytes tensor) const;

  private:
    void append(std::size_t wire, std::size_t bytes);
    void group();

    std::vector<Rows> rows_;  ///< in the tensor's order, without gaps
    std::uint64_t flip_ = 0;  ///< XORed into every 8 bytes
    std::size_t wire_bytes_ = 0;
    std::size_t tensor_bytes_ = 0;
};

}  // namespace reef::edgetpu
