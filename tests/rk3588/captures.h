// Captured and independently made streams of the reference data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/npy.h"

namespace reef::rk3588::test {

struct Stream {
    std::string name;
    std::vector<std::uint64_t> words;
    [[nodiscard]] Bytes bytes() const { return std::as_bytes(std::span(words)); }
};

/// The tasks of a JSON list of captured words, one stream each; of a list without tasks, all words.
[[nodiscard]] std::vector<Stream> json_streams(const std::filesystem::path& file);
/// A file of words.
[[nodiscard]] Stream binary_stream(const std::filesystem::path& file);

/// Every captured register stream: vendor programs, live dumps, a captured memory.
[[nodiscard]] std::vector<Stream> captured_streams(const std::filesystem::path& shared);
/// The register streams of data/rknpu/conv_int8, a stream for each vector.
[[nodiscard]] std::vector<Stream> independent_streams(const std::filesystem::path& shared);

/// The arrays of one of the vectors of data/rknpu/conv_int8.
struct ConvolutionArrays {
    std::string name;
    NamedArrays arrays;
    std::byte weight_zero{};  ///< zero point of the weights, uint8
    [[nodiscard]] const Array* find(std::string_view array) const;
};
[[nodiscard]] std::vector<ConvolutionArrays> independent_arrays();

/// One of the vectors of data/rknpu/conv_int8: memory, streams, and what the results must be.
struct ConvolutionVector {
    std::string name;
    struct Buffer {
        std::string name;
        std::uint32_t address = 0;
        std::vector<std::byte> bytes;
    };
    std::vector<Buffer> buffers;  ///< "output" is 0 in the beginning
    struct Start {
        std::uint32_t address = 0;
        std::size_t words = 0;
    };
    std::vector<Start> starts;
    std::map<std::string, double> layer;  ///< sizes, zero points and scales, by the file's names
    unsigned size = 0;                    ///< width and height of the results
    unsigned channels = 0;                ///< of the results
    std::vector<std::byte> expected;      ///< [row][pixel][channel], uint8
    [[nodiscard]] Buffer* find(std::string_view buffer);
};
[[nodiscard]] std::vector<ConvolutionVector> convolution_vectors();

}  // namespace reef::rk3588::test
