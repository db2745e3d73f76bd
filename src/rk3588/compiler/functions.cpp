#include "rk3588/compiler/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588::lowering {
namespace {

using compiler::Graph;
using compiler::Node;
using compiler::Value;
using model::Op;
using model::Tensor;
using model::TensorIndex;

constexpr std::int32_t all_values = 256;
/// Arguments that a table has on one side.
constexpr std::int32_t table_reach = (spec::lut_entries - 1) << spec::lut_fraction_bits;

std::size_t index_of(const Graph& graph, const Node& node) {
    return static_cast<std::size_t>(&node - graph.nodes.data());
}

const model::Operator& operator_of(const Graph& graph, std::size_t index) {
    return graph.subgraph().operators[index];
}

const Tensor& tensor_of(const Graph& graph, TensorIndex index) {
    return graph.subgraph().tensors[static_cast<std::size_t>(index)];
}

bool is_byte(const Tensor& tensor) {
    return tensor.type == ElementType::uint8 || tensor.type == ElementType::int8;
}

/// Whether all its bytes are one value.
bool has_one_value(Bytes constant) {
    return !constant.empty() &&
           std::ranges::all_of(constant, [&](std::byte b) { return b == constant.front(); });
}

/// Every result is made of the operands at its own place alone.
bool is_by_element(Op op) {
    switch (op) {
        case Op::add:
        case Op::sub:
        case Op::mul:
        case Op::maximum:
        case Op::minimum:
        case Op::quantize:
        case Op::relu:
        case Op::relu6:
        case Op::leaky_relu:
        case Op::prelu:
        case Op::logistic:
        case Op::tanh:
        case Op::hard_swish:
            return true;
        default:
            return false;
    }
}

/// A function of the bytes that it reads at one place: no operand but those, or one value for all.
bool is_function(const Graph& graph, std::size_t index) {
    const Node& node = graph.nodes[index];
    const model::Operator& op = operator_of(graph, index);
    if (std::holds_alternative<compiler::Unknown>(node.operation) ||
        std::holds_alternative<compiler::Folded>(node.operation) || !is_by_element(op.code.builtin))
        return false;
    for (const TensorIndex in : op.inputs) {
        const Bytes constant = graph.model->constant(tensor_of(graph, in));
        if (!is_byte(tensor_of(graph, in)) || (!constant.empty() && !has_one_value(constant)))
            return false;
    }
    const Value& out = graph.values[node.outputs[0]];
    return std::ranges::all_of(node.inputs,
                               [&](ValueId in) { return graph.values[in].same_shape(out); });
}

/// An operator alone, on every value of a byte.
class SingleOperator {
  public:
    SingleOperator(const Graph& graph, std::size_t index) {
        const model::Operator& op = operator_of(graph, index);
        model_.buffers.emplace_back();
        auto& part = model_.subgraphs.emplace_back();
        model::Operator alone = op;
        std::map<TensorIndex, TensorIndex> computed;
        std::size_t operand = 0;
        for (TensorIndex& in : alone.inputs) {
            const Bytes constant = graph.model->constant(tensor_of(graph, in));
            if (!constant.empty()) {
                in = add(tensor_of(graph, in), 1);
                part.tensors.back().buffer = static_cast<std::uint32_t>(model_.buffers.size());
                model_.buffers.push_back(SharedBytes::copy_of(constant.first(1)));
                continue;
            }
            const auto [known, is_new] = computed.try_emplace(in);
            if (is_new) {
                known->second = add(tensor_of(graph, in), all_values);
                part.inputs.push_back(known->second);
                operands_.push_back(operand);
            }
            in = known->second;
            ++operand;
        }
        alone.outputs = {add(tensor_of(graph, op.outputs[0]), all_values)};
        part.outputs = alone.outputs;
        part.operators.push_back(std::move(alone));
    }

    /// Functions of its operands that are computed, in their order.
    [[nodiscard]] Result<ByteFunction> of(std::span<const ByteFunction> operands) const {
        auto run = REEF_TRY(graph::Executor::create(
            model_, {.placers = {cpu::placer({.kernels = cpu::KernelSet::reference})}}));
        const auto& part = model_.subgraphs[0];
        for (std::size_t i = 0; i < run.input_count(); ++i)
            std::ranges::transform(operands[operands_[i]], run.input(i).begin(),
                                   [flip = flip_of(part.inputs[i])](std::int8_t v) {
                                       return static_cast<std::byte>(v) ^ flip;
                                   });
        REEF_CHECK(run.run());
        ByteFunction out{};
        std::ranges::transform(run.output(0), out.begin(),
                               [flip = flip_of(part.outputs[0])](std::byte v) {
                                   return static_cast<std::int8_t>(v ^ flip);
                               });
        return out;
    }

  private:
    TensorIndex add(Tensor tensor, std::int32_t elements) {
        tensor.shape = {1, 1, 1, elements};
        tensor.shape_signature.reset();
        tensor.buffer = 0;
        auto& tensors = model_.subgraphs[0].tensors;
        tensors.push_back(std::move(tensor));
        return static_cast<TensorIndex>(tensors.size()) - 1;
    }
    [[nodiscard]] std::byte flip_of(TensorIndex index) const {
        const auto& tensor = model_.subgraphs[0].tensors[static_cast<std::size_t>(index)];
        return tensor.type == ElementType::uint8 ? std::byte{0x80} : std::byte{0};
    }

