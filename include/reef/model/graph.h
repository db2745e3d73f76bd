// The quantised graph: what a .tflite file says, as plain values.
//
// One kind of Model serves plain files, files compiled by Google's compiler (operators whose custom
// options hold a program for the chip) and files compiled by Reef. Everything a file holds is kept,
// so that reading and writing lose nothing; what Reef does not know stays opaque.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/element_type.h"
#include "reef/model/operator.h"

namespace reef::model {

/// A table of the file that Reef keeps without looking inside: a FlatBuffer of its own whose root
/// is the table `type_name` of schema/tflite.fbs, in the one form that FlatBuffers' object API
/// gives it (fields at their defaults left out). Equal when the bytes are.
struct OpaqueTable {
    std::string type_name;
    std::vector<std::byte> bytes;
    friend bool operator==(const OpaqueTable&, const OpaqueTable&) = default;
};

/// real = scale[c] * (q - zero_point[c]); one entry per tensor, or one per index of `axis`.
/// Both vectors are empty for a tensor that is not quantised, else of equal length: a file may
/// leave zero_point out (all zero). Scales are finite and not negative, zero points in the range of
/// the element type.
struct Quantization {
    std::vector<float> scale;
    std::vector<std::int64_t> zero_point;
    std::int32_t axis = 0;   ///< quantized_dimension
    std::vector<float> min;  ///< as in the file; informative only
    std::vector<float> max;
    std::optional<OpaqueTable> custom;  ///< QuantizationDetails other than the above

    [[nodiscard]] bool quantized() const { return !scale.empty(); }
    [[nodiscard]] bool per_channel() const { return scale.size() > 1; }
    friend bool operator==(const Quantization&, const Quantization&) = default;
};

struct Tensor {
    std::string name;
    std::vector<std::int32_t> shape;  ///< all >= 0 after reading; empty: scalar or unknown rank
    ElementType type = ElementType::float32;
    std::uint32_t buffer = 0;                  ///< index into Model::buffers; 0 is the empty buffer
    std::optional<Quantization> quantization;  ///< absent and empty differ in files
    bool is_variable = false;                  ///< state kept between invocations
    bool has_rank = false;                     ///< as in the file
    std::optional<std::vector<std::int32_t>> shape_signature;  ///< -1: was dynamic
    std::optional<OpaqueTable> sparsity;
    std::vector<OpaqueTable> variant_tensors;

    /// Product of the shape; 1 for a scalar.
    [[nodiscard]] std::int64_t element_count() const;
    /// element_count * size_of(type); nothing for types without a fixed size.
    [[nodiscard]] std::optional<std::int64_t> byte_count() const;
    friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// Index of a tensor in its Subgraph; absent_tensor marks an optional input that is not given.
using TensorIndex = std::int32_t;
inline constexpr TensorIndex absent_tensor = -1;

struct Operator {
    OperatorCode code;
    std::vector<TensorIndex> inputs;
    std::vector<TensorIndex> outputs;
    std::vector<TensorIndex> intermediates;
    std::vector<bool> mutating_variable_inputs;
    Options options;                       ///< of a builtin operator
    SharedBytes custom_options;            ///< of a custom operator, most often a FlexBuffer
    std::optional<OpaqueTable> options_2;  ///< BuiltinOptions2 (StableHLO and later operators)
    std::int32_t debug_metadata_index = -1;
    friend bool operator==(const Operator&, const Operator&) = default;
};

struct Subgraph {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<TensorIndex> inputs;
    std::vector<TensorIndex> outputs;
    std::vector<Operator> operators;  ///< in execution order
    std::int32_t debug_metadata_index = -1;
    friend bool operator==(const Subgraph&, const Subgraph&) = default;
};

struct Metadata {
    std::string name;
    std::uint32_t buffer = 0;
    friend bool operator==(const Metadata&, const Metadata&) = default;
};

struct SignatureTensor {
    std::string name;
    std::uint32_t tensor = 0;
    friend bool operator==(const SignatureTensor&, const SignatureTensor&) = default;
};

struct Signature {
    std::string key;
    std::string tag;  ///< deprecated_tag, of files from 2021
    std::uint32_t subgraph = 0;
    std::vector<SignatureTensor> inputs;
    std::vector<SignatureTensor> outputs;
    friend bool operator==(const Signature&, const Signature&) = default;
};

struct Model {
    std::uint32_t version = 3;
    std::string description;
    /// Buffer 0 is empty by TFLite's rule. After reading, a constant's address is a multiple of its
    /// element size (at most 8).
    std::vector<SharedBytes> buffers;
    std::vector<Subgraph> subgraphs;
    std::vector<std::int32_t> metadata_buffer;  ///< the older form, superseded by metadata
    std::vector<Metadata> metadata;
    std::vector<Signature> signatures;
    /// What the file holds that is newer than Reef's schema and thus not in this Model, one clause
    /// each. write_tflite refuses such a model.
    std::vector<std::string> not_preserved;

    /// The tensor's constant bytes, without copying; empty for a tensor computed at run time.
    [[nodiscard]] Bytes constant(const Tensor& tensor) const;
    friend bool operator==(const Model&, const Model&) = default;
};

/// "operator 3 CONV_2D", "operator 0 PosenetDecoderOp": the place in an error.
[[nodiscard]] std::string place_of(const Subgraph& subgraph, std::size_t operator_index);
/// "tensor 31 'conv/Relu6'".
[[nodiscard]] std::string place_of_tensor(const Subgraph& subgraph, TensorIndex index);

/// "1x224x224x3", "scalar" for an empty shape.
[[nodiscard]] std::string shape_text(const std::vector<std::int32_t>& shape);

}  // namespace reef::model
