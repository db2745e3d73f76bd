// XNNPACK of 2024 (Debian 13): an operator takes its shapes in a step of their own, tells what
// memory it works in, and takes its addresses last; operators of one and two inputs are made by one
// function each, which do not limit what they give.
#pragma once

#include <array>
#include <limits>
#include <type_traits>

#include "peers/xnnpack_call.h"

namespace reef::peers {

/// XNNPACK's functions by element type, which the library has at the end of their names.
template <typename T>
struct Names;

template <>
struct Names<std::uint8_t> {
    static constexpr xnn_datatype type = xnn_datatype_quint8;
    static constexpr auto create_convolution = xnn_create_convolution2d_nhwc_qu8;
    static constexpr auto reshape_convolution = xnn_reshape_convolution2d_nhwc_qu8;
    static constexpr auto setup_convolution = xnn_setup_convolution2d_nhwc_qu8;
    static constexpr auto create_max_pool = xnn_create_max_pooling2d_nhwc_u8;
    static constexpr auto reshape_max_pool = xnn_reshape_max_pooling2d_nhwc_u8;
    static constexpr auto setup_max_pool = xnn_setup_max_pooling2d_nhwc_u8;
    static constexpr auto create_resize = xnn_create_resize_bilinear2d_nhwc_u8;
    static constexpr auto reshape_resize = xnn_reshape_resize_bilinear2d_nhwc_u8;
    static constexpr auto setup_resize = xnn_setup_resize_bilinear2d_nhwc_u8;
};

/// Convolutions with a scale for each output channel.
template <>
struct Names<std::int8_t> {
    static constexpr xnn_datatype type = xnn_datatype_qint8;
    static constexpr auto create_convolution = xnn_create_convolution2d_nhwc_qs8_qc8w;
    static constexpr auto reshape_convolution = xnn_reshape_convolution2d_nhwc_qs8_qc8w;
    static constexpr auto setup_convolution = xnn_setup_convolution2d_nhwc_qs8_qc8w;
    static constexpr auto create_max_pool = xnn_create_max_pooling2d_nhwc_s8;
    static constexpr auto reshape_max_pool = xnn_reshape_max_pooling2d_nhwc_s8;
    static constexpr auto setup_max_pool = xnn_setup_max_pooling2d_nhwc_s8;
    static constexpr auto create_resize = xnn_create_resize_bilinear2d_nhwc_s8;
    static constexpr auto reshape_resize = xnn_reshape_resize_bilinear2d_nhwc_s8;
    static constexpr auto setup_resize = xnn_setup_resize_bilinear2d_nhwc_s8;
};

template <>
struct Names<float> {
    static constexpr xnn_datatype type = xnn_datatype_fp32;
    static constexpr auto create_convolution = xnn_create_convolution2d_nhwc_f32;
    static constexpr auto reshape_convolution = xnn_reshape_convolution2d_nhwc_f32;
    static constexpr auto setup_convolution = xnn_setup_convolution2d_nhwc_f32;
    static constexpr auto create_max_pool = xnn_create_max_pooling2d_nhwc_f32;
    static constexpr auto reshape_max_pool = xnn_reshape_max_pooling2d_nhwc_f32;
    static constexpr auto setup_max_pool = xnn_setup_max_pooling2d_nhwc_f32;
};

/// reshape(&bytes, &alignment), then setup(workspace) with as much memory.
template <typename Reshape, typename Setup>
xnn_status with_workspace(Workspace& workspace, const Reshape& reshape, const Setup& setup) {
    std::size_t bytes = 0, alignment = 0;
    if (const xnn_status status = reshape(&bytes, &alignment); status != xnn_status_success)
        return status;
    if (alignment > Workspace::alignment) return xnn_status_unsupported_parameter;
    return setup(workspace.of(bytes));
}

inline xnn_quantization_params parameters(const Quantized& of) {
    return {.zero_point = of.zero, .scale = of.scale};
}

inline xnn_status create_unary(xnn_operator_t* made, xnn_unary_operator of, xnn_datatype in_type,
                               xnn_datatype out_type, const Quantized& in, const Quantized& out) {
    const xnn_quantization_params from = parameters(in), to = parameters(out);
    return xnn_create_unary_elementwise_nc(of, in_type, out_type, nullptr, &from, &to, 0U, made);
}
inline xnn_status setup_unary(const Call& call, std::size_t elements, const void* in, void* out) {
    const xnn_status status =
        xnn_reshape_unary_elementwise_nc(call.op, 1, elements, elements, elements, call.pool);
    return status == xnn_status_success ? xnn_setup_unary_elementwise_nc(call.op, in, out) : status;
}

template <typename T>
struct Functions {
    using Of = Names<T>;
    using Bounds = std::numeric_limits<T>;
    static constexpr bool real = std::is_same_v<T, float>;

