#include "final_mlir/demo_network.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>

namespace reef::tool {
namespace {

constexpr std::uint64_t coefficients = 0x100000000, neurons = 0x100004000;

std::string tensor(std::string_view type, std::uint64_t address) {
    return fmt::format("tensor<{}, {} : i64>", type, address);
}

std::string ginfo(int id) {
    return fmt::format("ginfo = #tpu.lg<out_addr = 0, out_size = 64, id = {}, stage = 0>", id);
}

const std::string q8 = "1x8x4x4x!quant.uniform<i8:f32, 5.000000e-01>";
const std::string local = "tensor<" + q8 + ">", local_in = "tensor<1x8x4x4xf32>";
const std::string host = "tensor<1x8x4x4xf32>", in = tensor("1x8x4x4xf32", neurons),
                  cast = tensor(q8, neurons + 0x1000), conv = tensor(q8, neurons + 0x2000),
                  relu = tensor(q8, neurons + 0x3000), sum = tensor(q8, neurons + 0x1000),
                  flat = tensor("1x128x!quant.uniform<i8:f32, 5.000000e-01>", neurons + 0x1000),
                  logits = tensor("1x10xf32", neurons + 0x2000),
                  kernel = tensor("1x8x8x9xi8", coefficients),
                  bias = tensor("1x8x1x1xi32", coefficients + 0x1000),
                  matrix = tensor("128x10xi8", coefficients + 0x2000);

std::string module_text() {
    return "module @small attributes {module.addr_mode = \"basic\", module.chip = \"bm1684x\", "
           "module.cores = 1 : i64, module.devices = 1 : i64, module.inputs = [\"x\"], module.mode "
           "= "
           "\"INT8\", module.outputs = [\"scores\"], module.platform = \"ONNX\", module.state = "
           "\"TPU_ADDRESSED\", module.weight_file = \"small_weight.npz\"} {\n" +
           fmt::format(
               "  module @small attributes {{module.coeff_addr = {} : i64, "
               "module.coeff_size = 12288 : i64, module.device_id = 0 : i64, "
               "module.dynamic_coeff_offset = 12288 : i64, module.neuron_addr = {} : i64, "
               "module.neuron_size = 16384 : i64, module.step = 0 : i64}} {{\n",
               coefficients, neurons);
}

std::string main_text() {
    return fmt::format(R"(    func.func @main(%arg0: {0} loc(unknown)) -> {1} {{
      %0 = "top.Input"(%arg0) : ({0}) -> {2} loc(#loc1)
      %1 = call @subfunc_0(%0) : ({2}) -> {3} loc(#loc)
      %2 = call @subfunc_1(%1) : ({3}) -> {1} loc(#loc)
      return %2 : {1} loc(#loc)
    }} loc(#loc)
)",
                       host, logits, in, flat);
}

/// It runs the Load of the kernel for the group behind it.
std::string cast_group() {
    return fmt::format(R"(      %3 = "tpu.Group"(%arg0) ({{
        %7 = "tpu.Load"(%arg0) {{{4}}} : ({0}) -> {1} loc(#loc5)
        %8 = "tpu.Cast"(%7) {{{5}, with_scale = true}} : ({1}) -> {2} loc(#loc4)
        %9 = "tpu.Store"(%8, %0) {{{6}}} : ({2}, none) -> {3} loc(#loc4)
        "tpu.Yield"(%9) : ({3}) -> () loc(#loc4)
      }}) {{flow = [-1, 0, -2, 1, -3, 2], group_type = 0 : i64, other_down_overlap_op = [], other_up_overlap_op = [-2, 1], self_down_overlap_op = [], self_up_overlap_op = []}} : ({0}) -> {3} loc(#loc4)
)",
                       in, local_in, local, cast, ginfo(0), ginfo(1), ginfo(2));
}

std::string first_function() {
    return fmt::format(
               R"(    func.func @subfunc_0(%arg0: {0} loc("x")) -> {1} attributes {{id = 0 : i64, mode = #tpu<run_mode TPU_STATIC>, next_index = array<i32: 1>}} {{
      %0 = "top.None"() : () -> none loc(#loc)
      %1 = "top.Weight"() : () -> {2} loc(#loc2)
      %2 = "top.Weight"() : () -> {3} loc(#loc3)
)",
               in, flat, kernel, bias) +
           cast_group() +
           fmt::format(R"(      %4:2 = "tpu.Group"(%3) ({{
        %7 = "tpu.Load"(%3) {{{3}}} : ({0}) -> {2} loc(#loc8)
        %8 = "tpu.Load"(%1) {{{4}}} : ({1}) -> tensor<1x8x8x9xi8> loc(#loc9)
        %9 = "tpu.Load"(%2) {{{5}}} : ({9}) -> tensor<1x8x1x1xi32> loc(#loc10)
        %10 = "tpu.Conv2D"(%7, %8, %9) {{{6}, pads = [1, 1, 1, 1]}} : ({2}, tensor<1x8x8x9xi8>, tensor<1x8x1x1xi32>) -> {2} loc(#loc6)
        %11 = "tpu.Store"(%10, %0) {{{7}}} : ({2}, none) -> {10} loc(#loc6)
        %12 = "tpu.Active"(%10) {{{8}, mode = #tpu<active_mode RELU>}} : ({2}) -> {2} loc(#loc7)
)",
                       cast, kernel, local, ginfo(0), ginfo(1), ginfo(2), ginfo(3), ginfo(4),
                       ginfo(5), bias, conv) +
           fmt::format(R"(        %13 = "tpu.Store"(%12, %0) {{{0}}} : ({1}, none) -> {2} loc(#loc7)
        "tpu.Yield"(%11, %13) : ({3}, {2}) -> () loc(#loc15)
      }}) {{flow = [-1, 0, 1, 2, -2, 3, -3, 5, 4, 6], group_type = 0 : i64, other_down_overlap_op = [], other_up_overlap_op = [], self_down_overlap_op = [], self_up_overlap_op = [1]}} : ({4}) -> ({3}, {2}) loc(#loc15)
      %5 = "tpu.Add"(%4#0, %4#1) {{do_relu = false}} : ({3}, {2}) -> {5} loc(#loc11)
      %6 = "tpu.Reshape"(%5) {{flatten_start_dim = -1 : i64, shape = []}} : ({5}) -> {6} loc(#loc12)
      return %6 : {6} loc(#loc)
    }} loc(#loc)
)",
                       ginfo(6), local, relu, conv, cast, sum, flat);
}

std::string second_function() {
    return fmt::format(
        R"(    func.func @subfunc_1(%arg0: {0} loc("flat")) -> {1} attributes {{id = 1 : i64, mode = #tpu<run_mode TPU_STATIC>, next_index = array<i32: -1>}} {{
      %0 = "top.None"() : () -> none loc(#loc)
      %1 = "top.Weight"() : () -> {2} loc(#loc13)
      %2 = "tpu.MatMul"(%arg0, %1, %0) {{do_relu = false}} : ({0}, {2}, none) -> {1} loc(#loc14)
      return %2 : {1} loc(#loc)
    }} loc(#loc)
  }} loc(#loc)
}} loc(#loc)
)",
        flat, logits, matrix);
}

/// The part of a wave that belongs to the name.
NamedArrays::value_type wave(const sophgo::Value& value, bool wrong) {
    std::int64_t count = 1;
    for (const std::int64_t dim : value.shape) count *= dim;
    Array array{ElementType::float32, value.shape, {}};
    array.data.resize(static_cast<std::size_t>(count) * sizeof(float));
    const double phase = static_cast<double>(std::hash<std::string>{}(value.name) % 1000);
    for (std::int64_t i = 0; i < count; ++i) {
        const auto x = static_cast<double>(i);
        const auto number = static_cast<float>(std::sin(phase + 0.1 * x) +
                                               (wrong ? std::cos(3 * phase + 1.7 * x) : 0));
        std::memcpy(&array.data[static_cast<std::size_t>(i) * sizeof(float)], &number,
                    sizeof(number));
    }
    return {value.name, std::move(array)};
}

}  // namespace

std::string demo_network() {
    std::string text = "#loc = loc(unknown)\n#loc1 = loc(\"x\")\n#loc12 = loc(\"flat\")\n";
    text += module_text() + main_text() + first_function() + second_function();
    constexpr std::pair<int, std::string_view> names[] = {
        {2, "kernel"},     {3, "bias"}, {4, "x_i8"},      {5, "load_x"},
        {6, "conv"},       {7, "relu"}, {8, "load_x_i8"}, {9, "load_kernel"},
        {10, "load_bias"}, {11, "sum"}, {13, "matrix"},   {14, "scores"}};
    for (const auto& [number, name] : names)
        text += fmt::format("#loc{} = loc(\"{}\")\n", number, name);
    return text + "#loc15 = loc(fused[#loc6, #loc7])\n\n";
}

NamedArrays demo_tensors(const sophgo::FinalProgram& program, const std::string& fault) {
    NamedArrays out;
    std::set<sophgo::ValueIndex> wrong;
    std::set<std::string> seen, wrong_names;
    const std::function<void(const sophgo::Operator&)> visit = [&](const sophgo::Operator& op) {
        for (const auto& inner : op.body) visit(inner);
        bool is_wrong = false;
        for (const auto operand : op.operands) is_wrong = is_wrong || wrong.contains(operand);
        if (op.is("tpu.Group"))
            for (const auto result : op.results)
                if (wrong_names.contains(program.at(result).name)) wrong.insert(result);
        for (const auto result : op.results) {
            const auto& value = program.at(result);
            const bool here = is_wrong || value.name == fault;
            if (op.is("tpu.Group") || op.is("tpu.Buffer") || op.is("top.Weight") ||
                value.shape.empty())
                continue;
            if (here) wrong.insert(result);
            if (here) wrong_names.insert(value.name);
            if (!op.is("tpu.Load") && seen.insert(value.name).second)
                out.push_back(wave(value, here));
        }
    };
    for (const auto& device : program.devices)
        for (const auto& function : device.functions) {
            if (function.is_main()) continue;
            for (const auto argument : function.arguments)
                if (wrong_names.contains(program.at(argument).name)) wrong.insert(argument);
            for (const auto& op : function.operators) visit(op);
        }
    return out;
}

}  // namespace reef::tool
