// What operators are in the terms of the chip; shared by the predicates and by what uses them.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "compiler/graph.h"
#include "rk3588/compiler/plan.h"

namespace reef::rk3588::lowering {

/// A depthwise or direct convolution of int8 values.
struct Numbers {
    Requantisation requantisation;
    std::vector<std::int32_t> biases;  ///< with the input's zero point in them
    std::int32_t input_zero = 0, weight_zero = 0;
};

/// The value, or why the chip does not compute it: a clause.
template <typename T>
using Or = std::expected<T, std::string>;

[[nodiscard]] ConvolutionShape shape_of(const compiler::Graph& graph, const compiler::Node& node,
                                        const compiler::Convolution& conv);
/// A pool is a depthwise convolution with one weight for all pixels.
[[nodiscard]] ConvolutionShape shape_of(const compiler::Graph& graph, const compiler::Node& node,
                                        const compiler::AveragePool& pool);

/// A constant that is taken off is no whole number of the input's steps, but nearly one of parts of
/// them: of weights that were 1. Nothing: the convolution has no such constants.
[[nodiscard]] std::optional<compiler::Convolution> with_fine_biases(
    const compiler::Convolution& conv, const compiler::Value& in);
/// Precondition: it has no offsets.
[[nodiscard]] Or<Numbers> numbers_of(const compiler::Graph& graph, const compiler::Node& node,
                                     const compiler::Convolution& conv, const Options& options);

/// Weights of a pool: all the same (int8 domain, with zero point 0).
struct PoolNumbers {
    Numbers numbers;
    std::int32_t weight = 1;
    std::optional<TableContents> tables{};  ///< what the sums go through in front of the converter
};
[[nodiscard]] Or<PoolNumbers> numbers_of(const compiler::Graph& graph, const compiler::Node& node,
                                         const compiler::AveragePool& pool, const Options& options);

/// Element-wise operators of one or two tensors. Nothing but a search tells the gains: it takes a
/// millisecond or some.
[[nodiscard]] Or<ElementStep> element_of(const compiler::Graph& graph, const compiler::Node& node,
                                         const compiler::Sum& sum);
[[nodiscard]] Or<ElementStep> element_of(const compiler::Graph& graph, const compiler::Node& node,
                                         const compiler::Difference& difference);
[[nodiscard]] Or<ElementStep> element_of(const compiler::Graph& graph, const compiler::Node& node,
                                         const compiler::Product& product);
[[nodiscard]] Or<ElementStep> element_of(const compiler::Graph& graph, const compiler::Node& node,
                                         const compiler::Rescale& rescale);

/// Products that the definition needs.
[[nodiscard]] std::uint64_t macs_of(const ConvolutionShape& shape);

/// Registers have fields for such windows and sizes, and the CBUF has room for a row.
[[nodiscard]] std::string refuse_shape(const ConvolutionShape& shape);

/// Element-wise gains reach from one scale to the other.
[[nodiscard]] std::string refuse_ratio(double ratio, std::string_view of);
[[nodiscard]] inline double ratio_of(const compiler::Graph& graph, const compiler::Node& node) {
    return static_cast<double>(graph.values[node.inputs[0]].scale) /
           static_cast<double>(graph.values[node.outputs[0]].scale);
}

/// The results' range that an activation leaves, int8 domain; nothing: one that the chip has not.
struct Range {
    std::int32_t low = -128, high = 127;
    [[nodiscard]] bool whole() const { return low == -128 && high == 127; }
};
[[nodiscard]] std::optional<Range> range_of(compiler::Activation activation,
                                            const compiler::Value& out);

/// Zero points of values, int8 domain.
[[nodiscard]] inline std::int32_t zero_of(const compiler::Value& value) {
    return value.zero - 128;
}

}  // namespace reef::rk3588::lowering
