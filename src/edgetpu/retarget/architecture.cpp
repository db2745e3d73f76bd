#include "edgetpu/retarget/architecture.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::edgetpu {
namespace {

using model::Model;
using model::Op;
using model::Operator;
using model::Tensor;
using model::TensorIndex;

class Matcher {
  public:
    Matcher(const Model& source, const Model& target) : source_(source), target_(target) {}

    Result<TensorMap> run() {
        if (source_.subgraphs.size() != 1 || target_.subgraphs.size() != 1) {
            return fail(Cause::unsupported, "a model of several subgraphs");
        }
        const auto& a = source_.subgraphs.front();
        const auto& b = target_.subgraphs.front();
        if (a.operators.size() != b.operators.size()) {
            return differs(
                fmt::format("{} operators, not {}", b.operators.size(), a.operators.size()));
        }
        REEF_CHECK(match_lists("graph inputs", a.inputs, b.inputs));
        for (std::size_t i = 0; i < a.operators.size(); ++i) {
            REEF_CHECK(in_place(match(a.operators[i], b.operators[i]), model::place_of(b, i)));
        }
        REEF_CHECK(match_lists("graph outputs", a.outputs, b.outputs));
        return std::move(map_);
    }

  private:
    static std::unexpected<Error> differs(const std::string& what) {
        return fail(Cause::unsupported, "another architecture: " + what, {},
                    "compile the model itself (`target` edgetpu)");
    }

    Status match(const Operator& a, const Operator& b) {
        if (a.code.builtin != b.code.builtin || a.code.custom != b.code.custom) {
            return differs(fmt::format("not {}", a.code.name()));
        }
        if (a.options != b.options || a.custom_options != b.custom_options) {
            return differs("other options");
        }
        REEF_CHECK(match_lists("inputs", a.inputs, b.inputs));
        REEF_CHECK(match_lists("outputs", a.outputs, b.outputs));
        const bool has_bias = a.code.builtin == Op::conv_2d ||
                              a.code.builtin == Op::depthwise_conv_2d ||
                              a.code.builtin == Op::fully_connected ||
                              a.code.builtin == Op::unidirectional_sequence_lstm;
        return has_bias ? Status{} : match_index_constants(a, b);
    }

    Status match_lists(std::string_view what, const std::vector<TensorIndex>& a,
                       const std::vector<TensorIndex>& b) {
        if (a.size() != b.size()) return differs(fmt::format("{} {}", b.size(), what));
        for (std::size_t i = 0; i < a.size(); ++i) REEF_CHECK(match_tensors(a[i], b[i]));
        return {};
    }

    Status match_tensors(TensorIndex a, TensorIndex b) {
        if ((a == model::absent_tensor) != (b == model::absent_tensor)) {
            return differs("a tensor is absent in one of them");
        }
        if (a == model::absent_tensor) return {};
        const auto [known, fresh] = map_.try_emplace(a, b);
        const auto& graph = target_.subgraphs.front();
        if (!fresh) {
            if (known->second == b) return {};
            return differs(
                fmt::format("{} is connected in another way", model::place_of_tensor(graph, b)));
        }
        const Tensor& x = source_.subgraphs.front().tensors[static_cast<std::size_t>(a)];
        const Tensor& y = graph.tensors[static_cast<std::size_t>(b)];
        const auto scales = [](const Tensor& tensor) {
            return tensor.quantization ? tensor.quantization->scale.size() : 0;
        };
        if (x.shape == y.shape && x.type == y.type && scales(x) == scales(y) &&
            source_.constant(x).size() == target_.constant(y).size()) {
            return {};
        }
        return differs(fmt::format("{} is {} {} with {} scales, not {} {} with {}",
                                   model::place_of_tensor(graph, b), name_of(y.type),
                                   model::shape_text(y.shape), scales(y), name_of(x.type),
                                   model::shape_text(x.shape), scales(x)));
    }

    /// Shapes, axes and the like decide what the program does.
    Status match_index_constants(const Operator& a, const Operator& b) const {
        for (std::size_t i = 0; i < a.inputs.size(); ++i) {
            if (a.inputs[i] == model::absent_tensor) continue;
            const Tensor& x =
                source_.subgraphs.front().tensors[static_cast<std::size_t>(a.inputs[i])];
            const Tensor& y =
                target_.subgraphs.front().tensors[static_cast<std::size_t>(b.inputs[i])];
            if (x.type != ElementType::int32 && x.type != ElementType::int64) continue;
            if (!equal_bytes(source_.constant(x), target_.constant(y))) {
                return differs(fmt::format("input {} holds other constants", i));
            }
        }
        return {};
    }

    const Model& source_;
    const Model& target_;
    TensorMap map_;
};

}  // namespace

Result<TensorMap> match_architectures(const Model& source, const Model& target) {
    return Matcher(source, target).run();
}

}  // namespace reef::edgetpu
