#include "peers/xnnpack_placer.h"

#if REEF_HAS_CPUINFO
#include <cpuinfo.h>
#endif

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpu/prepare/convolution.h"
#include "cpu/prepare/pooling.h"
#include "cpu/prepare/quantized.h"
#if REEF_XNNPACK_RESHAPES
#include "peers/xnnpack_2024.h"
#else
#include "peers/xnnpack_2022.h"
#endif
#include "reef/cpu/kernel_set.h"

namespace reef::peers {
namespace {

using cpu::Convolution;
using graph::Frame;
using graph::OperatorView;

struct OperatorDelete {
    void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};
using XnnOperator = std::unique_ptr<std::remove_pointer_t<xnn_operator_t>, OperatorDelete>;

/// For each run that has other addresses than the last.
using Setup = std::function<xnn_status(const Call&, const Frame&)>;
struct Step {
    XnnOperator op;
    Setup setup;
    Workspace workspace{};
};
using Steps = std::vector<Step>;

class XnnpackKernel final : public graph::Kernel {
  public:
    XnnpackKernel(std::string name, Steps steps, pthreadpool* pool)
        : name_(std::move(name)), steps_(std::move(steps)), pool_(pool) {}
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] Status run(const Frame& frame) override {
        if (!ready_for(frame))
            for (Step& step : steps_)
                if (step.setup({step.op.get(), pool_, step.workspace}, frame) != xnn_status_success)
                    return fail(Cause::unsupported, "XNNPACK cannot set the operator up");
        for (const Step& step : steps_)
            if (xnn_run_operator(step.op.get(), pool_) != xnn_status_success)
                return fail(Cause::unsupported, "XNNPACK does not run the operator");
        return {};
    }

  private:
    /// Whether the addresses are those of the last run; they become so.
    bool ready_for(const Frame& frame) {
        const auto same = [](std::span<std::byte* const> now, std::vector<std::byte*>& last) {
            if (std::ranges::equal(now, last)) return true;
            last.assign(now.begin(), now.end());
            return false;
        };
        const bool inputs = same(frame.inputs, inputs_);
        return same(frame.outputs, outputs_) && inputs;
    }
    std::string name_;
    Steps steps_;
    pthreadpool* pool_;
    std::vector<std::byte*> inputs_, outputs_;
};

/// The step, or none where XNNPACK has no such operator.
template <typename Create>
Steps one_step(Setup setup, const Create& create) {
    xnn_operator_t made = nullptr;
    Steps steps;
    if (create(&made) == xnn_status_success) steps.push_back({XnnOperator(made), std::move(setup)});
    return steps;
}

std::size_t size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}
std::uint32_t unsigned32(std::int64_t value) {
    return static_cast<std::uint32_t>(value);
}

std::uint32_t padding_after(const cpu::WindowAxis& axis) {
    const std::int64_t reach = (axis.taps - 1) * axis.dilation + 1;
    return unsigned32(
        std::max<std::int64_t>(0, (axis.out - 1) * axis.stride + reach - axis.in - axis.pad));
}

std::size_t elements_before(const model::Tensor& tensor, std::size_t axis) {
    std::size_t product = 1;
    for (std::size_t i = 0; i < axis; ++i) product *= size(tensor.shape[i]);
    return product;
}
std::size_t elements_from(const model::Tensor& tensor, std::size_t axis) {
    std::size_t product = 1;
    for (std::size_t i = axis; i < tensor.shape.size(); ++i) product *= size(tensor.shape[i]);
    return product;
}

/// What the operator is made of, T the type of its elements. A Result's error only says that Reef
/// would refuse the operator, too.
template <typename T>
class Maker {
  public:
    using F = Functions<T>;
    static constexpr bool real = std::is_same_v<T, float>;
    explicit Maker(const OperatorView& op) : op_(op) {}

