#include <algorithm>
#include <array>

#include "cpu/kernels.h"

namespace reef::cpu {
namespace {

using model::Op;

// Sorted by operator number; custom operators of the same number by name.
constexpr auto registry = std::to_array<KernelEntry>({
    {Op::add, {}, prepare_add, "uint8, int8, int32 or float32, all of one type; shapes broadcast"},
    {Op::average_pool_2d,
     {},
     prepare_average_pool_2d,
     "uint8 or int8 with one scale for input and output; windows of at most 2^23 elements"},
    {Op::concatenation,
     {},
     prepare_concatenation,
     "any fixed-size element type; uint8 inputs are rescaled, others share the output's scale"},
    {Op::conv_2d,
     {},
     prepare_conv_2d,
     "uint8 with one scale, int8 with one per tensor or channel; constant weights; groups"},
    {Op::depthwise_conv_2d,
     {},
     prepare_depthwise_conv_2d,
     "uint8 with one scale, int8 with one per tensor or channel; constant weights"},
    {Op::dequantize, {}, prepare_dequantize, "uint8, int8 or int16 with one scale, to float32"},
    {Op::fully_connected,
     {},
     prepare_fully_connected,
     "uint8 with one scale, int8 with one per tensor or channel; constant weights"},
    {Op::logistic, {}, prepare_logistic, "uint8 or int8 with one scale, or float32"},
    {Op::max_pool_2d,
     {},
     prepare_max_pool_2d,
     "uint8 or int8 with one scale for input and output; windows of at most 2^23 elements"},
    {Op::mul, {}, prepare_mul, "uint8, int8, int32 or float32, all of one type; shapes broadcast"},
    {Op::relu, {}, prepare_relu, "float32, or uint8, int8 or int16 with one scale"},
    {Op::relu6, {}, prepare_relu6, "float32, or uint8, int8 or int16 with one scale"},
    {Op::reshape, {}, prepare_reshape, "any fixed-size element type; constant new shape"},
    {Op::resize_bilinear,
     {},
     prepare_resize_bilinear,
     "uint8 or int8; constant size; heights and widths of at most 65536"},
    {Op::softmax,
     {},
     prepare_softmax,
     "uint8 or int8 with output scale 1/256, or float32; over the last axis"},
    {Op::custom, model::detection_postprocess_op, prepare_detection_postprocess,
     "boxes, scores and anchors uint8 or float32; at most 131072 boxes"},
    {Op::custom, model::posenet_decoder_op, prepare_posenet_decoder,
     "maps uint8 or float32 of at most 2^18 cells; without instance masks"},
    {Op::pad,
     {},
     prepare_pad,
     "8, 16, 32 and 64-bit integers and float32; constant paddings of int32"},
    {Op::mean,
     {},
     prepare_mean,
     "uint8, int8 or float32; constant axes; at most 2^23 quantised elements per mean"},
    {Op::sub, {}, prepare_sub, "uint8, int8, int32 or float32, all of one type; shapes broadcast"},
    {Op::div, {}, prepare_div, "float32; shapes broadcast"},
    {Op::squeeze, {}, prepare_squeeze, "any fixed-size element type"},
    {Op::unidirectional_sequence_lstm,
     {},
     prepare_unidirectional_sequence_lstm,
     "int8 with an int16 cell; without CIFG, peephole, projection and layer normalisation"},
    {Op::split, {}, prepare_split, "any fixed-size element type; constant axis"},
    {Op::cast, {}, prepare_cast, "between float32, int8, int16, int32, int64 and uint8"},
    {Op::arg_max,
     {},
     prepare_arg_max,
     "uint8, int8, int32 or float32, to int32 or int64; constant axis"},
    {Op::sqrt, {}, prepare_sqrt, "float32"},
    {Op::pack, {}, prepare_pack, "any fixed-size element type; one scale for all"},
    {Op::unpack, {}, prepare_unpack, "any fixed-size element type"},
    {Op::floor_div, {}, prepare_floor_div, "int32; shapes broadcast"},
    {Op::gather_nd,
     {},
     prepare_gather_nd,
     "any fixed-size element type; int32 indices, checked at run time"},
    {Op::quantize,
     {},
     prepare_quantize,
     "float32, uint8, int8 or int16, to uint8, int8 or int16 with one scale"},
});

static_assert(std::ranges::is_sorted(registry, {}, &KernelEntry::op));

}  // namespace

std::span<const KernelEntry> kernel_registry() {
    return registry;
}

const KernelEntry* find_kernel(const model::OperatorCode& code) {
    const auto found = std::ranges::find_if(registry, [&](const KernelEntry& entry) {
        return entry.op == code.builtin && (entry.op != Op::custom || entry.custom == code.custom);
    });
    return found == registry.end() ? nullptr : &*found;
}

}  // namespace reef::cpu
