#include "reef/edgetpu/layer_tensor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <random>

#include "edgetpu/package/package_data.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed = 1) {
    std::mt19937 generator(seed);
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
    return bytes;
}

Layer small_layer(DataType type = DataType::fixed_point8) {
    // 2 x 3 positions of 2 bytes in two tiles; rows of tile 0 hold 2 positions with 4 bytes each,
    // rows of tile 1 one.
    Layer layer;
    layer.name = "small";
    layer.size_bytes = 24;
    layer.y_dim = 2;
    layer.x_dim = 3;
    layer.z_dim = 2;
    layer.data_type = type;
    OutputLayout layout;
    layout.y_to_tile = {0, 0};
    layout.x_to_tile = {0, 0, 1};
    layout.tile_byte_offset = {0, 16};
    layout.x_to_local_byte = {0, 4, 0};
    layout.y_to_local_y = {0, 1};
    layout.x_to_local_row_bytes = {8, 8, 4};
    layer.kind = OutputLayer{.layout = layout, .data_type = type, .shape_info = std::nullopt};
    return layer;
}

std::vector<std::byte> counting(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
    return bytes;
}

std::vector<int> unpacked(const Layer& layer, Bytes wire) {
    const auto unpacker = OutputUnpacker::prepare(layer);
    if (!unpacker) throw std::runtime_error(unpacker.error().message());
    std::vector<std::byte> tensor(unpacker->tensor_bytes());
    unpacker->run(wire, tensor);
    std::vector<std::byte> slow(tensor.size());
    EXPECT_TRUE(unpack_output_by_formula(layer, wire, slow));
    EXPECT_EQ(tensor, slow);
    std::vector<int> numbers;
    for (const std::byte byte : tensor) numbers.push_back(static_cast<int>(byte));
    return numbers;
}

TEST(LayerTensor, TilesAreLaidOutByHand) {
    EXPECT_EQ(unpacked(small_layer(), counting(24)),
              (std::vector<int>{0, 1, 4, 5, 16, 17, 8, 9, 12, 13, 20, 21}));
}

TEST(LayerTensor, SignedElementsHaveTheirTopBitFlipped) {
    EXPECT_EQ(unpacked(small_layer(DataType::signed_fixed_point8), counting(24)),
              (std::vector<int>{128, 129, 132, 133, 144, 145, 136, 137, 140, 141, 148, 149}));
    Layer plain = small_layer(DataType::signed_fixed_point16);
    plain.kind = OutputLayer{};
    EXPECT_EQ(unpacked(plain, counting(24)),
              (std::vector<int>{0,  129, 2,  131, 4,  133, 6,  135, 8,  137, 10, 139,
                                12, 141, 14, 143, 16, 145, 18, 147, 20, 149, 22, 151}));
}

TEST(LayerTensor, InputsArePaddedWithZeros) {
    Layer layer = small_layer(DataType::signed_fixed_point8);
    layer.kind = InputLayer{};
    std::vector<std::byte> wire(16, std::byte{0xff});
    ASSERT_TRUE(pack_input(layer, counting(12), wire));
    EXPECT_EQ(wire[0], std::byte{0x80});
    EXPECT_EQ(wire[11], std::byte{0x8b});
    for (std::size_t i = 12; i < 16; ++i) EXPECT_EQ(wire[i], std::byte{0});
    EXPECT_THAT(pack_input(layer, counting(11), wire).error().message(),
                HasSubstr("11 bytes given, the tensor has 12"));
}

