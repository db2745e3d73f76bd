// XNNPACK's functions by element type: the library names the type at the end of each.
#pragma once

#include <xnnpack.h>

#include <cstdint>

namespace reef::peers {

template <typename T>
struct Functions;

template <>
struct Functions<std::uint8_t> {
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
struct Functions<std::int8_t> {
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
struct Functions<float> {
    static constexpr auto create_convolution = xnn_create_convolution2d_nhwc_f32;
    static constexpr auto setup_convolution = xnn_setup_convolution2d_nhwc_f32;
    static constexpr auto create_add = xnn_create_add_nd_f32;
    static constexpr auto setup_add = xnn_setup_add_nd_f32;
    static constexpr auto create_multiply = xnn_create_multiply_nd_f32;
    static constexpr auto setup_multiply = xnn_setup_multiply_nd_f32;
    static constexpr auto create_max_pool = xnn_create_max_pooling2d_nhwc_f32;
    static constexpr auto setup_max_pool = xnn_setup_max_pooling2d_nhwc_f32;
};

}  // namespace reef::peers
