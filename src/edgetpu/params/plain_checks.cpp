#include "edgetpu/params/plain_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace reef::edgetpu {
namespace {

using model::Tensor;
using model::TensorIndex;

/// Checks the tensors that operators of the first subgraph read, give or compute in between.
template <class Check>
Status check_tensors(const model::Model& plain, Check check) {
    const auto& graph = plain.subgraphs.front();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        for (const auto* list : {&op.inputs, &op.outputs, &op.intermediates})
            for (const TensorIndex index : *list) {
                if (index == model::absent_tensor) continue;
                REEF_CHECK(in_place(check(graph.tensors[static_cast<std::size_t>(index)]),
                                    model::place_of(graph, i)));
            }
    }
    return {};
}

std::string text_of(const model::Subgraph& graph, const std::vector<TensorIndex>& list) {
    std::string all;
    for (const TensorIndex index : list) {
        const Tensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
        all += fmt::format("{}{} {}", all.empty() ? "" : ", ", name_of(tensor.type),
                           model::shape_text(tensor.shape));
    }
    return all;
}

}  // namespace

Status check_dense(const model::Model& plain) {
    return check_tensors(plain, [](const Tensor& tensor) -> Status {
        if (!tensor.sparsity) return {};
        return fail(Cause::unsupported,
                    fmt::format("tensor '{}' holds its values in sparse form", tensor.name), {},
                    "convert the model with dense weights");
    });
}

Status check_scales(const model::Model& plain) {
    return check_tensors(plain, [](const Tensor& tensor) -> Status {
        const bool of_bytes = tensor.type == ElementType::int8 || tensor.type == ElementType::uint8;
        if (!of_bytes || !tensor.quantization) return {};
        for (const float scale : tensor.quantization->scale) {
            if (std::isfinite(scale) && scale > 0) continue;
            return fail(
                Cause::bad_input,
                fmt::format("tensor '{}' has scale {}, not a positive number", tensor.name, scale));
        }
        return {};
    });
}

std::optional<std::string> other_interface(const model::Model& compiled,
                                           const model::Model& plain) {
    const auto &ours = compiled.subgraphs.front(), &theirs = plain.subgraphs.front();
    for (const bool outputs : {false, true}) {
        const auto a = text_of(ours, outputs ? ours.outputs : ours.inputs);
        const auto b = text_of(theirs, outputs ? theirs.outputs : theirs.inputs);
        if (a != b)
            return fmt::format("the compiled model {} {}, the plain one {}",
                               outputs ? "gives" : "takes", a, b);
    }
    return std::nullopt;
}

}  // namespace reef::edgetpu
