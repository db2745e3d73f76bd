// XNNPACK of 2022 (Debian 12): operators are made for a number of channels, all else is set up.
#pragma once

#include <limits>

#include "peers/xnnpack_call.h"

namespace reef::peers {

/// XNNPACK's functions by element type, which the library has at the end of their names.
template <typename T>
struct Names;

template <>
struct Names<std::uint8_t> {
    static constexpr auto create_convolution = xnn_create_convolution2d_nhwc_qu8;
    static constexpr auto setup_convolution = xnn_setup_convolution2d_nhwc_qu8;
    static constexpr auto create_add = xnn_create_add_nd_qu8;
    static constexpr auto setup_add = xnn_setup_add_nd_qu8;
    static constexpr auto create_multiply = xnn_create_multiply_nd_qu8;
    static constexpr auto setup_multiply = xnn_setup_multiply_nd_qu8;
    static constexpr auto create_global_average = xnn_create_global_average_pooling_nwc_qu8;
    static constexpr auto setup_global_average = xnn_setup_global_average_pooling_nwc_qu8;
    static constexpr auto create_max_pool = xnn_create_max_pooling2d_nhwc_u8;
    static constexpr auto setup_max_pool = xnn_setup_max_pooling2d_nhwc_u8;
    static constexpr auto create_resize = xnn_create_resize_bilinear2d_nhwc_u8;
    static constexpr auto setup_resize = xnn_setup_resize_bilinear2d_nhwc_u8;
    static constexpr auto create_sigmoid = xnn_create_sigmoid_nc_qu8;
    static constexpr auto setup_sigmoid = xnn_setup_sigmoid_nc_qu8;
    static constexpr auto create_tanh = xnn_create_tanh_nc_qu8;
    static constexpr auto setup_tanh = xnn_setup_tanh_nc_qu8;
    static constexpr auto create_quantize = xnn_create_convert_nc_f32_qu8;
    static constexpr auto setup_quantize = xnn_setup_convert_nc_f32_qu8;
    static constexpr auto create_dequantize = xnn_create_convert_nc_qu8_f32;
    static constexpr auto setup_dequantize = xnn_setup_convert_nc_qu8_f32;
};

/// Convolutions with a scale for each output channel.
template <>
struct Names<std::int8_t> {
    static constexpr auto create_convolution = xnn_create_convolution2d_nhwc_qc8;
    static constexpr auto setup_convolution = xnn_setup_convolution2d_nhwc_qc8;
    static constexpr auto create_add = xnn_create_add_nd_qs8;
    static constexpr auto setup_add = xnn_setup_add_nd_qs8;
    static constexpr auto create_multiply = xnn_create_multiply_nd_qs8;
    static constexpr auto setup_multiply = xnn_setup_multiply_nd_qs8;
    static constexpr auto create_global_average = xnn_create_global_average_pooling_nwc_qs8;
    static constexpr auto setup_global_average = xnn_setup_global_average_pooling_nwc_qs8;
    static constexpr auto create_max_pool = xnn_create_max_pooling2d_nhwc_s8;
    static constexpr auto setup_max_pool = xnn_setup_max_pooling2d_nhwc_s8;
    static constexpr auto create_resize = xnn_create_resize_bilinear2d_nhwc_s8;
    static constexpr auto setup_resize = xnn_setup_resize_bilinear2d_nhwc_s8;
    static constexpr auto create_sigmoid = xnn_create_sigmoid_nc_qs8;
    static constexpr auto setup_sigmoid = xnn_setup_sigmoid_nc_qs8;
    static constexpr auto create_tanh = xnn_create_tanh_nc_qs8;
    static constexpr auto setup_tanh = xnn_setup_tanh_nc_qs8;
    static constexpr auto create_quantize = xnn_create_convert_nc_f32_qs8;
    static constexpr auto setup_quantize = xnn_setup_convert_nc_f32_qs8;
    static constexpr auto create_dequantize = xnn_create_convert_nc_qs8_f32;
    static constexpr auto setup_dequantize = xnn_setup_convert_nc_qs8_f32;
};

template <>
struct Names<float> {
    static constexpr auto create_convolution = xnn_create_convolution2d_nhwc_f32;
    static constexpr auto setup_convolution = xnn_setup_convolution2d_nhwc_f32;
    static constexpr auto create_add = xnn_create_add_nd_f32;
    static constexpr auto setup_add = xnn_setup_add_nd_f32;
    static constexpr auto create_multiply = xnn_create_multiply_nd_f32;
    static constexpr auto setup_multiply = xnn_setup_multiply_nd_f32;
    static constexpr auto create_max_pool = xnn_create_max_pooling2d_nhwc_f32;
    static constexpr auto setup_max_pool = xnn_setup_max_pooling2d_nhwc_f32;
};

template <typename T>
struct Functions {
    using Of = Names<T>;

    template <typename... Numbers>
    static xnn_status create_convolution(xnn_operator_t* made, Numbers... numbers) {
        return Of::create_convolution(numbers..., made);
    }
    static xnn_status setup_convolution(const Call& call, const Images& from, const T* in, T* out) {
        return Of::setup_convolution(call.op, from.count, from.height, from.width, in, out,
                                     call.pool);
    }

