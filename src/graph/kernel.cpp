#include "graph/kernel.h"

#include <fmt/format.h>

#include <cassert>

namespace reef::graph {
namespace {

std::string count_text(std::size_t min, std::size_t max) {
    if (min == max) return fmt::format("{}", min);
    return fmt::format("{} to {}", min, max);
}

}  // namespace

bool OperatorView::has_input(std::size_t i) const {
    return i < op().inputs.size() && op().inputs[i] != model::absent_tensor;
}

const model::Tensor& OperatorView::input(std::size_t i) const {
    assert(has_input(i));
    return graph_.tensors[static_cast<std::size_t>(op().inputs[i])];
}

const model::Tensor& OperatorView::output(std::size_t i) const {
    assert(i < op().outputs.size() && op().outputs[i] != model::absent_tensor);
    return graph_.tensors[static_cast<std::size_t>(op().outputs[i])];
}

bool OperatorView::has_intermediate(std::size_t i) const {
    return i < op().intermediates.size() && op().intermediates[i] != model::absent_tensor;
}

const model::Tensor& OperatorView::intermediate(std::size_t i) const {
    assert(has_intermediate(i));
    return graph_.tensors[static_cast<std::size_t>(op().intermediates[i])];
}

Bytes OperatorView::constant(std::size_t i) const {
    if (known_ != nullptr)
        if (const auto known = known_->find(op().inputs[i]); known != known_->end())
            return known->second.view();
    return model_.constant(input(i));
}

SharedBytes OperatorView::shared_constant(std::size_t i) const {
    if (known_ != nullptr)
        if (const auto known = known_->find(op().inputs[i]); known != known_->end())
            return known->second;
    return constant(i).empty() ? SharedBytes{} : model_.buffers[input(i).buffer];
}

Status OperatorView::expect_counts(std::size_t min_inputs, std::size_t max_inputs,
                                   std::size_t outputs) const {
    if (input_count() < min_inputs || input_count() > max_inputs)
        return fail(Cause::bad_input, fmt::format("{} inputs, the operator takes {}", input_count(),
                                                  count_text(min_inputs, max_inputs)));
    if (output_count() != outputs)
        return fail(Cause::bad_input,
                    fmt::format("{} outputs, the operator gives {}", output_count(), outputs));
    for (std::size_t i = 0; i < min_inputs; ++i) {
        if (!has_input(i)) return fail(Cause::bad_input, fmt::format("input {} is missing", i));
    }
    return {};
}

}  // namespace reef::graph
