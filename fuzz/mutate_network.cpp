#include "mutate_network.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "compiler/random_network.h"
#include "reef/model/tflite.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t capacity);

namespace reef::fuzz {
namespace {

class Mutation {
  public:
    explicit Mutation(unsigned seed) : random_(seed) {}

    model::Model another() {
        const auto seed = static_cast<unsigned>(random_());
        switch (below(4)) {
            case 0:
                return test::random_network_of_small_images(seed);
            case 1:
                return test::random_deciding_network(seed);
            default:
                return test::random_network(seed);
        }
    }

    void change(model::Model& model) {
        if (model.subgraphs.empty() || model.subgraphs.front().tensors.empty()) return;
        auto& graph = model.subgraphs.front();
        for (std::size_t times = 1 + below(3); times != 0; --times) {
            auto& tensor = graph.tensors[below(graph.tensors.size())];
            switch (below(6)) {
                case 0:
                    scale(tensor);
                    break;
                case 1:
                    zero_point(tensor);
                    break;
                case 2:
                    constant(model, tensor);
                    break;
                case 3:
                    length(model, tensor);
                    break;
                default:
                    if (!graph.operators.empty()) op(graph);
            }
        }
    }

    std::size_t below(std::size_t end) { return random_() % end; }

  private:
    void scale(model::Tensor& tensor) {
        if (!tensor.quantization || !tensor.quantization->quantized()) return;
        constexpr float factors[] = {0, 1e-6F, 0.01F, 0.25F, 0.5F, 0.999F, 1.01F, 2, 3, 128, 1e6F};
        auto& scales = tensor.quantization->scale;
        scales[below(scales.size())] *= factors[below(std::size(factors))];
    }

    void zero_point(model::Tensor& tensor) {
        if (!tensor.quantization || tensor.quantization->zero_point.empty()) return;
        constexpr int values[] = {-128, -127, -1, 0, 1, 3, 127, 128, 254, 255};
        auto& zeros = tensor.quantization->zero_point;
        zeros[below(zeros.size())] = values[below(std::size(values))];
    }

    void constant(model::Model& model, const model::Tensor& tensor) {
        if (tensor.buffer >= model.buffers.size() || model.buffers[tensor.buffer].empty()) return;
        auto& buffer = model.buffers[tensor.buffer];
        std::vector<std::byte> bytes(buffer.view().begin(), buffer.view().end());
        const std::size_t count = below(2) == 0 ? 1 : bytes.size();
        const std::size_t first = below(bytes.size() - count + 1);
        const bool extreme = below(3) == 0;
        for (std::size_t i = first; i < first + count; ++i)
            bytes[i] = static_cast<std::byte>(extreme ? 0x80 - below(2) : random_());
        buffer = SharedBytes::copy_of(bytes);
    }

    /// Of a constant with its bytes: a reader refuses one without.
    void length(model::Model& model, model::Tensor& tensor) {
        if (tensor.shape.empty()) return;
        auto& one = tensor.shape[below(tensor.shape.size())];
        one = below(4) == 0 ? static_cast<std::int32_t>(below(40)) : one + (below(2) == 0 ? 1 : -1);
        one = std::max(one, 0);
        const Bytes before = model.constant(tensor);
        const auto size = tensor.byte_count();
        if (before.empty() || !size || *size > 1 << 20) return;
        std::vector<std::byte> bytes(before.begin(), before.end());
        bytes.resize(static_cast<std::size_t>(*size));
        model.buffers.push_back(SharedBytes::copy_of(bytes));
        tensor.buffer = static_cast<std::uint32_t>(model.buffers.size() - 1);
    }

    void op(model::Subgraph& graph) {
        auto& one = graph.operators[below(graph.operators.size())];
        switch (below(4)) {
            case 0:
                if (!one.inputs.empty())
                    one.inputs[below(one.inputs.size())] =
                        static_cast<model::TensorIndex>(below(graph.tensors.size()));
                break;
            case 1:
                code(one);
                break;
            default:
                std::visit([&](auto& options) { change_options(options); }, one.options);
        }
    }

    void code(model::Operator& op) {
        using model::Op;
        constexpr Op codes[] = {Op::relu,         Op::relu6,
                                Op::relu_n1_to_1, Op::logistic,
                                Op::tanh,         Op::mean,
                                Op::sum,          Op::average_pool_2d,
                                Op::quantize,     Op::max_pool_2d,
                                Op::add,          Op::sub,
                                Op::mul,          Op::maximum,
                                Op::minimum,      Op::hard_swish,
                                Op::softmax,      Op::l2_normalization};
        op.code.builtin = codes[below(std::size(codes))];
        if (below(2) == 0) op.options = {};
    }

    template <typename Options>
    void change_options(Options& options) {
        const auto small = [&] { return static_cast<std::int32_t>(1 + below(4)); };
        if constexpr (requires { options.activation; })
            if (below(3) == 0) options.activation = static_cast<model::Activation>(below(6));
        if constexpr (requires { options.padding; })
            if (below(3) == 0) options.padding = static_cast<model::Padding>(below(2));
        if constexpr (requires { options.stride_h; })
            if (below(3) == 0) (below(2) == 0 ? options.stride_h : options.stride_w) = small();
        if constexpr (requires { options.dilation_h; })
            if (below(3) == 0) (below(2) == 0 ? options.dilation_h : options.dilation_w) = small();
        if constexpr (requires { options.filter_h; })
            if (below(3) == 0) (below(2) == 0 ? options.filter_h : options.filter_w) = small();
        if constexpr (requires { options.axis; })
            if (below(3) == 0) options.axis = small() - 2;
        if constexpr (requires { options.beta; })
            if (below(2) == 0) options.beta *= 0.5F;
        if constexpr (requires { options.half_pixel_centers; })
            if (below(2) == 0) options.half_pixel_centers = !options.half_pixel_centers;
        if constexpr (requires { options.align_corners; })
            if (below(2) == 0) options.align_corners = !options.align_corners;
    }

    std::mt19937 random_;
};

}  // namespace

std::size_t mutate_network(std::uint8_t* data, std::size_t size, std::size_t capacity,
                           unsigned seed) {
    Mutation mutation(seed);
    const std::size_t way = mutation.below(16);
    if (way < 2) return LLVMFuzzerMutate(data, size, capacity);
    auto read = model::read_tflite(SharedBytes::copy_of(std::as_bytes(std::span(data, size))));
    model::Model model = way == 2 || !read ? mutation.another() : std::move(*read);
    if (way != 3) mutation.change(model);
    const auto file = model::write_tflite(model);
    if (!file || file->size() > capacity) return LLVMFuzzerMutate(data, size, capacity);
    std::memcpy(data, file->data(), file->size());
    return file->size();
}

}  // namespace reef::fuzz
