// The parameters inside a compiled model, read and replaced by the names of its plain source.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/model/graph.h"

namespace reef::chip {

/// A stretch of a blob, against the plain model.
struct ParameterRange {
    enum class State : std::uint8_t {
        equal,        ///< to what the plain model's would be
        differs,      ///< in `differing_bytes`
        unexplained,  ///< nothing of the plain model is known to lie there
    };
    std::size_t offset = 0;  ///< bytes
    std::size_t size_bytes = 0;
    State state = State::equal;
    std::size_t differing_bytes = 0;
    std::string op{};  ///< of the plain model: "operator 3 CONV_2D"; empty where it is none's
    /// "multipliers, biases, weights", in their order; empty when unexplained.
    std::string contents{};
    bool filling = false;  ///< between the parameters of operators
};

/// What one program brings along.
struct ParameterBlob {
    std::string name;
    std::size_t size_bytes = 0;
    std::vector<ParameterRange> ranges;  ///< all of it, by offset
};

/// Parameters of the plain model that no blob holds.
struct MissingParameters {
    std::string op;
    std::string contents;
    std::size_t size_bytes = 0;
};

struct ParameterAccount {
    std::vector<ParameterBlob> blobs;
    std::vector<MissingParameters> missing;
    /// Of a segment of a pipeline: which of the plain model's operators is its first, from which
    /// operators are counted here.
    std::optional<std::size_t> first_operator;

    /// Every byte explained and equal, nothing missing.
    [[nodiscard]] bool complete() const {
        if (!missing.empty()) return false;
        for (const ParameterBlob& blob : blobs)
            for (const ParameterRange& range : blob.ranges)
                if (range.state != ParameterRange::State::equal) return false;
        return true;
    }
};

/// A compiled model opened with its plain source.
class Parameters {
  public:
    Parameters() = default;
    Parameters(const Parameters&) = delete;
    Parameters& operator=(const Parameters&) = delete;
    virtual ~Parameters() = default;

    [[nodiscard]] virtual ParameterAccount account() const = 0;
    /// Weights, biases and whatever else the chip keeps, by the names of the plain model's tensors.
    /// Errors: unsupported when something was not found.
    [[nodiscard]] virtual Result<NamedArrays> get() const = 0;
    /// Replaces some or all of what get() gives. Nothing is changed on errors: not_found for
    /// another name, bad_argument for another shape or type, unsupported for what the program has
    /// no place for.
    [[nodiscard]] virtual Status set(const NamedArrays& arrays) = 0;
    /// Of a segment of a pipeline: whether an array of this name, which set() does not take, is of
    /// operators of the whole network that other segments compute. Else false.
    [[nodiscard]] virtual bool is_of_other_segment(std::string_view name) const = 0;
    /// The compiled model with the parameters as they are now.
    [[nodiscard]] virtual Result<model::Model> model() const = 0;
};

/// Of a family of chips, enrolled as a part of it.
class ParameterReader : public Part {
  public:
    /// Of a segment of a pipeline, `plain` is the whole network, or what the segment computes.
    /// Errors: bad_input when `compiled` is not compiled for the chip or `plain` is; unsupported
    /// for what the chip's parameters are not known of.
    [[nodiscard]] virtual Result<std::unique_ptr<Parameters>> open(model::Model plain,
                                                                   model::Model compiled) const = 0;
};

}  // namespace reef::chip
