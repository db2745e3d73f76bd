#include "compare/fed_operators.h"

#include <algorithm>

#include "inputs/tensor_input.h"
#include "reef/runtime/session.h"

namespace reef::tool {
namespace {

using model::TensorIndex;

std::size_t place_of(TensorIndex index) {
    return static_cast<std::size_t>(index);
}

/// The tensors that operator reads and that are neither constants nor state of its own.
std::vector<TensorIndex> read_by(const model::Model& model, const model::Operator& op) {
    std::vector<TensorIndex> read;
    for (const TensorIndex in : op.inputs) {
        if (in == model::absent_tensor) continue;
        const auto& tensor = model.subgraphs.front().tensors[place_of(in)];
        const bool given = model.constant(tensor).empty() && !tensor.is_variable;
        if (given && std::ranges::find(read, in) == read.end()) read.push_back(in);
    }
    return read;
}

Result<runtime::Session> run_alone(const model::Model& alone,
                                   const std::vector<std::vector<std::byte>>& values) {
    auto session = REEF_TRY(runtime::Session::open(alone, {}));
    const auto& inputs = session.graph().inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        std::ranges::copy(values[place_of(inputs[i])], session.input(i).begin());
    REEF_CHECK(session.run());
    return session;
}

}  // namespace

Result<ComputedTensors> run_fed_operators(const model::Model& plain, const InputBytes& inputs,
                                          const LayerDump& dump) {
    const auto& graph = plain.subgraphs.front();
    ComputedTensors computed(graph.tensors.size());
    auto read = computed;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        computed[place_of(graph.inputs[i])] = inputs[i];
        read[place_of(graph.inputs[i])] = inputs[i];
    }
    model::Model alone = plain;
    alone.signatures.clear();
    auto& part = alone.subgraphs.front();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        part.operators = {op};
        part.inputs = read_by(plain, op);
        part.outputs.clear();
        for (const TensorIndex out : op.outputs)
            if (out != model::absent_tensor) part.outputs.push_back(out);
        const auto session = REEF_TRY(in_place(run_alone(alone, read), model::place_of(graph, i)));
        for (std::size_t o = 0; o < part.outputs.size(); ++o) {
            const Bytes bytes = session.output(o);
            computed[place_of(part.outputs[o])].assign(bytes.begin(), bytes.end());
            read[place_of(part.outputs[o])].assign(bytes.begin(), bytes.end());
        }
        for (const DumpedLayer& layer : dump.layers)
            if (layer.match && layer.match->comparable && layer.match->op == i)
                read[place_of(layer.match->tensor)] = layer.tensor.data;
    }
    return computed;
}

}  // namespace reef::tool
