#include "edgetpu/package/small_packages.h"

#include <flatbuffers/flexbuffers.h>

namespace reef::edgetpu::test {
namespace {

SharedBytes bytes_of(std::size_t size, unsigned first) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(first + i);
    return SharedBytes::copy_of(bytes);
}

Executable caching() {
    Executable executable;
    executable.type = ExecutableType::parameter_caching;
    executable.name = "caching";
    executable.chip = "beagle";
    executable.parameter_caching_token = 0x8123456789abcdefU;
    executable.batch_size = 1;
    executable.parameters = bytes_of(100, 3);
    executable.bitstreams = {{bytes_of(32, 1), {}}};
    executable.dma_hints = DmaHints{
        {{InstructionHint{0}, Direction::infeed},
         {DmaDescriptorHint{{BaseAddress::parameter, 0, "", AddressHalf::lower_32_bits}, 0, 100},
          Direction::infeed},
         {InterruptHint{0}, Direction::outfeed}},
        true};
    return executable;
}

Layer input_layer() {
    Layer layer;
    layer.name = "image";
    layer.size_bytes = 24;
    layer.y_dim = 2;
    layer.x_dim = 3;
    layer.z_dim = 4;
    layer.numerics = Numerics{127, 0.5F};
    layer.data_type = DataType::fixed_point8;
    layer.kind = InputLayer{};
    return layer;
}

Layer output_layer() {
    Layer layer = input_layer();
    layer.name = "scores";
    layer.data_type = DataType::signed_fixed_point8;
    layer.executions_per_inference = 2;
    layer.cache_on_dram = true;
    layer.shape = TensorShape{{0, 0}, {0, 1}, {0, 2}, {0, 3}};
    OutputLayer output;
    output.data_type = DataType::fixed_point16;
    output.layout = OutputLayout{{0, 1}, {0, 0, 0}, {0, 12}, {0, 4, 8}, {0, 0}, {12, 12, 12}};
    output.shape_info =
        OutputShapeInfo{{{TensorShape{{0, 1}}, {1, 2}}, {std::nullopt, {}}}, {0, 8}};
    layer.kind = output;
    return layer;
}

Executable execution() {
    Executable executable = caching();
    executable.type = ExecutableType::execution_only;
    executable.name = "model";
    executable.version = 5;
    executable.scratch_size_bytes = 64;
    executable.used_narrow_memory_bytes_per_tile = 1234;
    executable.estimated_cycles = 99;
    executable.estimated_cycles_64bit = std::int64_t{1} << 40;
    executable.use_tpu_dram_for_parameters = true;
    executable.serialized_model = bytes_of(7, 9);
    const Meta meta{BaseAddress::input_activation, 1, "image", AddressHalf::upper_32_bits};
    executable.bitstreams = {{bytes_of(64, 2), {{meta, 20}, {{}, 480}}}, {bytes_of(16, 7), {}}};
    executable.dma_hints->hints.push_back({InstructionHint{1}, Direction::infeed});
    executable.dma_hints->hints.push_back({DmaDescriptorHint{meta, 4, 20}, Direction::infeed});
    executable.dma_hints->hints.push_back({FenceHint{}, Direction::infeed});
    executable.dma_hints->hints.push_back({std::monostate{}, Direction::outfeed});
    executable.inputs = {input_layer(), Layer{}};
    executable.outputs = {output_layer()};
    return executable;
}

}  // namespace

Package rich_package() {
    Package package;
    package.min_runtime_version = 14;
    package.compiler_version = "16.0";
    package.keypair_version = 2;
    package.virtual_chip_id = 3;
    package.model_identifier = "rich";
    package.signature = bytes_of(5, 40);
    package.executables = {execution(), caching()};
    return package;
}

Package two_chip_package() {
    Package package;
    package.compiler_version = "16.0";
    package.multi_chip.resize(2);
    package.multi_chip[1] = rich_package();
    return package;
}

model::Operator compiled_operator(const Package& package) {
    const auto bytes = write_package(package).value();
    flexbuffers::Builder builder;
    builder.Map([&] {
        builder.Int("1", 0);
        builder.Key("4");
        builder.String(std::string(as_text(bytes)));  // copies a terminating zero, too
        builder.Int("5", -1);
        builder.Vector("6", [&] { builder.Int(18); });
        builder.Vector("7", [] {});
    });
    builder.Finish();
    model::Operator op;
    op.code.custom = std::string(custom_operator_name);
    op.custom_options = SharedBytes::copy_of(std::as_bytes(std::span(builder.GetBuffer())));
    return op;
}

}  // namespace reef::edgetpu::test
