#include "graph/known_values.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "graph/memory_plan.h"

namespace reef::graph {
namespace {

/// Of an operator's outputs: numbers of a shape, or for each of its dimensions.
constexpr std::size_t small_bytes = 256;
/// Constants grow as bytes do that become float32, and no further: what TILE makes of one stays
/// with the runs.
constexpr std::size_t most_growth = sizeof(float);
/// All of them: once as float32, and once more in another order.
constexpr std::size_t most_growth_of_all = 2 * most_growth;

/// Bytes that several constants name count once: a small file could name them any number of times.
std::size_t bytes_of_constants(const model::Model& model, const model::Subgraph& graph) {
    std::vector<std::pair<std::uintptr_t, std::size_t>> parts;
    for (const model::Tensor& tensor : graph.tensors)
        if (const Bytes bytes = model.constant(tensor); !bytes.empty())
            parts.emplace_back(reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size());
    std::ranges::sort(parts);
    std::size_t sum = 0;
    std::uintptr_t counted = 0;  // up to this address
    for (const auto& [begin, size] : parts) {
        const std::uintptr_t end = begin + size, from = std::max(begin, counted);
        if (end > from) sum += end - from;
        counted = std::max(counted, end);
    }
    return sum;
}

/// A shape is known whatever the tensor holds.
bool reads_values(const OperatorView& op) {
    return op.op().code.builtin != model::Op::shape;
}

using Memory = std::shared_ptr<std::byte[]>;

/// Aligned as `new` aligns, to 16 bytes at least; null where there is none.
Memory memory_of(std::size_t bytes) {
    static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);
    return Memory(new (std::nothrow) std::byte[std::max<std::size_t>(bytes, 1)]);
}

std::size_t bytes_of(const model::Tensor& tensor) {
    return static_cast<std::size_t>(tensor.byte_count().value_or(0));
}

/// The input's bytes as a Frame has them; copied where they lie askew.
std::byte* place(Bytes bytes, std::vector<Memory>& copies) {
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 16 == 0)
        return const_cast<std::byte*>(bytes.data());
    const Memory& copy = copies.emplace_back(memory_of(bytes.size()));
    if (copy != nullptr) std::memcpy(copy.get(), bytes.data(), bytes.size());
    return copy.get();
}

/// The outputs; none where the operator fails or there is no memory for them.
std::vector<SharedBytes> computed(const OperatorView& op, Kernel& kernel, WorkerPool& pool) {
    std::vector<Memory> copies;
    std::vector<SharedBytes> values;
    std::vector<std::byte*> inputs, outputs;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        const bool read = op.has_input(i) && reads_values(op);
        inputs.push_back(read ? place(op.constant(i), copies) : nullptr);
        if (read && inputs.back() == nullptr) return {};
    }
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        const Memory memory = memory_of(bytes_of(op.output(i)));
        if (memory == nullptr) return {};
        outputs.push_back(memory.get());
        values.emplace_back(Bytes(memory.get(), bytes_of(op.output(i))), memory);
    }
    try {
        kernel.pack();
    } catch (const std::bad_alloc&) {
        return {};
    }
    if (!kernel.run({inputs, outputs, {}, pool})) return {};
    return values;
}

std::size_t made_by(const OperatorView& op) {
    std::size_t made = 0;
    for (std::size_t i = 0; i < op.output_count(); ++i) made += bytes_of(op.output(i));
    return made;
}

bool makes_bytes(const OperatorView& op) {
    for (std::size_t i = 0; i < op.output_count(); ++i)
        if (size_of(op.output(i).type).value_or(0) == 1) return true;
    return false;
}

/// In place of the outputs. Pages of a large block take no memory as long as nobody reads them.
std::vector<SharedBytes> zeros(const OperatorView& op) {
    std::vector<SharedBytes> values;
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        const std::size_t bytes = bytes_of(op.output(i));
        const std::shared_ptr<void> memory(std::calloc(bytes, 1), std::free);
        if (memory == nullptr) return {};
        values.emplace_back(Bytes(static_cast<const std::byte*>(memory.get()), bytes), memory);
    }
    return values;
}

}  // namespace

KnownBefore::KnownBefore(const model::Model& model, const model::Subgraph& graph, Large large)
    : large_(large),
      room_(std::min(bytes_of_constants(model, graph), arena_limit / most_growth_of_all) *
            most_growth_of_all) {}

bool KnownBefore::includes(const OperatorView& op) const {
    if (op.op().code.builtin == model::Op::custom || op.output_count() == 0) return false;
    for (std::size_t i = 0; i < op.output_count(); ++i)
        if (op.op().outputs[i] == model::absent_tensor || bytes_of(op.output(i)) == 0) return false;
    const std::size_t made = made_by(op);
    if (!reads_values(op)) return made <= small_bytes;
    std::size_t constants = 0;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        if (!op.has_input(i)) continue;
        if (op.constant(i).empty()) return false;
        constants += op.constant(i).size();
    }
    return made <= small_bytes || (made <= constants * most_growth && made <= room_);
}

std::vector<std::size_t> KnownBefore::needed_by(const OperatorView& op) {
    const auto& inputs = op.op().inputs;
    const auto is_zeros = [&](model::TensorIndex input) { return zeros_.contains(input); };
    const bool reads_zeros = reads_values(op) && std::ranges::any_of(inputs, is_zeros);
    const bool may_be_asked_for = made_by(op) <= small_bytes || makes_bytes(op);
    if (!reads_zeros || !may_be_asked_for) return {};
    zeros_.clear();
    return std::exchange(postponed_, {});
}

void KnownBefore::add(const OperatorView& op, Kernel& kernel, WorkerPool& pool, bool needed) {
    if (kernel.scratch_bytes() > 0) return;
    const std::size_t made = made_by(op);
    const bool is_new_and_large = made > small_bytes && !needed;
    const bool is_postponed = is_new_and_large && large_ == Large::when_needed && !makes_bytes(op);
    const auto& outputs = op.op().outputs;
    if (is_new_and_large) room_ -= made;
    if (is_postponed) {
        postponed_.push_back(op.index());
        zeros_.insert(outputs.begin(), outputs.end());
    }
    const std::vector<SharedBytes> values = is_postponed ? zeros(op) : computed(op, kernel, pool);
    for (const model::TensorIndex output : outputs) values_.erase(output);
    for (std::size_t i = 0; i < values.size(); ++i) values_[outputs[i]] = values[i];
}

}  // namespace reef::graph