    [[nodiscard]] Result<Steps> convolution(const Convolution& c, bool depthwise) const;
    [[nodiscard]] Result<Steps> binary(model::Activation activation, Binary binary) const;
    [[nodiscard]] Result<Steps> max_pool() const;
    [[nodiscard]] Result<Steps> average_pool() const;
    [[nodiscard]] Result<Steps> mean() const;
    [[nodiscard]] Result<Steps> resize() const;
    [[nodiscard]] Result<Steps> function(Function function) const;
    [[nodiscard]] Result<Steps> softmax() const;
    [[nodiscard]] Result<Steps> concatenation() const;
    [[nodiscard]] Result<Steps> quantize() const;
    [[nodiscard]] Result<Steps> dequantize() const;

  private:
    [[nodiscard]] Result<Steps> global_average(const Images& from, cpu::ClampRange clamp) const;
    const OperatorView& op_;
};

template <typename T>
Result<Steps> Maker<T>::convolution(const Convolution& c, bool depthwise) const {
    const auto make = [&](const auto&... numbers) {
        const Images from{size(c.batch), size(c.h.in), size(c.w.in), size(c.in_channels)};
        return one_step(
            [from](const Call& call, const Frame& frame) {
                return F::setup_convolution(call, from, frame.in<T>(0), frame.out<T>(0));
            },
            [&](xnn_operator_t* made) {
                return F::create_convolution(
                    made, unsigned32(c.h.pad), padding_after(c.w), padding_after(c.h),
                    unsigned32(c.w.pad), unsigned32(c.h.taps), unsigned32(c.w.taps),
                    unsigned32(c.h.stride), unsigned32(c.w.stride), unsigned32(c.h.dilation),
                    unsigned32(c.w.dilation), depthwise ? unsigned32(c.in_channels) : 1U,
                    depthwise ? std::size_t{1} : size(c.in_channels),
                    size(depthwise ? c.depth_multiplier : c.out_channels), size(c.in_channels),
                    size(c.out_channels), numbers...,
                    std::uint32_t{depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0U});
            });
    };
    const T* const weights = reinterpret_cast<const T*>(c.weights.view().data());
    const bool hybrid = op_.input(0).type != op_.input(1).type;
    if (hybrid || (!depthwise && c.groups() != 1)) return Steps{};
    if constexpr (real) {
        return make(weights, c.floats->bias.data(), c.floats->clamp.min, c.floats->clamp.max);
    } else {
        const float in = op_.input(0).quantization->scale[0];
        const float out = op_.output(0).quantization->scale[0];
        std::vector<float> scales = op_.input(1).quantization->scale;
        const auto ends = [&](const auto&... kernel) {
            return make(static_cast<T>(c.input_zero), in, kernel..., weights, c.bias.data(),
                        static_cast<T>(c.output_zero), out, static_cast<T>(c.clamp.min),
                        static_cast<T>(c.clamp.max));
        };
        if constexpr (std::is_same_v<T, std::uint8_t>) {
            return ends(static_cast<std::uint8_t>(c.weight_zero), scales[0]);
        } else {
            scales.resize(size(c.out_channels), scales[0]);
            return ends(static_cast<const float*>(scales.data()));
        }
    }
}

/// Error: Reef refuses it, too.
Result<Quantized> quantized(const model::Tensor& tensor) {
    const auto parameters = REEF_TRY(cpu::per_tensor_parameters(tensor));
    return Quantized{.zero = parameters.zero_point, .scale = parameters.scale};
}

template <typename T, typename Range>
Limits<T> limits_of(const Range& range) {
    return {static_cast<T>(range.min), static_cast<T>(range.max)};
}

