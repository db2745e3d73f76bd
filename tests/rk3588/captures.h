// Captured and independently made streams of the reference data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reef/base/bytes.h"

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

}  // namespace reef::rk3588::test
