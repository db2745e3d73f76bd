#include "graph/data_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace reef::graph {
namespace {

class Tracer {
  public:
    Tracer(const model::Model& model, const model::Subgraph& graph)
        : model_(model), graph_(graph), uses_(graph.tensors.size()), ready_(graph.tensors.size()) {}

    Result<std::vector<TensorUse>> trace() {
        for (const model::TensorIndex index : graph_.inputs) REEF_CHECK(feed(index));
        for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
            const model::Operator& op = graph_.operators[i];
            const std::string place = model::place_of(graph_, i);
            for (const model::TensorIndex index : op.inputs)
                REEF_CHECK(in_place(read(index, i), place));
            for (const model::TensorIndex index : op.outputs)
                REEF_CHECK(in_place(write(index, i), place));
        }
        const std::size_t end = graph_.operators.empty() ? 0 : graph_.operators.size() - 1;
        for (const model::TensorIndex index : graph_.outputs) {
            if (index == model::absent_tensor)
                return fail(Cause::bad_input, "a graph output names no tensor");
            REEF_CHECK(in_place(read(index, end), "graph output"));
        }
        for (const model::TensorIndex index : graph_.inputs) use(index).last = end;
        return std::move(uses_);
    }

  private:
    [[nodiscard]] std::string named(model::TensorIndex index) const {
        return model::place_of_tensor(graph_, index);
    }
    [[nodiscard]] const model::Tensor& tensor(model::TensorIndex index) const {
        return graph_.tensors[static_cast<std::size_t>(index)];
    }
    [[nodiscard]] TensorUse& use(model::TensorIndex index) {
        return uses_[static_cast<std::size_t>(index)];
    }
    [[nodiscard]] bool is_constant(model::TensorIndex index) const {
        return !model_.constant(tensor(index)).empty();
    }

    /// Starts a tensor's life, once its size is known.
    Status begin(model::TensorIndex index, Storage storage, std::size_t at) {
        const auto bytes = tensor(index).byte_count();
        if (!bytes)
            return fail(Cause::unsupported,
                        fmt::format("elements of type {}", name_of(tensor(index).type)),
                        named(index));
        use(index) = {storage, static_cast<std::size_t>(*bytes), at, at};
        ready_[static_cast<std::size_t>(index)] = true;
        return {};
    }

    Status feed(model::TensorIndex index) {
        if (index == model::absent_tensor)
            return fail(Cause::bad_input, "a graph input names no tensor");
        if (use(index).storage == Storage::arena) return {};
        if (tensor(index).is_variable)
            return fail(Cause::unsupported, "a graph input is a state tensor", named(index));
        if (is_constant(index))
            return fail(Cause::unsupported, "a graph input is a constant", named(index));
        return begin(index, Storage::arena, 0);
    }

    Status read(model::TensorIndex index, std::size_t at) {
        if (index == model::absent_tensor) return {};
        if (!ready_[static_cast<std::size_t>(index)]) {
            if (tensor(index).is_variable) {
                if (is_constant(index))
                    return fail(Cause::unsupported, "state with initial values", named(index));
                REEF_CHECK(begin(index, Storage::variable, at));
            } else if (is_constant(index) || tensor(index).byte_count() == 0) {
                // Sparse data are shorter than the shape says; kernels rely on the full length.
                if (tensor(index).sparsity)
                    return fail(Cause::unsupported, "constant data in sparse form", named(index),
                                "convert the model with dense weights");
                REEF_CHECK(begin(index, Storage::constant, at));
            } else {
                return nobody_wrote(index, at);
            }
        }
        use(index).last = at;
        return {};
    }

    Status write(model::TensorIndex index, std::size_t at) {
        if (index == model::absent_tensor)
            return fail(Cause::unsupported, "an output names no tensor");
        if (tensor(index).is_variable)
            return fail(Cause::unsupported, "an output is a state tensor", named(index));
        if (is_constant(index))
            return fail(Cause::bad_input, "an output is a constant", named(index));
        if (ready_[static_cast<std::size_t>(index)])
            return fail(Cause::bad_input, "the output is written or fed before", named(index));
        return begin(index, Storage::arena, at);
    }

    [[nodiscard]] Status nobody_wrote(model::TensorIndex index, std::size_t at) const {
        for (std::size_t i = at; i < graph_.operators.size(); ++i) {
            if (std::ranges::find(graph_.operators[i].outputs, index) !=
                graph_.operators[i].outputs.end())
                return fail(Cause::bad_input,
                            fmt::format("is read before {} writes it", model::place_of(graph_, i)),
                            named(index), "operators must stand in execution order");
        }
        return fail(Cause::bad_input, "is read but nothing writes it", named(index));
    }

    const model::Model& model_;
    const model::Subgraph& graph_;
    std::vector<TensorUse> uses_;
    std::vector<bool> ready_;
};

}  // namespace

Result<std::vector<TensorUse>> trace_tensors(const model::Model& model,
                                             const model::Subgraph& graph) {
    return Tracer(model, graph).trace();
}

}  // namespace reef::graph