TEST(LayerTensor, WhatIsNotModelledIsRefusedByName) {
    const auto refusal = [](const Layer& layer) {
        const auto unpacker = OutputUnpacker::prepare(layer);
        return unpacker ? std::string("accepted") : unpacker.error().message();
    };
    Layer layer = small_layer();
    layer.executions_per_inference = 4;
    EXPECT_THAT(refusal(layer), HasSubstr("runs 4 times per inference"));
    layer = small_layer(DataType::signed_fixed_point16);
    EXPECT_THAT(refusal(layer), HasSubstr("16-bit elements at 6 positions"));
    layer = small_layer(DataType::bfloat);
    EXPECT_THAT(refusal(layer), HasSubstr("not modelled"));
    layer = small_layer();
    std::get<OutputLayer>(layer.kind).layout->x_to_local_byte[1] = 100;
    EXPECT_THAT(refusal(layer), HasSubstr("position (0, 1) ends at byte 102 of 24"));
    layer = small_layer();
    std::get<OutputLayer>(layer.kind).layout->x_to_tile[2] = 2;
    EXPECT_THAT(refusal(layer), HasSubstr("beyond its 2 tiles"));
    layer = small_layer();
    layer.x_dim = 4;
    EXPECT_THAT(refusal(layer), HasSubstr("does not cover"));
    layer.x_dim = layer.y_dim = layer.z_dim = 1 << 20;
    EXPECT_THAT(refusal(layer), HasSubstr("more than 2 GiB"));
}

TEST(LayerTensor, RandomLayoutsGiveTheFormulasBytes) {
    std::mt19937 generator(7);
    const auto up_to = [&](unsigned most) { return 1 + generator() % most; };
    for (int round = 0; round < 400; ++round) {
        const unsigned tiles_x = up_to(4), tiles_y = up_to(4), width = up_to(6), height = up_to(6);
        const unsigned z = up_to(round % 3 == 0 ? 300 : 40), stride = z + generator() % 5;
        Layer layer;
        layer.y_dim = static_cast<std::int32_t>(tiles_y * height);
        layer.x_dim = static_cast<std::int32_t>(tiles_x * width);
        layer.z_dim = static_cast<std::int32_t>(z);
        layer.data_type = round % 2 ? DataType::fixed_point8 : DataType::signed_fixed_point8;
        OutputLayout layout;
        const auto number = [](unsigned value) { return static_cast<std::int32_t>(value); };
        for (unsigned y = 0; y < tiles_y * height; ++y) {
            layout.y_to_tile.push_back(number(y / height * tiles_x));
            layout.y_to_local_y.push_back(number(y % height));
        }
        for (unsigned x = 0; x < tiles_x * width; ++x) {
            layout.x_to_tile.push_back(number(x / width));
            layout.x_to_local_byte.push_back(number(x % width * stride));
            layout.x_to_local_row_bytes.push_back(number(width * stride));
        }
        for (unsigned tile = 0; tile < tiles_x * tiles_y; ++tile) {
            layout.tile_byte_offset.push_back(number(tile * width * height * stride));
        }
        layer.size_bytes = number(tiles_x * tiles_y * width * height * stride);
        layer.kind =
            OutputLayer{.layout = layout, .data_type = layer.data_type, .shape_info = std::nullopt};
        unpacked(layer, random_bytes(static_cast<std::size_t>(layer.size_bytes)));
    }
}

// -- The maps: for each output element, the byte of the output stream that it comes from ----------

struct Map {
    std::string name;  ///< of the file: MODEL__tN
    std::string model;
    std::size_t tensor;  ///< N, in the compiled model
    Array bytes;         ///< int32
};

std::vector<Map> maps() {
    std::vector<Map> found;
    for (const auto& path : reef::test::shared_files("data/edgetpu/relayout", ".npz")) {
        const std::string name = path.stem().string();
        const auto split = name.rfind("__t");
        auto arrays = read_npz(read_file(path.string())->view());
        if (!arrays) throw std::runtime_error(arrays.error().message());
        found.push_back({.name = name,
                         .model = name.substr(0, split),
                         .tensor = std::stoul(name.substr(split + 3)),
                         .bytes = std::move(arrays->at(0).second)});
    }
    return found;
}

/// The output layer's place in the operator's outputs.
std::size_t layer_of_tensor(const std::filesystem::path& path, std::size_t tensor) {
    const auto model = model::load_tflite(path.string());
    if (!model) throw std::runtime_error(model.error().message());
    const auto packages = packages_of(*model);
    for (const auto& op : *packages) {
        const auto& outputs = model->subgraphs[op.subgraph].operators[op.index].outputs;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (outputs[i] == static_cast<model::TensorIndex>(tensor)) return i;
        }
    }
    throw std::runtime_error(fmt::format("tensor {} is no output of the chip", tensor));
}