    template <typename... Numbers>
    static xnn_status create_convolution(xnn_operator_t* made, Numbers... numbers) {
        return Of::create_convolution(numbers..., nullptr, nullptr, made);
    }
    static xnn_status setup_convolution(const Call& call, const Images& from, const T* in, T* out) {
        return with_workspace(
            call.workspace,
            [&](std::size_t* bytes, std::size_t* alignment) {
                return Of::reshape_convolution(call.op, from.count, from.height, from.width, bytes,
                                               alignment, nullptr, nullptr, call.pool);
            },
            [&](void* workspace) { return Of::setup_convolution(call.op, workspace, in, out); });
    }

    static xnn_status create_binary(xnn_operator_t* made, Binary binary, const Quantized& a,
                                    const Quantized& b, const Quantized& out, Limits<T> limits) {
        if (!are_all(limits)) return xnn_status_unsupported_parameter;
        const auto of = binary == Binary::add ? xnn_binary_add : xnn_binary_multiply;
        const xnn_quantization_params from_a = parameters(a), from_b = parameters(b),
                                      to = parameters(out);
        return xnn_create_binary_elementwise_nd(of, Of::type, &from_a, &from_b, &to, 0U, made);
    }
    static xnn_status setup_binary(const Call& call, Binary /*binary*/, const Shape& a_shape,
                                   const Shape& b_shape, const T* a, const T* b, T* out) {
        const xnn_status status = xnn_reshape_binary_elementwise_nd(
            call.op, a_shape.size(), a_shape.data(), b_shape.size(), b_shape.data(), call.pool);
        return status == xnn_status_success ? xnn_setup_binary_elementwise_nd(call.op, a, b, out)
                                            : status;
    }

    template <typename... Windows>
    static xnn_status create_max_pool(xnn_operator_t* made, std::size_t /*channels*/,
                                      Limits<T> limits, Windows... windows) {
        return Of::create_max_pool(windows..., limits.min, limits.max, 0U, made);
    }
    static xnn_status setup_max_pool(const Call& call, const Images& from, const T* in, T* out) {
        const xnn_status status =
            Of::reshape_max_pool(call.op, from.count, from.height, from.width, from.channels,
                                 from.channels, from.channels, nullptr, nullptr, call.pool);
        return status == xnn_status_success ? Of::setup_max_pool(call.op, in, out) : status;
    }

    static xnn_status create_global_average(xnn_operator_t* made, std::size_t /*channels*/,
                                            const Quantized& in, const Quantized& out,
                                            Limits<T> limits) {
        if (!are_all(limits)) return xnn_status_unsupported_parameter;
        const xnn_quantization_params from = parameters(in), to = parameters(out);
        return xnn_create_reduce_nd(xnn_reduce_mean, Of::type, &from, &to, XNN_FLAG_KEEP_DIMS,
                                    made);
    }
    static xnn_status setup_global_average(const Call& call, const Images& from, const T* in,
                                           T* out) {
        constexpr std::array<std::int64_t, 2> axes{1, 2};
        const std::array<std::size_t, 4> shape{from.count, from.height, from.width, from.channels};
        return with_workspace(
            call.workspace,
            [&](std::size_t* bytes, std::size_t* alignment) {
                return xnn_reshape_reduce_nd(call.op, axes.size(), axes.data(), shape.size(),
                                             shape.data(), bytes, alignment, call.pool);
            },
            [&](void* workspace) { return xnn_setup_reduce_nd(call.op, workspace, in, out); });
    }

