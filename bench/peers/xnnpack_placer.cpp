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
#include "peers/xnnpack_functions.h"
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

/// For each run that has other addresses than the last; the pool decides how the work is cut.
using Setup = std::function<xnn_status(xnn_operator_t, const Frame&, pthreadpool*)>;
struct Step {
    XnnOperator op;
    Setup setup;
};
using Steps = std::vector<Step>;

class XnnpackKernel final : public graph::Kernel {
  public:
    XnnpackKernel(std::string name, Steps steps, pthreadpool* pool)
        : name_(std::move(name)), steps_(std::move(steps)), pool_(pool) {}
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] Status run(const Frame& frame) override {
        if (!ready_for(frame))
            for (const Step& step : steps_)
                if (step.setup(step.op.get(), frame, pool_) != xnn_status_success)
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
template <typename Create, typename... Arguments>
Steps one_step(Setup setup, Create create, const Arguments&... arguments) {
    xnn_operator_t made = nullptr;
    Steps steps;
    if (create(arguments..., &made) == xnn_status_success)
        steps.push_back({XnnOperator(made), std::move(setup)});
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
    [[nodiscard]] Result<Steps> binary(model::Activation activation, bool product) const;
    [[nodiscard]] Result<Steps> max_pool() const;
    [[nodiscard]] Result<Steps> average_pool() const;
    [[nodiscard]] Result<Steps> mean() const;
    [[nodiscard]] Result<Steps> resize() const;
    [[nodiscard]] Result<Steps> function(bool tanh) const;
    [[nodiscard]] Result<Steps> softmax() const;
    [[nodiscard]] Result<Steps> concatenation() const;
    [[nodiscard]] Result<Steps> quantize() const;
    [[nodiscard]] Result<Steps> dequantize() const;

  private:
    [[nodiscard]] Result<Steps> global_average(std::int64_t batch, std::int64_t pixels,
                                               std::int64_t channels, cpu::ClampRange clamp) const;
    const OperatorView& op_;
};

template <typename T>
Result<Steps> Maker<T>::convolution(const Convolution& c, bool depthwise) const {
    const auto make = [&](const auto&... numbers) {
        return one_step(
            [batch = size(c.batch), h = size(c.h.in), w = size(c.w.in)](
                xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
                return F::setup_convolution(made, batch, h, w, frame.in<T>(0), frame.out<T>(0),
                                            pool);
            },
            F::create_convolution, unsigned32(c.h.pad), padding_after(c.w), padding_after(c.h),
            unsigned32(c.w.pad), unsigned32(c.h.taps), unsigned32(c.w.taps), unsigned32(c.h.stride),
            unsigned32(c.w.stride), unsigned32(c.h.dilation), unsigned32(c.w.dilation),
            depthwise ? unsigned32(c.in_channels) : 1U,
            depthwise ? std::size_t{1} : size(c.in_channels),
            size(depthwise ? c.depth_multiplier : c.out_channels), size(c.in_channels),
            size(c.out_channels), numbers...,
            std::uint32_t{depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0U});
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

template <typename T>
Result<Steps> Maker<T>::binary(model::Activation activation, bool product) const {
    const auto dimensions = [&](std::size_t i) {
        const auto& shape = op_.input(i).shape;
        return std::vector<std::size_t>(shape.begin(), shape.end());
    };
    const auto create = product ? F::create_multiply : F::create_add;
    const auto setup = product ? F::setup_multiply : F::setup_add;
    const auto ready = [setup, a = dimensions(0), b = dimensions(1)](
                           xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
        return setup(made, a.size(), a.data(), b.size(), b.data(), frame.in<T>(0), frame.in<T>(1),
                     frame.out<T>(0), pool);
    };
    if constexpr (real) {
        const auto clamp = REEF_TRY(cpu::float_activation_range(activation));
        return one_step(ready, create, clamp.min, clamp.max, 0U);
    } else {
        const auto a = REEF_TRY(cpu::per_tensor_parameters(op_.input(0)));
        const auto b = REEF_TRY(cpu::per_tensor_parameters(op_.input(1)));
        const auto out = REEF_TRY(cpu::per_tensor_parameters(op_.output(0)));
        const auto clamp = REEF_TRY(cpu::quantized_activation_range(activation, op_.output(0)));
        return one_step(ready, create, static_cast<T>(a.zero_point), a.scale,
                        static_cast<T>(b.zero_point), b.scale, static_cast<T>(out.zero_point),
                        out.scale, static_cast<T>(clamp.min), static_cast<T>(clamp.max), 0U);
    }
}

template <typename T>
Result<Steps> Maker<T>::max_pool() const {
    const cpu::Pooling p = REEF_TRY(real ? cpu::check_float_pooling(op_) : cpu::check_pooling(op_));
    const auto after = [](const cpu::PoolingAxis& axis) {
        return unsigned32(
            std::max(0, (axis.output - 1) * axis.stride + axis.filter - axis.input - axis.padding));
    };
    const auto ready = [p](xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
        return F::setup_max_pool(made, size(p.batches), size(p.y.input), size(p.x.input),
                                 frame.in<T>(0), frame.out<T>(0), pool);
    };
    const auto make = [&](T least, T most) {
        return one_step(ready, F::create_max_pool, unsigned32(p.y.padding), after(p.x), after(p.y),
                        unsigned32(p.x.padding), unsigned32(p.y.filter), unsigned32(p.x.filter),
                        unsigned32(p.y.stride), unsigned32(p.x.stride), 1U, 1U, size(p.channels),
                        size(p.channels), size(p.channels), least, most, 0U);
    };
    if constexpr (real) return make(p.float_clamp.min, p.float_clamp.max);
    return make(static_cast<T>(p.clamp.min), static_cast<T>(p.clamp.max));
}

template <typename T>
Result<Steps> Maker<T>::global_average(std::int64_t batch, std::int64_t pixels,
                                       std::int64_t channels, cpu::ClampRange clamp) const {
    if constexpr (real) {
        return Steps{};
    } else {
        const auto in = REEF_TRY(cpu::per_tensor_parameters(op_.input(0)));
        const auto out = REEF_TRY(cpu::per_tensor_parameters(op_.output(0)));
        return one_step(
            [batch = size(batch), pixels = size(pixels)](xnn_operator_t made, const Frame& frame,
                                                         pthreadpool* pool) {
                return F::setup_global_average(made, batch, pixels, frame.in<T>(0), frame.out<T>(0),
                                               pool);
            },
            F::create_global_average, size(channels), size(channels), size(channels),
            static_cast<T>(in.zero_point), in.scale, static_cast<T>(out.zero_point), out.scale,
            static_cast<T>(clamp.min), static_cast<T>(clamp.max), 0U);
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
    return global_average(p.batches, std::int64_t{p.y.input} * p.x.input, p.channels, p.clamp);
}

template <typename T>
Result<Steps> Maker<T>::mean() const {
    const auto axes = REEF_TRY(cpu::constant_int32(op_, 1, "axes"));
    const auto& shape = op_.input(0).shape;
    if (axes != std::vector<std::int32_t>{1, 2} || shape.size() != 4) return Steps{};
    return global_average(shape[0], std::int64_t{shape[1]} * shape[2], shape[3],
                          cpu::type_range(op_.output(0).type));
}

template <typename T>
Result<Steps> Maker<T>::resize() const {
    const auto options = REEF_TRY(op_.options<model::ResizeBilinearOptions>());
    const auto& from = op_.input(0).shape;
    const auto& to = op_.output(0).shape;
    if (from.size() != 4 || to.size() != 4) return Steps{};
    const std::uint32_t flags = options.align_corners        ? XNN_FLAG_ALIGN_CORNERS
                                : options.half_pixel_centers ? 0U
                                                             : XNN_FLAG_TENSORFLOW_LEGACY_MODE;
    return one_step(
        [from, to](xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
            return F::setup_resize(made, size(from[0]), size(from[1]), size(from[2]), size(to[1]),
                                   size(to[2]), frame.in<T>(0), frame.out<T>(0), pool);
        },
        F::create_resize, size(from[3]), size(from[3]), size(from[3]), flags);
}

template <typename T>
Result<Steps> Maker<T>::function(bool tanh) const {
    const auto in = REEF_TRY(cpu::per_tensor_parameters(op_.input(0)));
    const auto out = REEF_TRY(cpu::per_tensor_parameters(op_.output(0)));
    const std::size_t elements = elements_from(op_.input(0), 0);
    const cpu::ClampRange range = cpu::type_range(op_.output(0).type);
    const auto setup = tanh ? F::setup_tanh : F::setup_sigmoid;
    return one_step(
        [setup](xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
            return setup(made, 1, frame.in<T>(0), frame.out<T>(0), pool);
        },
        tanh ? F::create_tanh : F::create_sigmoid, elements, elements, elements,
        static_cast<T>(in.zero_point), in.scale, static_cast<T>(out.zero_point), out.scale,
        static_cast<T>(range.min), static_cast<T>(range.max), 0U);
}

template <typename T>
Result<Steps> Maker<T>::softmax() const {
    if constexpr (!std::is_same_v<T, std::uint8_t>) return Steps{};
    const auto options = REEF_TRY(op_.options<model::SoftmaxOptions>());
    const auto in = REEF_TRY(cpu::per_tensor_parameters(op_.input(0)));
    const auto out = REEF_TRY(cpu::per_tensor_parameters(op_.output(0)));
    const auto& shape = op_.input(0).shape;
    if (shape.empty()) return Steps{};
    const std::size_t channels = size(shape.back());
    return one_step(
        [rows = elements_before(op_.input(0), shape.size() - 1)](
            xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
            return xnn_setup_softmax_nc_qu8(made, rows, frame.in<std::uint8_t>(0),
                                            frame.out<std::uint8_t>(0), pool);
        },
        xnn_create_softmax_nc_qu8, channels, channels, channels, in.scale * options.beta,
        static_cast<std::uint8_t>(out.zero_point), out.scale, 0U);
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
        const std::size_t part = elements_from(in, axis);
        auto step = one_step(
            [i, offset, rows = elements_before(in, axis)](xnn_operator_t made, const Frame& frame,
                                                          pthreadpool* pool) {
                return xnn_setup_copy_nc_x8(made, rows, frame.in<T>(i), frame.out<T>(0) + offset,
                                            pool);
            },
            xnn_create_copy_nc_x8, part, part, width, 0U);
        if (step.empty()) return Steps{};
        steps.push_back(std::move(step.front()));
        offset += part;
    }
    return steps;
}

/// From float32.
template <typename T>
Result<Steps> Maker<T>::quantize() const {
    const auto out = REEF_TRY(cpu::per_tensor_parameters(op_.output(0)));
    const std::size_t elements = elements_from(op_.input(0), 0);
    const cpu::ClampRange range = cpu::type_range(op_.output(0).type);
    return one_step(
        [](xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
            return F::setup_quantize(made, 1, frame.in<float>(0), frame.out<T>(0), pool);
        },
        F::create_quantize, elements, elements, elements, out.scale, static_cast<T>(out.zero_point),
        static_cast<T>(range.min), static_cast<T>(range.max), 0U);
}

template <typename T>
Result<Steps> Maker<T>::dequantize() const {
    const auto in = REEF_TRY(cpu::per_tensor_parameters(op_.input(0)));
    const std::size_t elements = elements_from(op_.input(0), 0);
    return one_step(
        [](xnn_operator_t made, const Frame& frame, pthreadpool* pool) {
            return F::setup_dequantize(made, 1, frame.in<T>(0), frame.out<float>(0), pool);
        },
        F::create_dequantize, elements, elements, elements, in.scale, static_cast<T>(in.zero_point),
        0U);
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
            return maker.binary(REEF_TRY(op.options<model::AddOptions>()).activation, false);
        case mul:
            return maker.binary(REEF_TRY(op.options<model::MulOptions>()).activation, true);
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
            return maker.function(false);
        case tanh:
            return maker.function(true);
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
    }
#endif
    return xnn_initialize(nullptr) == xnn_status_success;
}

std::shared_ptr<graph::Placer> xnnpack_placer(pthreadpool* pool) {
    return std::make_shared<XnnpackPlacer>(pool);
}

}  // namespace reef::peers
