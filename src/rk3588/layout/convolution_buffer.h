// The convolution buffer (CBUF): how many entries and banks features and weights take.
#pragma once

#include <cstddef>

namespace reef::rk3588 {

/// Entries of a row of so many pixels, each of so many atoms. Precondition: both are positive.
[[nodiscard]] std::size_t entries_of_row(std::size_t pixels, std::size_t atoms);

/// Features: rows of so many pixels of so many atoms.
struct BufferedRows {
    std::size_t pixels = 0, atoms = 0;

    /// Banks that so many rows take, with the one that the DMA reads on into behind rows of one
    /// pixel that all but fill their last bank.
    [[nodiscard]] std::size_t banks_of(std::size_t rows) const;
    /// The most rows, up to `most`, that so many banks hold.
    [[nodiscard]] std::size_t rows_in(std::size_t banks, std::size_t most) const;
};

/// Banks of weights that stay for later tasks.
[[nodiscard]] std::size_t banks_of_weights(std::size_t bytes);
/// Least banks of weights that come again with each task, a group of kernels of so many bytes at a
/// time.
[[nodiscard]] std::size_t banks_of_streamed_weights(std::size_t group_bytes);

}  // namespace reef::rk3588