TEST(Relayout, EqualsEveryMapOfTheReferenceData) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    std::map<std::string, std::filesystem::path> files;
    for (const auto& path : test::compiled_files()) {
        const std::string stem = path.stem().string();
        files[stem.substr(0, stem.size() - std::string("_edgetpu").size())] = path;
    }
    const auto all = maps();
    ASSERT_EQ(all.size(), 14U);
    for (const Map& map : all) {
        SCOPED_TRACE(map.name);
        ASSERT_TRUE(files.contains(map.model));
        const auto packages = test::packages_in(files[map.model]);
        ASSERT_EQ(packages.size(), 1U);
        const Executable* executable = packages[0].package.find(ExecutableType::execution_only);
        ASSERT_NE(executable, nullptr);
        const auto plan = plan_transfers(*executable);
        ASSERT_TRUE(plan) << plan.error().message();
        const std::size_t index = layer_of_tensor(files[map.model], map.tensor);
        const auto unpacker = OutputUnpacker::prepare(executable->outputs.at(index));
        ASSERT_TRUE(unpacker) << unpacker.error().message();
        ASSERT_EQ(unpacker->tensor_bytes() * sizeof(std::int32_t), map.bytes.data.size());

        // Byte i of the stream is one byte of the number i, in as many rounds as it has bytes.
        std::vector<std::int32_t> places(unpacker->tensor_bytes());
        for (int shift = 0; shift < 24; shift += 8) {
            std::vector<std::byte> stream(plan->stream_bytes(Tag::output_activations));
            for (std::size_t i = 0; i < stream.size(); ++i) {
                stream[i] = static_cast<std::byte>(i >> shift & 0xff);
            }
            const auto layers = cut_output_stream(*plan, stream);
            ASSERT_TRUE(layers) << layers.error().message();
            std::vector<std::byte> tensor(unpacker->tensor_bytes());
            unpacker->run(layers->at(index), tensor);
            for (std::size_t i = 0; i < tensor.size(); ++i) {
                places[i] |= static_cast<std::int32_t>(tensor[i]) << shift;
            }
        }
        EXPECT_EQ(std::memcmp(places.data(), map.bytes.data.data(), map.bytes.data.size()), 0);
    }
}

TEST(Relayout, EveryOutputOfTheReferenceModelsIsUnpackedAsTheFormulaSays) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    std::size_t outputs = 0;
    for (const auto& path : test::compiled_files()) {
        for (const auto& op : test::packages_in(path)) {
            for (const Executable& executable : op.package.executables) {
                for (const Layer& layer : executable.outputs) {
                    SCOPED_TRACE(path.filename().string() + " " + layer.name);
                    unpacked(layer, random_bytes(static_cast<std::size_t>(layer.size_bytes)));
                    ++outputs;
                }
            }
        }
    }
    EXPECT_GE(outputs, 30U);
}

// Detection scores: 1917 rows of 91 classes, each row padded to 92 bytes, in four tiles of 480,
// 479, 479 and 479 rows that follow each other.
TEST(Relayout, RowsOf91ClassesArePaddedTo92Bytes) {
    REEF_SHARED_OR_SKIP(shared);
    const auto packages = test::packages_in(
        shared /
        "data/models/ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2_edgetpu.tflite");
    const Executable* executable = packages.at(0).package.find(ExecutableType::execution_only);
    const Layer* layer = executable->find_output("convert_scores");
    ASSERT_NE(layer, nullptr);
    const auto unpacker = OutputUnpacker::prepare(*layer);
    ASSERT_TRUE(unpacker) << unpacker.error().message();
    const auto wire = random_bytes(static_cast<std::size_t>(layer->size_bytes));
    std::vector<std::byte> tensor(unpacker->tensor_bytes());
    ASSERT_EQ(tensor.size(), 1917U * 91);
    unpacker->run(wire, tensor);
    for (std::size_t row = 0; row < 1917; ++row) {
        ASSERT_EQ(std::memcmp(&tensor[row * 91], &wire[row * 92], 91), 0) << "row " << row;
    }
}

}  // namespace
}  // namespace reef::edgetpu
