#include "peers/likeness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace reef::peers {
namespace {

/// Sums over values.
struct Sums {
    std::size_t values = 0, equal = 0, stepped = 0;
    double farthest = 0, total = 0;
    std::optional<double> relative{};
};

/// `step`: 0 where values are not near each other because their numbers are.
template <typename T>
void add(Bytes ours, Bytes theirs, double step, Sums& sums) {
    for (std::size_t at = 0; at < ours.size(); at += sizeof(T)) {
        T a{}, b{};
        std::memcpy(&a, ours.data() + at, sizeof(T));
        std::memcpy(&b, theirs.data() + at, sizeof(T));
        ++sums.values;
        const double apart =
            step == 0 ? 0 : std::abs(static_cast<double>(a) - static_cast<double>(b)) / step;
        // Products with a scale may differ in their last bit.
        sums.equal += a == b || (step != 0 && apart < 0.01) ? 1 : 0;
        if (step == 0) continue;
        ++sums.stepped;
        sums.total += apart;
        sums.farthest = std::max(sums.farthest, apart);
    }
}

/// What no step is known of: by the largest value. Values that are no numbers are as far as can be.
void add_real(Bytes ours, Bytes theirs, Sums& sums) {
    double largest = 0, farthest = 0;
    for (std::size_t at = 0; at < ours.size(); at += sizeof(float)) {
        float a{}, b{};
        std::memcpy(&a, ours.data() + at, sizeof(float));
        std::memcpy(&b, theirs.data() + at, sizeof(float));
        const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
        constexpr double infinite = std::numeric_limits<double>::infinity();
        farthest = std::max(farthest, std::isnan(apart) ? infinite : apart);
        largest = std::max(largest, std::abs(static_cast<double>(a)));
        ++sums.values;
        sums.equal += a == b ? 1 : 0;
    }
    const double relative = farthest == 0 ? 0 : farthest / largest;
    sums.relative = std::max(sums.relative.value_or(0), relative);
}

/// The scale of what is dequantised to the tensor; 0: something else writes it.
double step_behind(const model::Subgraph& graph, model::TensorIndex output) {
    for (const model::Operator& op : graph.operators) {
        if (op.code.builtin != model::Op::dequantize || op.outputs[0] != output) continue;
        const auto& parameters = graph.tensors[static_cast<std::size_t>(op.inputs[0])].quantization;
        if (parameters && parameters->scale.size() == 1) return parameters->scale[0];
    }
    return 0;
}

void add_output(const model::Subgraph& graph, model::TensorIndex output, Bytes ours, Bytes theirs,
                Sums& sums) {
    switch (graph.tensors[static_cast<std::size_t>(output)].type) {
        case ElementType::uint8:
            return add<std::uint8_t>(ours, theirs, 1, sums);
        case ElementType::int8:
            return add<std::int8_t>(ours, theirs, 1, sums);
        case ElementType::int32:
            return add<std::int32_t>(ours, theirs, 0, sums);
        case ElementType::int64:
            return add<std::int64_t>(ours, theirs, 0, sums);
        case ElementType::float32:
            if (const double step = step_behind(graph, output); step > 0)
                add<float>(ours, theirs, step, sums);
            else
                add_real(ours, theirs, sums);
            return;
        default:
            return;
    }
}

}  // namespace

std::vector<Bytes> outputs_of(const graph::Executor& executor) {
    std::vector<Bytes> outputs;
    for (std::size_t i = 0; i < executor.output_count(); ++i) outputs.push_back(executor.output(i));
    return outputs;
}

Likeness likeness(const graph::Executor& ours, const std::vector<Bytes>& theirs) {
    Sums sums;
    for (std::size_t i = 0; i < ours.output_count(); ++i)
        add_output(ours.graph(), ours.graph().outputs[i], ours.output(i), theirs[i], sums);
    Likeness result{.farthest = sums.farthest, .relative = sums.relative};
    if (sums.values > 0)
        result.equal = static_cast<double>(sums.equal) / static_cast<double>(sums.values);
    if (sums.stepped > 0) result.mean = sums.total / static_cast<double>(sums.stepped);
    return result;
}

}  // namespace reef::peers
