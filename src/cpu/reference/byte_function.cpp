#include "cpu/prepare/byte_function.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/reference/byte_table.h"
#include "graph/in_place.h"
#include "graph/packed_inputs.h"

namespace reef::cpu {
namespace {

using model::Op;

bool combines_elements(Op op) {
    return op == Op::mul || op == Op::add || op == Op::sub || op == Op::maximum ||
           op == Op::minimum;
}

bool is_function_of_an_element(Op op) {
    switch (op) {
        case Op::logistic:
        case Op::tanh:
        case Op::hard_swish:
        case Op::relu:
        case Op::relu6:
        case Op::leaky_relu:
        case Op::quantize:
            return true;
        default:
            return false;
    }
}

bool are_bytes_alike(const model::Tensor& a, const model::Tensor& b) {
    return (a.type == ElementType::uint8 || a.type == ElementType::int8) && a.type == b.type &&
           a.shape == b.shape;
}

class ByteFunctionKernel final : public Kernel,
                                 public graph::PacksInputs,
                                 public graph::WorksInPlace {
  public:
    ByteFunctionKernel(std::string name, std::size_t input, std::size_t size)
        : name_(std::move(name)), input_(input), size_(size) {}

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] bool reads_input(std::size_t i) const override { return i == input_; }
    [[nodiscard]] std::size_t replaced_input() const override { return input_; }
    [[nodiscard]] ByteTable& table() { return table_; }
    [[nodiscard]] Status run(const Frame& frame) override {
        constexpr std::size_t grain = 8192;
        const auto* in = frame.in<std::uint8_t>(input_);
        auto* out = frame.out<std::uint8_t>(0);
        frame.pool.parallel_for(size_, grain,
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    look_up_bytes(table_, in + begin, out + begin, end - begin);
                                });
        return {};
    }

  private:
    std::string name_;
    std::size_t input_, size_;
    ByteTable table_{};
};

/// Both operators, of tensors of 256 elements: 0 is the tensor, 1 the function, 2 the result.
model::Model of_every_byte(const OperatorView& op, const ByteFunction& function) {
    const auto of_256 = [](const model::Tensor& tensor) {
        model::Tensor out;
        out.name = tensor.name;
        out.shape = {256};
        out.type = tensor.type;
        out.quantization = tensor.quantization;
        return out;
    };
    model::Subgraph graph;
    graph.tensors = {of_256(op.input(function.direct)), of_256(op.input(1 - function.direct)),
                     of_256(op.output(0))};
    model::Operator before = op.graph().operators[function.before], after = op.op();
    before.inputs = {0};
    before.outputs = {1};
    after.inputs = function.direct == 0 ? std::vector<model::TensorIndex>{0, 1}
                                        : std::vector<model::TensorIndex>{1, 0};
    after.outputs = {2};
    graph.operators = {std::move(before), std::move(after)};
    graph.inputs = {0};
    graph.outputs = {2};
    model::Model model;
    model.buffers.emplace_back();
    model.subgraphs.push_back(std::move(graph));
    return model;
}

}  // namespace

std::optional<ByteFunction> byte_function_of(const OperatorView& op) {
    const auto& graph = op.graph();
    if (!combines_elements(op.op().code.builtin) || op.input_count() != 2 ||
        op.output_count() != 1 || !op.has_input(0) || !op.has_input(1))
        return std::nullopt;
    if (!are_bytes_alike(op.input(0), op.input(1)) || !are_bytes_alike(op.input(0), op.output(0)))
        return std::nullopt;
    for (std::size_t i = op.index(); i-- > 0;) {
        const model::Operator& before = graph.operators[i];
        if (!is_function_of_an_element(before.code.builtin) || before.inputs.size() != 1 ||
            before.outputs.size() != 1)
            continue;
        for (const std::size_t direct : {0U, 1U})
            if (before.inputs[0] == op.op().inputs[direct] &&
                before.outputs[0] == op.op().inputs[1 - direct])
                return ByteFunction{.before = i, .direct = direct};
    }
    return std::nullopt;
}

PreparedKernel prepare_byte_function(const OperatorView& op, const ByteFunction& function,
                                     Prepare of_before, Prepare of_op,
                                     const PrepareOptions& options) {
    const model::Model model = of_every_byte(op, function);
    const model::Subgraph& graph = model.subgraphs.front();
    const auto before = REEF_TRY(of_before(OperatorView(model, graph, 0), options));
    const auto after = REEF_TRY(of_op(OperatorView(model, graph, 1), options));
    if (before->scratch_bytes() != 0 || after->scratch_bytes() != 0)
        return fail(Cause::unsupported, "functions of bytes that need room besides");
    before->pack();
    after->pack();

    alignas(64) ByteTable values{}, function_values{};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i);
    auto kernel = std::make_unique<ByteFunctionKernel>(
        after->name() + " table", function.direct,
        static_cast<std::size_t>(op.output(0).element_count()));
    const auto at = [](ByteTable& table) { return reinterpret_cast<std::byte*>(table.data()); };
    std::byte* direct = at(values);
    std::byte* computed = at(function_values);
    std::byte* const operands[] = {function.direct == 0 ? direct : computed,
                                   function.direct == 0 ? computed : direct};
    alignas(64) ByteTable results{};
    std::byte* out = at(results);
    WorkerPool pool(1);
    REEF_CHECK(before->run({std::span(&direct, 1), std::span(&computed, 1), {}, pool}));
    REEF_CHECK(after->run({operands, std::span(&out, 1), {}, pool}));
    kernel->table() = results;
    return kernel;
}

}  // namespace reef::cpu