    static xnn_status create_resize(xnn_operator_t* made, const Images& to, std::uint32_t flags) {
        return Of::create_resize(to.height, to.width, flags, made);
    }
    static xnn_status setup_resize(const Call& call, const Images& from, const Images& /*to*/,
                                   const T* in, T* out) {
        return with_workspace(
            call.workspace,
            [&](std::size_t* bytes, std::size_t* alignment) {
                return Of::reshape_resize(call.op, from.count, from.height, from.width,
                                          from.channels, from.channels, from.channels, bytes,
                                          alignment, call.pool);
            },
            [&](void* workspace) { return Of::setup_resize(call.op, workspace, in, out); });
    }

    static xnn_status create_function(xnn_operator_t* made, Function function,
                                      std::size_t /*elements*/, const Quantized& in,
                                      const Quantized& out) {
        const auto of = function == Function::tanh ? xnn_unary_tanh : xnn_unary_sigmoid;
        return create_unary(made, of, Of::type, Of::type, in, out);
    }
    static xnn_status setup_function(const Call& call, Function /*function*/, std::size_t elements,
                                     const T* in, T* out) {
        return setup_unary(call, elements, in, out);
    }

    static xnn_status create_quantize(xnn_operator_t* made, std::size_t /*elements*/,
                                      const Quantized& out) {
        return create_unary(made, xnn_unary_convert, xnn_datatype_fp32, Of::type, {}, out);
    }
    static xnn_status setup_quantize(const Call& call, std::size_t elements, const float* in,
                                     T* out) {
        return setup_unary(call, elements, in, out);
    }
    static xnn_status create_dequantize(xnn_operator_t* made, std::size_t /*elements*/,
                                        const Quantized& in) {
        return create_unary(made, xnn_unary_convert, Of::type, xnn_datatype_fp32, in, {});
    }
    static xnn_status setup_dequantize(const Call& call, std::size_t elements, const T* in,
                                       float* out) {
        return setup_unary(call, elements, in, out);
    }

  private:
    /// Whether nothing that the type holds is outside.
    static bool are_all(Limits<T> limits) {
        if constexpr (real)
            return limits.min == -Bounds::infinity() && limits.max == Bounds::infinity();
        else
            return limits.min == Bounds::min() && limits.max == Bounds::max();
    }
};

/// Of uint8 alone.
inline xnn_status create_softmax(xnn_operator_t* made, std::size_t /*channels*/, float in_scale,
                                 const Quantized& out) {
    return xnn_create_softmax_nc_qu8(in_scale, static_cast<std::uint8_t>(out.zero), out.scale, 0U,
                                     made);
}
inline xnn_status setup_softmax(const Call& call, Rows rows, const std::uint8_t* in,
                                std::uint8_t* out) {
    const xnn_status status = xnn_reshape_softmax_nc_qu8(call.op, rows.channels, rows.channels,
                                                         rows.channels, rows.count, call.pool);
    return status == xnn_status_success ? xnn_setup_softmax_nc_qu8(call.op, in, out) : status;
}

/// Of bytes, into rows that are `stride` apart.
inline xnn_status create_copy(xnn_operator_t* made, std::size_t /*channels*/,
                              std::size_t /*stride*/) {
    return xnn_create_copy_nc_x8(0U, made);
}
inline xnn_status setup_copy(const Call& call, Rows rows, std::size_t stride, const void* in,
                             void* out) {
    const xnn_status status = xnn_reshape_copy_nc_x8(call.op, rows.count, rows.channels,
                                                     rows.channels, stride, call.pool);
    return status == xnn_status_success ? xnn_setup_copy_nc_x8(call.op, in, out) : status;
}

}  // namespace reef::peers
