#include "edgetpu/numerics/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cpu/prepare/kernels.h"
#include "edgetpu/numerics/byte_operators.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/refusals.h"
#include "reef/edgetpu/numerics.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

using model::Op;

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

/// Enlarged to twice the height and width: the only factor that known programs have.
PreparedKernel resize_nearest(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const auto& in = op.input(0).shape;
    const auto& out = op.output(0).shape;
    if (in.size() != 4 || out.size() != 4 || out[1] != 2 * in[1] || out[2] != 2 * in[2])
        return unknown_on_edgetpu("RESIZE_NEAREST_NEIGHBOR but to twice the height and width");
    const auto how = REEF_TRY(op.options<model::ResizeNearestNeighborOptions>());
    if (how.align_corners)
        return unknown_on_edgetpu("RESIZE_NEAREST_NEIGHBOR with aligned corners");
    return prepare_copy<prepare_resize_nearest_neighbor>(op, options);
}

constexpr auto forms = std::to_array<ArithmeticForm>({
    {Op::add, add, false,
     "two computed tensors of one shape, weighted by the closest ratio of their scales; a "
     "constant, "
     "which no known program has, as SUB's"},
    {Op::average_pool_2d, average_pool_2d, false, "windows inside the input"},
    {Op::concatenation, concatenation, false, "inputs are rescaled one by one"},
    {Op::conv_2d, conv_2d, false,
     "one float32 scale per tensor or channel; groups, which no known program has, alike"},
    {Op::depthwise_conv_2d, depthwise_conv_2d, false,
     "one float32 scale per tensor or channel; depth multipliers, which known programs have of one "
     "channel alone, alike"},
    {Op::depth_to_space, prepare_copy<prepare_depth_to_space>, true, "a copy"},
    {Op::fully_connected, fully_connected, false, "one float32 scale per tensor or channel"},
    {Op::logistic, logistic, false, "the vendor's polynomials; output scale 1/256"},
    {Op::max_pool_2d, max_pool_2d, true, "one scale for input and output, no fused activation"},
    {Op::mul, mul, false,
     "two tensors of one shape, one factor for all, or a constant per channel"},
    {Op::relu, relu, false, "a copy with a clamp; assumed to be as in a convolution"},
    {Op::relu6, relu6, false, "a copy with a clamp; assumed to be as in a convolution"},
    {Op::reshape, prepare_copy<prepare_reshape>, true, "a copy"},
    {Op::resize_bilinear, resize_bilinear, false,
     "to twice the height and width, half-pixel centres"},
    {Op::softmax, softmax, false, "the vendor's 16-bit sequence; one row"},
    {Op::space_to_depth, prepare_copy<prepare_space_to_depth>, true, "a copy"},
    {Op::tanh, tanh, false,
     "LOGISTIC of twice the value, whose vendor's polynomials it takes; output scale 1/128"},
    {Op::pad, prepare_copy<prepare_pad>, true, "a copy between zero points"},
    {Op::transpose, prepare_copy<prepare_transpose>, true, "a copy"},
    {Op::mean, mean, false, "height and width; assumed to be as in AVERAGE_POOL_2D"},
    {Op::sub, sub, false,
     "a constant, from a tensor of the output's scale; of two tensors, which no known program has, "
     "as ADD of the second's mirror image"},
    {Op::squeeze, prepare_copy<prepare_squeeze>, true, "a copy"},
    {Op::unidirectional_sequence_lstm, unidirectional_sequence_lstm, false,
     "one batch, a cell in steps of 2^-12; as the one known program has it"},
    {Op::strided_slice, prepare_copy<prepare_strided_slice>, true, "a copy"},
    {Op::split, prepare_copy<prepare_split>, true, "a copy"},
    {Op::prelu, prelu, false,
     "a slope per channel: above zero a copy, below zero a depthwise convolution; no known program "
     "has one"},
    {Op::maximum, maximum, false,
     "two computed tensors of one shape and quantisation; one off where they differ by odd steps"},
    {Op::minimum, minimum, false, "as MAXIMUM, downwards; no known program has one"},
    {Op::slice, prepare_copy<prepare_slice>, true, "a copy"},
    {Op::transpose_conv, transpose_conv, false,
     "one float32 scale per tensor or channel, as a convolution's; no known program has one"},
    {Op::expand_dims, prepare_copy<prepare_expand_dims>, true, "a copy"},
    {Op::sum, sum, false,
     "height and width; assumed to be as in AVERAGE_POOL_2D, but for the share"},
    {Op::resize_nearest_neighbor, resize_nearest, true, "a copy to twice the height and width"},
    {Op::leaky_relu, leaky_relu, false,
     "a copy with one scale, and lines of a table; no known program has one"},
    {Op::split_v, prepare_copy<prepare_split_v>, true, "a copy"},
    {Op::quantize, quantize, false, "8 bits to 8 bits: a copy with one scale"},
    {Op::hard_swish, hard_swish, false,
     "a copy with one scale, and a line and a parabola of a table; no known program has one"},
});

