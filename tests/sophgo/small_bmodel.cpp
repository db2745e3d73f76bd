#include "sophgo/small_bmodel.h"

#include <algorithm>
#include <cstring>

#include "reef/base/sha256.h"

namespace reef::sophgo {
namespace {

constexpr std::size_t section_bytes = 5 * 4096, header_bytes = 64;

std::byte pattern(std::size_t at) {
    return static_cast<std::byte>((at * 7 + at / 251) & 0xff);
}

std::unique_ptr<schema::TensorT> tensor_of(const char* name, std::uint64_t address) {
    auto tensor = std::make_unique<schema::TensorT>();
    tensor->name = name;
    tensor->data_type = 2;
    tensor->device_addr = address;
    tensor->size = 48;
    tensor->scale = 0.5F;
    auto shape = std::make_unique<schema::ShapeT>();
    shape->dim = {1, 3, 4, 4};
    tensor->shape.push_back(std::move(shape));
    return tensor;
}

std::unique_ptr<schema::CmdGroupT> group_of() {
    auto group = std::make_unique<schema::CmdGroupT>();
    group->bdc_num = 3;
    group->gdma_num = 2;
    group->binary_bdc = std::make_unique<schema::Binary>(0, 4096);
    group->binary_gdma = std::make_unique<schema::Binary>(4096, 96);
    return group;
}

}  // namespace

schema::ModelT small_bmodel_tables() {
    schema::ModelT model;
    model.type = "B";
    model.version = "2.2";
    model.time = "Mon Jan  1 00:00:00 2024\n";
    model.chip = "BM1684X";
    auto net = std::make_unique<schema::NetT>();
    net->name = "small";
    auto stage = std::make_unique<schema::NetParameterT>();
    stage->input_tensor.push_back(tensor_of("in", 0x100004000));
    stage->output_tensor.push_back(tensor_of("out", 0x100005000));
    stage->ctx_addr = 0x100004000;
    stage->ctx_size = 8192;
    stage->cmd_group.push_back(group_of());
    stage->coeff_mem = std::make_unique<schema::CoeffMemT>();
    stage->coeff_mem->address = 0x100000000;
    stage->coeff_mem->binary_coeff = std::make_unique<schema::Binary>(8192, 4096);
    std::vector<std::byte> coefficients;
    for (std::size_t i = 0; i < 4096; ++i) coefficients.push_back(pattern(8192 + i));
    const Sha256 digest = sha256(coefficients);
    stage->coeff_mem->check_code.assign(digest.begin(), digest.end());
    auto subnet = std::make_unique<schema::SubNetT>();
    subnet->cmd_group.push_back(group_of());
    stage->sub_net.push_back(std::move(subnet));
    net->parameter.push_back(std::move(stage));
    model.net.push_back(std::move(net));
    model.kernel_module = std::make_unique<schema::KernelModuleT>();
    model.kernel_module->file_name = "lib.so";
    model.kernel_module->binary = std::make_unique<schema::Binary>(12288, 8192);
    return model;
}

std::vector<std::byte> bmodel_file(const schema::ModelT& tables, std::size_t binary_bytes,
                                   std::uint64_t claimed) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(schema::Model::Pack(builder, &tables));
    return bmodel_file(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())),
                       binary_bytes, claimed);
}

std::vector<std::byte> bmodel_file(Bytes flatbuffer, std::size_t binary_bytes,
                                   std::uint64_t claimed) {
    // New writers fill up so that the section is aligned.
    const std::size_t table_bytes =
        (flatbuffer.size() + header_bytes + 4095) / 4096 * 4096 - header_bytes;
    std::vector<std::byte> file(header_bytes + table_bytes + binary_bytes);
    const auto put = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
        std::memcpy(&file[at], &value, bytes);
    };
    put(0, 0xff55aaee, 4);
    put(4, header_bytes, 4);
    put(8, table_bytes, 4);
    put(12, claimed, 8);
    std::ranges::copy(flatbuffer, &file[header_bytes]);
    for (std::size_t i = 0; i < binary_bytes; ++i)
        file[header_bytes + table_bytes + i] = pattern(i);
    return file;
}

std::vector<std::byte> small_bmodel() {
    return bmodel_file(small_bmodel_tables(), section_bytes, section_bytes);
}

}  // namespace reef::sophgo