template <typename T>
Result<Steps> Maker<T>::binary(model::Activation activation, Binary binary) const {
    const auto dimensions = [&](std::size_t i) {
        const auto& shape = op_.input(i).shape;
        return Shape(shape.begin(), shape.end());
    };
    const auto make = [&](const Quantized& a, const Quantized& b, const Quantized& out,
                          Limits<T> limits) {
        return one_step(
            [binary, a = dimensions(0), b = dimensions(1)](const Call& call, const Frame& frame) {
                return F::setup_binary(call, binary, a, b, frame.in<T>(0), frame.in<T>(1),
                                       frame.out<T>(0));
            },
            [&](xnn_operator_t* made) {
                return F::create_binary(made, binary, a, b, out, limits);
            });
    };
    if constexpr (real)
        return make({}, {}, {}, limits_of<T>(REEF_TRY(cpu::float_activation_range(activation))));
    else
        return make(
            REEF_TRY(quantized(op_.input(0))), REEF_TRY(quantized(op_.input(1))),
            REEF_TRY(quantized(op_.output(0))),
            limits_of<T>(REEF_TRY(cpu::quantized_activation_range(activation, op_.output(0)))));
}

template <typename T>
Result<Steps> Maker<T>::max_pool() const {
    const cpu::Pooling p = REEF_TRY(real ? cpu::check_float_pooling(op_) : cpu::check_pooling(op_));
    const auto after = [](const cpu::PoolingAxis& axis) {
        return unsigned32(
            std::max(0, (axis.output - 1) * axis.stride + axis.filter - axis.input - axis.padding));
    };
    const Images from{size(p.batches), size(p.y.input), size(p.x.input), size(p.channels)};
    const Limits<T> limits = real ? limits_of<T>(p.float_clamp) : limits_of<T>(p.clamp);
    return one_step(
        [from](const Call& call, const Frame& frame) {
            return F::setup_max_pool(call, from, frame.in<T>(0), frame.out<T>(0));
        },
        [&](xnn_operator_t* made) {
            return F::create_max_pool(made, from.channels, limits, unsigned32(p.y.padding),
                                      after(p.x), after(p.y), unsigned32(p.x.padding),
                                      unsigned32(p.y.filter), unsigned32(p.x.filter),
                                      unsigned32(p.y.stride), unsigned32(p.x.stride), 1U, 1U);
        });
}

template <typename T>
Result<Steps> Maker<T>::global_average(const Images& from, cpu::ClampRange clamp) const {
    if constexpr (real) {
        return Steps{};
    } else {
        const Quantized in = REEF_TRY(quantized(op_.input(0)));
        const Quantized out = REEF_TRY(quantized(op_.output(0)));
        return one_step(
            [from](const Call& call, const Frame& frame) {
                return F::setup_global_average(call, from, frame.in<T>(0), frame.out<T>(0));
            },
            [&](xnn_operator_t* made) {
                return F::create_global_average(made, from.channels, in, out, limits_of<T>(clamp));
            });
    }
}

/// The whole image alone: smaller windows exist for one of the two types.
template <typename T>
Result<Steps> Maker<T>::average_pool() const {
    if constexpr (real) return Steps{};
    const cpu::Pooling p = REEF_TRY(cpu::check_pooling(op_));
    if (p.y.output != 1 || p.x.output != 1 || p.y.window(0).size() != p.y.input ||
        p.x.window(0).size() != p.x.input)
        return Steps{};
    return global_average({size(p.batches), size(p.y.input), size(p.x.input), size(p.channels)},
                          p.clamp);
}

/// Of four dimensions.
Images images_of(const std::vector<std::int32_t>& shape) {
    return {size(shape[0]), size(shape[1]), size(shape[2]), size(shape[3])};
}

template <typename T>
Result<Steps> Maker<T>::mean() const {
    const auto axes = REEF_TRY(cpu::constant_int32(op_, 1, "axes"));
    const auto& shape = op_.input(0).shape;
    if (axes != std::vector<std::int32_t>{1, 2} || shape.size() != 4) return Steps{};
    return global_average(images_of(shape), cpu::type_range(op_.output(0).type));
}

