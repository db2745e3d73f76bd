// Builds a Model by code: tensors first, then the operators between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::model {

/// A one-entry (per tensor) quantisation.
[[nodiscard]] Quantization per_tensor(float scale, std::int64_t zero_point);
/// One scale per index of `axis`, zero points 0.
[[nodiscard]] Quantization per_channel(std::vector<float> scales, std::int32_t axis);

/// Builds a model with one subgraph. Indices that it returns are tensor indices of that subgraph.
class Builder {
  public:
    explicit Builder(std::string description);

    TensorIndex input(std::string name, ElementType type, std::vector<std::int32_t> shape,
                      Quantization quantization = {});
    /// A tensor that an operator will write.
    TensorIndex tensor(std::string name, ElementType type, std::vector<std::int32_t> shape,
                       Quantization quantization = {});
    /// State kept between invocations.
    TensorIndex variable(std::string name, ElementType type, std::vector<std::int32_t> shape,
                         Quantization quantization = {});
    /// Copies `data`, whose size must be that of the shape (checked by finish()).
    template <typename T>
    TensorIndex constant(std::string name, ElementType type, std::vector<std::int32_t> shape,
                         std::span<const T> data, Quantization quantization = {}) {
        return constant_bytes(std::move(name), type, std::move(shape), std::as_bytes(data),
                              std::move(quantization));
    }
    TensorIndex constant_bytes(std::string name, ElementType type, std::vector<std::int32_t> shape,
                               Bytes data, Quantization quantization);

    void add(Op op, std::vector<TensorIndex> inputs, std::vector<TensorIndex> outputs,
             Options options = {}, std::int32_t version = 1);
    void add_custom(std::string name, std::vector<TensorIndex> inputs,
                    std::vector<TensorIndex> outputs, Bytes custom_options);
    void output(TensorIndex tensor);
    void metadata(std::string name, Bytes contents);

    /// The model, once it keeps every rule of validate(). The builder is empty afterwards, its
    /// description too. Errors: bad_argument.
    [[nodiscard]] Result<Model> finish();

  private:
    void start(std::string description);
    TensorIndex append(Tensor tensor, Quantization quantization);
    std::uint32_t append_buffer(Bytes data);

    Model model_;
    std::vector<TensorIndex> constants_;
};

}  // namespace reef::model
