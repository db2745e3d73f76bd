#include "reef/model/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reef::model {
namespace {

// Names come from files: control characters would let a file write to the reader's terminal.
std::string printable(std::string_view name) {
    constexpr std::size_t longest = 120;
    std::string text(name.substr(0, longest));
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    if (name.size() > longest) text += "...";
    return text;
}

}  // namespace

std::int64_t Tensor::element_count() const {
    std::int64_t count = 1;
    for (const std::int32_t size : shape) count *= size;
    return count;
}

std::optional<std::int64_t> Tensor::byte_count() const {
    const auto size = size_of(type);
    if (!size) return std::nullopt;
    return element_count() * static_cast<std::int64_t>(*size);
}

Bytes Model::constant(const Tensor& tensor) const {
    return buffers[tensor.buffer].view();
}

std::string place_of(const Subgraph& subgraph, std::size_t operator_index) {
    return fmt::format("operator {} {}", operator_index,
                       printable(subgraph.operators[operator_index].code.name()));
}

std::string place_of_tensor(const Subgraph& subgraph, TensorIndex index) {
    if (index < 0 || static_cast<std::size_t>(index) >= subgraph.tensors.size()) {
        return fmt::format("tensor {}", index);
    }
    const std::string& name = subgraph.tensors[static_cast<std::size_t>(index)].name;
    if (name.empty()) return fmt::format("tensor {}", index);
    return fmt::format("tensor {} '{}'", index, printable(name));
}

std::string shape_text(const std::vector<std::int32_t>& shape) {
    if (shape.empty()) return "scalar";
    return fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace reef::model