template <typename T>
Result<Steps> Maker<T>::resize() const {
    const auto options = REEF_TRY(op_.options<model::ResizeBilinearOptions>());
    if (op_.input(0).shape.size() != 4 || op_.output(0).shape.size() != 4) return Steps{};
    const Images from = images_of(op_.input(0).shape);
    const Images to = images_of(op_.output(0).shape);
    const std::uint32_t flags = options.align_corners        ? XNN_FLAG_ALIGN_CORNERS
                                : options.half_pixel_centers ? 0U
                                                             : XNN_FLAG_TENSORFLOW_LEGACY_MODE;
    return one_step(
        [from, to](const Call& call, const Frame& frame) {
            return F::setup_resize(call, from, to, frame.in<T>(0), frame.out<T>(0));
        },
        [&](xnn_operator_t* made) { return F::create_resize(made, to, flags); });
}

template <typename T>
Result<Steps> Maker<T>::function(Function function) const {
    const Quantized in = REEF_TRY(quantized(op_.input(0)));
    const Quantized out = REEF_TRY(quantized(op_.output(0)));
    const std::size_t elements = elements_from(op_.input(0), 0);
    return one_step(
        [function, elements](const Call& call, const Frame& frame) {
            return F::setup_function(call, function, elements, frame.in<T>(0), frame.out<T>(0));
        },
        [&](xnn_operator_t* made) {
            return F::create_function(made, function, elements, in, out);
        });
}

template <typename T>
Result<Steps> Maker<T>::softmax() const {
    if constexpr (!std::is_same_v<T, std::uint8_t>) return Steps{};
    const auto options = REEF_TRY(op_.options<model::SoftmaxOptions>());
    const Quantized in = REEF_TRY(quantized(op_.input(0)));
    const Quantized out = REEF_TRY(quantized(op_.output(0)));
    const auto& shape = op_.input(0).shape;
    if (shape.empty()) return Steps{};
    const Rows rows{elements_before(op_.input(0), shape.size() - 1), size(shape.back())};
    return one_step(
        [rows](const Call& call, const Frame& frame) {
            return setup_softmax(call, rows, frame.in<std::uint8_t>(0), frame.out<std::uint8_t>(0));
        },
        [&](xnn_operator_t* made) {
            return create_softmax(made, rows.channels, in.scale * options.beta, out);
        });
}

/// A copy for each input, where all have the output's scale.
template <typename T>
Result<Steps> Maker<T>::concatenation() const {
    const auto options = REEF_TRY(op_.options<model::ConcatenationOptions>());
    const model::Tensor& out = op_.output(0);
    const std::size_t axis = REEF_TRY(cpu::resolve_axis(options.axis, out.shape.size()));
    const std::size_t width = elements_from(out, axis);
    Steps steps;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < op_.input_count(); ++i) {
        const model::Tensor& in = op_.input(i);
        if (!REEF_TRY(cpu::same_quantization(in, out)) || in.shape.size() != out.shape.size())
            return Steps{};
        const Rows rows{elements_before(in, axis), elements_from(in, axis)};
        auto step = one_step(
            [i, offset, rows, width](const Call& call, const Frame& frame) {
                return setup_copy(call, rows, width, frame.in<T>(i), frame.out<T>(0) + offset);
            },
            [&](xnn_operator_t* made) { return create_copy(made, rows.channels, width); });
        if (step.empty()) return Steps{};
        steps.push_back(std::move(step.front()));
        offset += rows.channels;
    }
    return steps;
}

/// From float32.
template <typename T>
Result<Steps> Maker<T>::quantize() const {
    const Quantized out = REEF_TRY(quantized(op_.output(0)));
    const std::size_t elements = elements_from(op_.input(0), 0);
    return one_step(
        [elements](const Call& call, const Frame& frame) {
            return F::setup_quantize(call, elements, frame.in<float>(0), frame.out<T>(0));
        },
        [&](xnn_operator_t* made) { return F::create_quantize(made, elements, out); });
}

template <typename T>
Result<Steps> Maker<T>::dequantize() const {
    const Quantized in = REEF_TRY(quantized(op_.input(0)));
    const std::size_t elements = elements_from(op_.input(0), 0);
    return one_step(
        [elements](const Call& call, const Frame& frame) {
            return F::setup_dequantize(call, elements, frame.in<T>(0), frame.out<float>(0));
        },
        [&](xnn_operator_t* made) { return F::create_dequantize(made, elements, in); });
}