static_assert(std::ranges::is_sorted(forms, {}, &ArithmeticForm::op));

/// Where a tensor's bytes are when the chip's program runs.
enum class Source : std::uint8_t { host, chip, host_after_chip };

class Partition {
  public:
    /// `known`: where operators are does not follow from the vendor's rules.
    Partition(const model::Model& model, const model::Subgraph& graph, bool known)
        : model_(model),
          graph_(graph),
          known_(known),
          sources_(graph.tensors.size(), Source::host) {}

    /// Why `op` stays on the CPU; operators in order.
    std::string place(const model::Operator& op) {
        const Source source = latest_source(op);
        std::string reason = !known_ && source == Source::host_after_chip
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

    /// As the vendor documents it, and as its compiler left the SOFTMAX of every YOLO to the CPU.
    [[nodiscard]] bool several_rows(const model::Operator& op) const {
        constexpr std::int64_t longest_row = 16000;
        if (op.inputs.empty() || op.inputs[0] == model::absent_tensor) return false;
        const auto& shape = tensor(op.inputs[0]).shape;
        std::int64_t values = 1;
        for (const std::int32_t size : shape) values *= size;
        return !shape.empty() && (values != shape.back() || values > longest_row);
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
        return known_ ? std::string() : reason_of_vendor(op);
    }

    /// Where the vendor's compiler puts what the chip could compute. Another one may place it.
    [[nodiscard]] std::string reason_of_vendor(const model::Operator& op) const {
        if (op.code.builtin == Op::softmax && several_rows(op))
            return "the vendor's compiler places SOFTMAX of one row, of 16000 values at most";
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
    bool known_;
    std::vector<Source> sources_;  ///< by tensor
};

}  // namespace

std::vector<std::string> reasons_for_cpu(const model::Model& model, const model::Subgraph& graph,
                                         const std::vector<bool>& on_chip) {
    Partition partition(model, graph, !on_chip.empty());
    std::vector<std::string> reasons;
    reasons.reserve(graph.operators.size());
    for (const model::Operator& op : graph.operators) reasons.push_back(partition.place(op));
    return reasons;
}

const cpu::Arithmetic& arithmetic() {
    static const cpu::Arithmetic in_float32{.name = "edgetpu",
                                            .machine = "the Edge TPU",
                                            .forms = forms,
                                            .reasons_for_tflite = reasons_for_cpu};
    return in_float32;
}

std::unexpected<Error> unknown_on_edgetpu(std::string_view what) {
    return arithmetic().unknown(what);
}

}  // namespace reef::edgetpu::numerics

namespace reef::edgetpu {

const cpu::Arithmetic& arithmetic() {
    return numerics::arithmetic();
}

}  // namespace reef::edgetpu
