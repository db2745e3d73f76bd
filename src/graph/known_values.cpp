#include "graph/known_values.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace reef::graph {
namespace {

/// Of a tensor: numbers of a shape, or for each of its dimensions.
constexpr std::size_t most_bytes = 256;

bool is_small(const model::Tensor& tensor) {
    const auto bytes = tensor.byte_count();
    const bool numbers = tensor.type == ElementType::int32 || tensor.type == ElementType::int64 ||
                         tensor.type == ElementType::float32;
    return numbers && bytes && *bytes > 0 && std::cmp_less_equal(*bytes, most_bytes);
}

/// A shape is known whatever the tensor holds.
bool reads_values(const OperatorView& op) {
    return op.op().code.builtin != model::Op::shape;
}

}  // namespace

bool is_known_before(const OperatorView& op) {
    if (op.op().code.builtin == model::Op::custom || op.output_count() == 0) return false;
    for (std::size_t i = 0; i < op.output_count(); ++i)
        if (op.op().outputs[i] == model::absent_tensor || !is_small(op.output(i))) return false;
    if (!reads_values(op)) return true;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        if (!op.has_input(i)) continue;
        if (op.constant(i).empty() || op.constant(i).size() > most_bytes) return false;
    }
    return true;
}

void add_known(const OperatorView& op, Kernel& kernel, WorkerPool& pool, KnownValues& known) {
    if (kernel.scratch_bytes() > 0) return;
    std::vector<std::vector<std::byte>> values;
    values.reserve(op.input_count() + op.output_count());
    std::vector<std::byte*> inputs, outputs;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        const Bytes bytes = op.has_input(i) && reads_values(op) ? op.constant(i) : Bytes{};
        std::ranges::copy(bytes, values.emplace_back(most_bytes).begin());
        inputs.push_back(bytes.empty() ? nullptr : values.back().data());
    }
    for (std::size_t i = 0; i < op.output_count(); ++i)
        outputs.push_back(values.emplace_back(most_bytes).data());
    kernel.pack();
    if (!kernel.run({inputs, outputs, {}, pool})) return;
    for (std::size_t i = 0; i < op.output_count(); ++i)
        known[op.op().outputs[i]] = SharedBytes::copy_of(
            Bytes(outputs[i], static_cast<std::size_t>(*op.output(i).byte_count())));
}

}  // namespace reef::graph