    static xnn_status create_binary(xnn_operator_t* made, Binary binary, const Quantized& a,
                                    const Quantized& b, const Quantized& out, Limits<T> limits) {
        const auto create = binary == Binary::add ? Of::create_add : Of::create_multiply;
        if constexpr (std::is_same_v<T, float>)
            return create(limits.min, limits.max, 0U, made);
        else
            return create(static_cast<T>(a.zero), a.scale, static_cast<T>(b.zero), b.scale,
                          static_cast<T>(out.zero), out.scale, limits.min, limits.max, 0U, made);
    }
    static xnn_status setup_binary(const Call& call, Binary binary, const Shape& a_shape,
                                   const Shape& b_shape, const T* a, const T* b, T* out) {
        const auto setup = binary == Binary::add ? Of::setup_add : Of::setup_multiply;
        return setup(call.op, a_shape.size(), a_shape.data(), b_shape.size(), b_shape.data(), a, b,
                     out, call.pool);
    }

    template <typename... Windows>
    static xnn_status create_max_pool(xnn_operator_t* made, std::size_t channels, Limits<T> limits,
                                      Windows... windows) {
        return Of::create_max_pool(windows..., channels, channels, channels, limits.min, limits.max,
                                   0U, made);
    }
    static xnn_status setup_max_pool(const Call& call, const Images& from, const T* in, T* out) {
        return Of::setup_max_pool(call.op, from.count, from.height, from.width, in, out, call.pool);
    }

    static xnn_status create_global_average(xnn_operator_t* made, std::size_t channels,
                                            const Quantized& in, const Quantized& out,
                                            Limits<T> limits) {
        return Of::create_global_average(channels, channels, channels, static_cast<T>(in.zero),
                                         in.scale, static_cast<T>(out.zero), out.scale, limits.min,
                                         limits.max, 0U, made);
    }
    static xnn_status setup_global_average(const Call& call, const Images& from, const T* in,
                                           T* out) {
        return Of::setup_global_average(call.op, from.count, from.height * from.width, in, out,
                                        call.pool);
    }

    static xnn_status create_resize(xnn_operator_t* made, const Images& to, std::uint32_t flags) {
        return Of::create_resize(to.channels, to.channels, to.channels, flags, made);
    }
    static xnn_status setup_resize(const Call& call, const Images& from, const Images& to,
                                   const T* in, T* out) {
        return Of::setup_resize(call.op, from.count, from.height, from.width, to.height, to.width,
                                in, out, call.pool);
    }

    static xnn_status create_function(xnn_operator_t* made, Function function, std::size_t elements,
                                      const Quantized& in, const Quantized& out) {
        const auto create = function == Function::tanh ? Of::create_tanh : Of::create_sigmoid;
        return create(elements, elements, elements, static_cast<T>(in.zero), in.scale,
                      static_cast<T>(out.zero), out.scale, std::numeric_limits<T>::min(),
                      std::numeric_limits<T>::max(), 0U, made);
    }
    static xnn_status setup_function(const Call& call, Function function, std::size_t /*elements*/,
                                     const T* in, T* out) {
        const auto setup = function == Function::tanh ? Of::setup_tanh : Of::setup_sigmoid;
        return setup(call.op, 1, in, out, call.pool);
    }

    static xnn_status create_quantize(xnn_operator_t* made, std::size_t elements,
                                      const Quantized& out) {
        return Of::create_quantize(elements, elements, elements, out.scale,
                                   static_cast<T>(out.zero), std::numeric_limits<T>::min(),
                                   std::numeric_limits<T>::max(), 0U, made);
    }
    static xnn_status setup_quantize(const Call& call, std::size_t /*elements*/, const float* in,
                                     T* out) {
        return Of::setup_quantize(call.op, 1, in, out, call.pool);
    }
    static xnn_status create_dequantize(xnn_operator_t* made, std::size_t elements,
                                        const Quantized& in) {
        return Of::create_dequantize(elements, elements, elements, in.scale,
                                     static_cast<T>(in.zero), 0U, made);
    }
    static xnn_status setup_dequantize(const Call& call, std::size_t /*elements*/, const T* in,
                                       float* out) {
        return Of::setup_dequantize(call.op, 1, in, out, call.pool);
    }
};

/// Of uint8 alone.
inline xnn_status create_softmax(xnn_operator_t* made, std::size_t channels, float in_scale,
                                 const Quantized& out) {
    return xnn_create_softmax_nc_qu8(channels, channels, channels, in_scale,
                                     static_cast<std::uint8_t>(out.zero), out.scale, 0U, made);
}
inline xnn_status setup_softmax(const Call& call, Rows rows, const std::uint8_t* in,
                                std::uint8_t* out) {
    return xnn_setup_softmax_nc_qu8(call.op, rows.count, in, out, call.pool);
}

/// Of bytes, into rows that are `stride` apart.
inline xnn_status create_copy(xnn_operator_t* made, std::size_t channels, std::size_t stride) {
    return xnn_create_copy_nc_x8(channels, channels, stride, 0U, made);
}
inline xnn_status setup_copy(const Call& call, Rows rows, std::size_t /*stride*/, const void* in,
                             void* out) {
    return xnn_setup_copy_nc_x8(call.op, rows.count, in, out, call.pool);
}

}  // namespace reef::peers