/// What all types have.
template <typename T>
Result<Steps> common_steps(const OperatorView& op) {
    using enum model::Op;
    const Maker<T> maker(op);
    switch (op.op().code.builtin) {
        case conv_2d:
            return maker.convolution(REEF_TRY(cpu::read_conv_2d(op)), false);
        case depthwise_conv_2d:
            return maker.convolution(REEF_TRY(cpu::read_depthwise_conv_2d(op)), true);
        case fully_connected:
            return maker.convolution(REEF_TRY(cpu::read_fully_connected(op)), false);
        case add:
            return maker.binary(REEF_TRY(op.options<model::AddOptions>()).activation, Binary::add);
        case mul:
            return maker.binary(REEF_TRY(op.options<model::MulOptions>()).activation,
                                Binary::multiply);
        case max_pool_2d:
            return maker.max_pool();
        default:
            return Steps{};
    }
}

/// What bytes have besides.
template <typename T>
Result<Steps> byte_steps(const OperatorView& op) {
    using enum model::Op;
    const Maker<T> maker(op);
    switch (op.op().code.builtin) {
        case average_pool_2d:
            return maker.average_pool();
        case mean:
            return maker.mean();
        case resize_bilinear:
            return maker.resize();
        case logistic:
            return maker.function(Function::sigmoid);
        case tanh:
            return maker.function(Function::tanh);
        case softmax:
            return maker.softmax();
        case concatenation:
            return maker.concatenation();
        case dequantize:
            return maker.dequantize();
        default:
            return common_steps<T>(op);
    }
}

Result<Steps> steps_of(const OperatorView& op) {
    if (!op.has_input(0) || op.output_count() == 0) return Steps{};
    const ElementType to = op.output(0).type;
    switch (op.input(0).type) {
        case ElementType::uint8:
            return byte_steps<std::uint8_t>(op);
        case ElementType::int8:
            return byte_steps<std::int8_t>(op);
        case ElementType::float32:
            if (op.op().code.builtin != model::Op::quantize) return common_steps<float>(op);
            if (to == ElementType::uint8) return Maker<std::uint8_t>(op).quantize();
            if (to == ElementType::int8) return Maker<std::int8_t>(op).quantize();
            return Steps{};
        default:
            return Steps{};
    }
}

class XnnpackPlacer final : public graph::Placer {
  public:
    explicit XnnpackPlacer(pthreadpool* pool) : pool_(pool) {}
    [[nodiscard]] Result<graph::Placed> place(const OperatorView& op) override {
        auto steps = steps_of(op);
        if (!steps || steps->empty()) return graph::Placed{};
        const std::string name = op.op().code.name() + " XNNPACK";
        return graph::Placed{
            std::make_unique<XnnpackKernel>(name, std::move(*steps), pool_), name, {}};
    }

  private:
    pthreadpool* pool_;
};

}  // namespace

bool start_xnnpack() {
#if REEF_HAS_CPUINFO && defined(__x86_64__)
    // It asks cpuinfo what the machine has, which answers from this table.
    if (!cpuinfo_initialize()) return false;
    if (!cpu::simd_target().starts_with("AVX3")) {
        cpuinfo_isa.avx512f = cpuinfo_isa.avx512cd = cpuinfo_isa.avx512bw = false;
        cpuinfo_isa.avx512dq = cpuinfo_isa.avx512vl = cpuinfo_isa.avx512vbmi = false;
#if REEF_XNNPACK_RESHAPES
        if (cpu::simd_target() != "AVX2_VNNI") cpuinfo_isa.avxvnni = false;
#endif
    }
#if REEF_XNNPACK_RESHAPES
    if (cpu::simd_target() == "AVX3") cpuinfo_isa.avx512vnni = false;
#endif
#endif
    return xnn_initialize(nullptr) == xnn_status_success;
}

std::shared_ptr<graph::Placer> xnnpack_placer(pthreadpool* pool) {
    return std::make_shared<XnnpackPlacer>(pool);
}

}  // namespace reef::peers
