// TensorFlow Lite as a peer: its C library, opened at run time, with its own kernels or with its
// XNNPACK. The names and types of its functions are those of tensorflow/lite/c/c_api.h, which have
// not changed since 2.3.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::peers {

enum class TfliteKernels { builtin, xnnpack };

class TflitePeer {
  public:
    /// Errors: what write_tflite refuses; unsupported, with the library's own words, where it does
    /// not take the network; not_found for why_no_tflite().
    [[nodiscard]] static Result<TflitePeer> create(const model::Model& model, TfliteKernels kernels,
                                                   int threads);
    /// Of a file, which the library maps.
    [[nodiscard]] static Result<TflitePeer> open(const std::string& path, TfliteKernels kernels,
                                                 int threads);
    TflitePeer(TflitePeer&&) noexcept;
    TflitePeer& operator=(TflitePeer&&) noexcept;
    ~TflitePeer();

    [[nodiscard]] std::size_t input_count() const;
    [[nodiscard]] std::size_t output_count() const;
    /// Dense bytes, in place; empty for what has none. An output's are known after a run.
    [[nodiscard]] MutableBytes input(std::size_t index);
    [[nodiscard]] Bytes output(std::size_t index) const;
    [[nodiscard]] std::vector<Bytes> outputs() const;

    /// Errors: io_failed, with the library's own words.
    [[nodiscard]] Status run();

  private:
    struct Impl;
    explicit TflitePeer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Why there is no TensorFlow Lite here; "" where the variable REEF_TFLITE_LIBRARY names its
/// library (libtensorflowlite_c.so) and it opens. Where REEF_SIMD limits us, it is limited, too,
/// which takes some seconds, once, or it is not there.
[[nodiscard]] std::string why_no_tflite();

/// Precondition: why_no_tflite() is empty.
[[nodiscard]] std::string tflite_version();

}  // namespace reef::peers
