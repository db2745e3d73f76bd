#include "cpu/edgetpu_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cpu/float_requantisation.h"
#include "cpu/kernels.h"

namespace reef::cpu {
namespace {

using model::Op;

constexpr bool is_byte(ElementType type) {
    return type == ElementType::uint8 || type == ElementType::int8;
}

/// The kernel of an operator that moves bytes. On the chip a change of quantisation would be a
/// computation.
template <Prepare prepare>
PreparedKernel prepare_copy(const OperatorView& op, const PrepareOptions& options) {
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        if (!op.has_input(i) || !is_byte(op.input(i).type)) continue;
        const auto in = REEF_TRY(per_tensor_parameters(op.input(i)));
        for (std::size_t o = 0; o < op.output_count(); ++o)
            if (REEF_TRY(per_tensor_parameters(op.output(o))) != in)
                return unknown_on_edgetpu(op.op().code.name() + " to another quantisation");
    }
    return prepare(op, options);
}

constexpr auto forms = std::to_array<EdgetpuForm>({
    {Op::add, prepare_add, false,
     "two computed tensors of one shape, weighted by the closest ratio of their scales"},
    {Op::average_pool_2d, prepare_average_pool_2d, false, "windows inside the input"},
    {Op::concatenation, prepare_concatenation, false, "inputs are rescaled one by one"},
    {Op::conv_2d, prepare_conv_2d, false, "one float32 scale per tensor or channel; no groups"},
    {Op::depthwise_conv_2d, prepare_depthwise_conv_2d, false,
     "one float32 scale per tensor or channel; depth multiplier 1, or one input channel"},
    {Op::fully_connected, prepare_fully_connected, false,
     "one float32 scale per tensor or channel"},
    {Op::logistic, prepare_logistic, false, "the vendor's polynomials; output scale 1/256"},
    {Op::max_pool_2d, prepare_max_pool_2d, true,
     "one scale for input and output, no fused activation"},
    {Op::mul, prepare_mul, false, "two tensors of one shape, or one second factor"},
    {Op::relu, prepare_relu, false, "a copy with a clamp; assumed to be as in a convolution"},
    {Op::relu6, prepare_relu6, false, "a copy with a clamp; assumed to be as in a convolution"},
    {Op::reshape, prepare_copy<prepare_reshape>, true, "a copy"},
    {Op::resize_bilinear, prepare_resize_bilinear, false,
     "to twice the height and width, half-pixel centres"},
    {Op::softmax, prepare_softmax, false, "the vendor's 16-bit sequence; one row"},
    {Op::pad, prepare_copy<prepare_pad>, true, "a copy between zero points"},
    {Op::mean, prepare_mean, false, "height and width; assumed to be as in AVERAGE_POOL_2D"},
    {Op::sub, prepare_sub, false, "a constant, from a tensor of the output's scale"},
    {Op::squeeze, prepare_copy<prepare_squeeze>, true, "a copy"},
    {Op::split, prepare_copy<prepare_split>, true, "a copy"},
    {Op::quantize, prepare_quantize, false, "8 bits to 8 bits: a copy with one scale"},
});

static_assert(std::ranges::is_sorted(forms, {}, &EdgetpuForm::op));

/// Where a tensor's bytes are when the chip's program runs.
enum class Source : std::uint8_t { host, chip, host_after_chip };

class Partition {
  public:
    Partition(const model::Model& model, const model::Subgraph& graph)
        : model_(model), graph_(graph), sources_(graph.tensors.size(), Source::host) {}

    /// Why `op` stays on the CPU; operators in order.
    std::string place(const model::Operator& op) {
        const Source source = latest_source(op);
        std::string reason = source == Source::host_after_chip
                                 ? "it needs an operator that follows the chip on the CPU"
                                 : reason_of(op);
        for (const model::TensorIndex output : op.outputs) {
            Source& of_output = sources_[static_cast<std::size_t>(output)];
            if (reason.empty())
                of_output = Source::chip;
            else
                of_output = source == Source::host ? Source::host : Source::host_after_chip;
        }
        return reason;
    }

  private:
    [[nodiscard]] const model::Tensor& tensor(model::TensorIndex index) const {
        return graph_.tensors[static_cast<std::size_t>(index)];
    }

    [[nodiscard]] Source latest_source(const model::Operator& op) const {
        Source latest = Source::host;
        for (const model::TensorIndex input : op.inputs)
            if (input != model::absent_tensor)
                latest = std::max(latest, sources_[static_cast<std::size_t>(input)]);
        return latest;
    }

    [[nodiscard]] std::string reason_of(const model::Operator& op) const {
        const auto wider = [&](model::TensorIndex index) {
            return index != model::absent_tensor && !tensor(index).is_variable &&
                   model_.constant(tensor(index)).empty() && !is_byte(tensor(index).type);
        };
        for (const auto* list : {&op.inputs, &op.outputs}) {
            const auto found = std::ranges::find_if(*list, wider);
            if (found != list->end())
                return fmt::format("'{}' is {}, and the chip has tensors of 8 bits",
                                   tensor(*found).name, name_of(tensor(*found).type));
        }
        // The one resize on the CPU in front of which nothing else was.
        if (op.code.builtin == Op::resize_bilinear && !op.inputs.empty() &&
            op.inputs[0] != model::absent_tensor) {
            const auto& shape = tensor(op.inputs[0]).shape;
            if (shape.size() == 4 && shape[1] == 1 && shape[2] == 1)
                return "the vendor's compiler does not place a resize of one pixel on the chip";
        }
        return {};
    }

    const model::Model& model_;
    const model::Subgraph& graph_;
    std::vector<Source> sources_;  ///< by tensor
};

}  // namespace

std::span<const EdgetpuForm> edgetpu_forms() {
    return forms;
}

const EdgetpuForm* find_edgetpu_form(model::Op op) {
    const auto found = std::ranges::find(forms, op, &EdgetpuForm::op);
    return found == forms.end() ? nullptr : &*found;
}

std::vector<std::string> reasons_for_cpu(const model::Model& model, const model::Subgraph& graph) {
    Partition partition(model, graph);
    std::vector<std::string> reasons;
    reasons.reserve(graph.operators.size());
    for (const model::Operator& op : graph.operators) reasons.push_back(partition.place(op));
    return reasons;
}

}  // namespace reef::cpu
