#include "graph/known_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace reef::graph {
namespace {

/// Of an operator's outputs: numbers of a shape, or for each of its dimensions.
constexpr std::size_t small_bytes = 256;
/// Constants grow as bytes do that become float32, and no further: what TILE makes of one stays
/// with the runs.
constexpr std::size_t most_growth = sizeof(float);

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

}  // namespace

bool is_known_before(const OperatorView& op) {
    if (op.op().code.builtin == model::Op::custom || op.output_count() == 0) return false;
    std::size_t made = 0;
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        if (op.op().outputs[i] == model::absent_tensor || bytes_of(op.output(i)) == 0) return false;
        made += bytes_of(op.output(i));
    }
    if (!reads_values(op)) return made <= small_bytes;
    std::size_t constants = 0;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        if (!op.has_input(i)) continue;
        if (op.constant(i).empty()) return false;
        constants += op.constant(i).size();
    }
    return made <= std::max(small_bytes, constants * most_growth);
}

void add_known(const OperatorView& op, Kernel& kernel, WorkerPool& pool, KnownValues& known) {
    if (kernel.scratch_bytes() > 0) return;
    std::vector<Memory> copies, values;
    std::vector<std::byte*> inputs, outputs;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        const bool read = op.has_input(i) && reads_values(op);
        inputs.push_back(read ? place(op.constant(i), copies) : nullptr);
        if (read && inputs.back() == nullptr) return;
    }
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        outputs.push_back(values.emplace_back(memory_of(bytes_of(op.output(i)))).get());
        if (outputs.back() == nullptr) return;
    }
    kernel.pack();
    if (!kernel.run({inputs, outputs, {}, pool})) return;
    for (std::size_t i = 0; i < op.output_count(); ++i)
        known[op.op().outputs[i]] = {Bytes(outputs[i], bytes_of(op.output(i))), values[i]};
}

}  // namespace reef::graph
