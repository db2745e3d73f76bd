// Reads a model's operators one after the other; by kind of operator in files of their own.
#pragma once

#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/graph.h"

namespace reef::compiler {

using model::Op;
using model::Operator;
using model::Padding;
using model::Tensor;
using model::TensorIndex;

/// An operation, or why it is none that chips compute.
using Read = std::expected<Operation, std::string>;

[[nodiscard]] inline bool is_byte(ElementType type) {
    return type == ElementType::uint8 || type == ElementType::int8;
}

/// From a stored value to the domain of uint8.
[[nodiscard]] inline std::int32_t flip_of(ElementType type) {
    return type == ElementType::int8 ? 128 : 0;
}

inline constexpr const char* shapes_disagree = "its shapes do not agree";

[[nodiscard]] inline std::unexpected<std::string> disagree() {
    return std::unexpected(std::string(shapes_disagree));
}

/// Fills in where the window begins. False when shapes do not agree.
[[nodiscard]] bool place_window(Window& window, Padding padding, const Value& in, const Value& out);

class GraphReader {
  public:
    explicit GraphReader(const model::Model& model)
        : model_(model), subgraph_(model.subgraphs.front()) {}

    [[nodiscard]] Graph run();

  private:
    static ValueId id(TensorIndex index) { return static_cast<ValueId>(index); }
    const Value& value(TensorIndex index) const { return graph_.values[id(index)]; }
    const Tensor& tensor(TensorIndex index) const { return subgraph_.tensors[id(index)]; }
    bool is_constant(TensorIndex index) const { return !model_.constant(tensor(index)).empty(); }

    void add(const Operator& op);
    /// Each tensor is written once, before it is read.
    [[nodiscard]] std::string order_problem(const Node& node);
    [[nodiscard]] std::string problem_of(const Operator& op, const Node& node) const;
    /// Whether the value is a state that the operator itself reads and writes.
    [[nodiscard]] bool is_kept_by(const Operator& op, ValueId value) const;

    /// Why the inputs are none that anything reads; empty when they are.
    [[nodiscard]] std::string input_problem(const Operator& op) const;
    Read operation_of(const Operator& op);
    /// Of an operator that arranges values anew; nothing for others.
    std::optional<Read> movement_of(const Operator& op) const;
    /// Of one that computes element by element, from two tensors or from one.
    std::optional<Read> elementwise_of(const Operator& op) const;
    static std::optional<Read> function_of(const Operator& op);
    template <typename Options>
    Read windowed(const Operator& op) const;
    Read fully_connected(const Operator& op) const;
    /// `bias`, `weights`: their positions; no bias where there are no such inputs.
    Read with_constants(const Operator& op, Convolution conv, std::size_t bias = 2,
                        std::size_t weights = 1) const;
    Read transposed(const Operator& op) const;
    Read blocks(const Operator& op) const;
    Read sum(const Operator& op) const;
    Read product(const Operator& op) const;
    /// `at`: which input is the constant.
    Read product_with(const Operator& op, std::size_t at) const;
    Read shifted(const Operator& op, std::size_t at, std::int32_t sign,
                 Activation activation) const;
    /// Which of two inputs is a constant, where one of them is.
    [[nodiscard]] std::optional<std::size_t> constant_of_pair(const Operator& op) const;
    Read difference(const Operator& op) const;
    Read maximum(const Operator& op) const;
    Read minimum(const Operator& op) const;
    Read prelu(const Operator& op) const;
    [[nodiscard]] std::vector<std::uint8_t> bytes_of(const Tensor& constant) const;
    Read concatenation(const Operator& op) const;
    Read pool(const Operator& op) const;
    Read mean(const Operator& op) const;
    Read resize(const Operator& op) const;
    Read pad(const Operator& op) const;
    Read split(const Operator& op) const;
    Read slice(const Operator& op) const;
    Read strided_slice(const Operator& op) const;
    Read slice_of(const Operator& op, std::span<const std::int32_t> begin,
                  std::span<const std::int32_t> step) const;
    Read reshape(const Operator& op) const;
    /// For an operator with one output that is no new arrangement of its input's values.
    [[nodiscard]] bool has_own_shape(const Operator& op) const;
    /// Whether the output has the shape that the operator's own numbers give it.
    [[nodiscard]] bool has_new_shape(const Operator& op) const;
    [[nodiscard]] bool has_split_lengths(const Operator& op, std::int32_t axis) const;
    Read transpose(const Operator& op) const;
    Read lstm(const Operator& op) const;
    [[nodiscard]] std::string lstm_problem(const Operator& op) const;
    [[nodiscard]] std::string lstm_state_problem(const Operator& op) const;
    /// Why they are not two computed tensors of the output's shape; empty when they are.
    [[nodiscard]] std::string pair_problem(const Operator& op) const;

    /// Options as the operator has them, or as the schema presets them where it has none.
    template <typename T>
    static std::expected<T, std::string> options(const Operator& op) {
        if (const auto* held = std::get_if<T>(&op.options)) return *held;
        if (std::holds_alternative<std::monostate>(op.options)) return T{};
        return std::unexpected("its options are another operator's");
    }

    template <typename T>
    std::optional<std::vector<T>> constant(TensorIndex index, ElementType type) const {
        if (index == model::absent_tensor || tensor(index).type != type) return std::nullopt;
        const Bytes bytes = model_.constant(tensor(index));
        if (bytes.empty()) return std::nullopt;
        std::vector<T> out(bytes.size() / sizeof(T));
        std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
        return out;
    }

    const model::Model& model_;
    const model::Subgraph& subgraph_;
    std::vector<bool> written_;  ///< by tensor: when the next operator runs
    Graph graph_;
};

}  // namespace reef::compiler