    model::Model model_;
    std::vector<std::size_t> operands_;  ///< by input of the model: which operand it is first
};

ByteFunction identity() {
    ByteFunction out{};
    std::iota(out.begin(), out.end(), std::numeric_limits<std::int8_t>::min());
    return out;
}

/// What the members make of the root, one after the other.
Result<ByteFunction> function_of(const Graph& graph, ValueId root,
                                 std::span<const std::size_t> members) {
    std::map<ValueId, ByteFunction> made{{root, identity()}};
    for (const std::size_t member : members) {
        const Node& node = graph.nodes[member];
        std::vector<ByteFunction> operands;
        for (const ValueId in : node.inputs) operands.push_back(made.at(in));
        made[node.outputs[0]] = REEF_TRY(SingleOperator(graph, member).of(operands));
    }
    return made.at(graph.nodes[members.back()].outputs[0]);
}

/// The members of a group while it grows from its last one.
struct Growing {
    std::set<std::size_t> members;
    std::set<ValueId> arguments;

    void add(const Graph& graph, std::size_t node) {
        members.insert(node);
        arguments.erase(graph.nodes[node].outputs[0]);
        for (const ValueId in : graph.nodes[node].inputs) arguments.insert(in);
    }
};

/// An operator of the program that makes an argument for the members alone.
std::optional<std::size_t> before(const Graph& graph, std::span<const std::size_t> program,
                                  const Growing& group) {
    for (const ValueId argument : group.arguments) {
        const auto maker = graph.producer(argument);
        if (!maker || !compiler::holds(program, *maker) || !is_function(graph, *maker) ||
            graph.is_output(argument))
            continue;
        const auto readers = graph.readers(argument);
        if (std::ranges::all_of(readers,
                                [&](std::size_t reader) { return group.members.contains(reader); }))
            return maker;
    }
    return std::nullopt;
}

}  // namespace

TableContents tables_of(const ByteFunction& function) {
    constexpr std::size_t middle = std::tuple_size_v<ByteFunction> / 2;
    TableContents tables{-table_reach, 0, 0, table_reach, {}};
    // An entry is the function of the value that is nearest to it, so that neither what stands
    // between two entries nor which table answers for 0 matters.
    for (const std::size_t first : {std::size_t{0}, middle})
        for (std::size_t i = 0; i < spec::lut_entries; ++i) {
            const std::size_t at = first + ((i + 1) >> entry_bits);
            const std::int32_t result = function[std::min(at, function.size() - 1)];
            tables.entries.push_back(static_cast<std::int16_t>(result * (1 << result_bits)));
        }
    return tables;
}

std::optional<Truncation> truncation_of(std::int32_t count) {
    constexpr std::int32_t least = std::numeric_limits<std::int8_t>::min(),
                           most = std::numeric_limits<std::int8_t>::max();
    if (count > table_reach / -least) return std::nullopt;
    // Twice the sum, nearer to zero by all that a fraction of the quotient may be.
    const std::int32_t fraction = count - 1, dead = count / 2;
    const auto nearer = [&](std::int32_t sum) {
        return sum <= -dead ? 2 * sum + fraction : 2 * std::max(sum, dead) - fraction;
    };
    Truncation out{{-dead - table_reach, -dead, dead, dead + table_reach, {}},
                   nearest_scale(1.0 / (2.0 * count))};
    for (const std::int32_t start : {out.tables.le_start, out.tables.lo_start})
        for (std::size_t i = 0; i < spec::lut_entries; ++i) {
            const auto sum = start + static_cast<std::int32_t>(i << spec::lut_fraction_bits);
            // The outermost entries belong to sums that no bytes have.
            const std::int32_t entry = start < 0 ? 2 * sum + fraction : 2 * sum - fraction;
            out.tables.entries.push_back(static_cast<std::int16_t>(
                std::clamp<std::int32_t>(entry, std::numeric_limits<std::int16_t>::min(),
                                         std::numeric_limits<std::int16_t>::max())));
        }
    const Requantisation converter{.scale = out.converter.scale, .shift = out.converter.shift};
    for (std::int32_t sum = least * count; sum <= most * count; ++sum)
        if (converted(nearer(sum), converter) != sum / count) return std::nullopt;
    return out;
}

bool needs_table(const Graph& graph, const Node& node) {
    if (const auto* rescale = std::get_if<compiler::Rescale>(&node.operation))
        return !refuse_ratio(ratio_of(graph, node), "two").empty() ||
               !element_of(graph, node, *rescale);
    return std::holds_alternative<compiler::Logistic>(node.operation) ||
           std::holds_alternative<compiler::Tanh>(node.operation) ||
           std::holds_alternative<compiler::HardSwish>(node.operation) ||
           std::holds_alternative<compiler::LeakyRelu>(node.operation) ||
           std::holds_alternative<compiler::Prelu>(node.operation);
}

std::string refuse_function(const Graph& graph, const Node& node) {
    const std::size_t index = index_of(graph, node);
    if (!is_function(graph, index)) return "it is no function of one value";
    const auto function = function_of(graph, node.inputs[0], std::array{index});
    return function ? std::string() : function.error().what;
}

std::optional<FunctionGroup> function_behind(const Graph& graph,
                                             std::span<const std::size_t> program,
                                             std::size_t last) {
    if (!is_function(graph, last)) return std::nullopt;
    Growing growing;
    growing.add(graph, last);
    std::optional<Growing> best;
    while (true) {
        if (growing.arguments.size() == 1) best = growing;
        const auto next = before(graph, program, growing);
        if (!next) break;
        growing.add(graph, *next);
    }
    if (!best) return std::nullopt;
    FunctionGroup group{*best->arguments.begin(), {best->members.begin(), best->members.end()}, {}};
    if (group.members.size() == 1 && !needs_table(graph, graph.nodes[last])) return std::nullopt;
    const auto function = function_of(graph, group.root, group.members);
    if (!function) return std::nullopt;
    group.function = *function;
    return group;
}

}  // namespace reef::rk3588::lowering
