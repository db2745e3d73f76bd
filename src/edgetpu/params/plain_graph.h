// A plain model's tensors as Reef's compiler sees them: images and constants.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {

class PlainGraph {
  public:
    struct Image {
        std::uint32_t height = 1, width = 1, channels = 1;
        [[nodiscard]] std::uint64_t pixels() const { return std::uint64_t{height} * width; }
        [[nodiscard]] std::array<std::int32_t, 2> sides() const {
            return {static_cast<std::int32_t>(height), static_cast<std::int32_t>(width)};
        }
    };

    /// Of the model's first subgraph.
    explicit PlainGraph(const model::Model& plain);

    [[nodiscard]] const std::vector<model::Operator>& operators() const { return graph_.operators; }
    [[nodiscard]] std::string place_of(std::size_t op) const { return model::place_of(graph_, op); }
    [[nodiscard]] const model::Tensor& tensor_at(model::TensorIndex index) const {
        return graph_.tensors[static_cast<std::size_t>(index)];
    }
    /// Null: absent.
    [[nodiscard]] const model::Tensor* tensor(const std::vector<model::TensorIndex>& list,
                                              std::size_t position) const;
    /// Whether a tensor of a list is of quantised bytes.
    [[nodiscard]] bool quantized(const std::vector<model::TensorIndex>& list,
                                 std::size_t position) const;
    /// Of an operator's input: a constant of quantised bytes, of so many dimensions; else null.
    [[nodiscard]] const model::Tensor* weights(const model::Operator& op, std::size_t position,
                                               std::size_t dimensions) const;
    /// Of an input of whole numbers of 32 bits; empty: it is no constant.
    [[nodiscard]] std::vector<std::int32_t> numbers(const model::Operator& op,
                                                    std::size_t position) const;
    /// Which of an operator's two inputs is a constant, where the other is none.
    [[nodiscard]] std::optional<std::size_t> constant_of_pair(const model::Operator& op) const;

    /// Dimensions that are not there are 1, and so is the batch.
    [[nodiscard]] static Image image_of(const model::Tensor& tensor);
    /// What a tensor of so many elements is the elements of, in their order: itself and tensors in
    /// front of RESHAPE and its like, but those of one pixel.
    [[nodiscard]] std::vector<Image> images_of(model::TensorIndex tensor,
                                               std::uint64_t elements) const;

    /// Whether the stored weights are of a size that layers may have.
    [[nodiscard]] static bool fits(const StoredForm& form);

  private:
    const model::Model& plain_;
    const model::Subgraph& graph_;
};

}  // namespace reef::edgetpu
