#include "peers/networks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "peers/known_shapes.h"
#include "reef/model/part.h"
#include "reef/model/tflite.h"

namespace reef::peers {
namespace {

Result<model::Model> load(const std::string& path) {
    if (path.starts_with(shape_prefix)) return network_of_shape(path.substr(shape_prefix.size()));
    return model::load_tflite(path);
}

}  // namespace

std::string name_of_network(const std::string& path) {
    return path.starts_with(shape_prefix) ? path : std::filesystem::path(path).stem().string();
}

Result<Network> load_network(const std::string& path) {
    Network network{name_of_network(path), REEF_TRY(load(path))};
    const auto& operators = network.model.subgraphs[0].operators;
    if (operators.size() < 2 || operators.back().code.builtin != model::Op::custom) return network;
    network.name += fmt::format(" without {}", operators.back().code.name());
    network.model =
        REEF_TRY(model::part_of(network.model, {.first = 0, .count = operators.size() - 1})).model;
    return network;
}

std::vector<std::string> few_shapes() {
    std::vector<std::string> found;
    for (const char* name : {"mobilenet_v1:uint8", "mobilenet_v2:int8", "inception_v1:int8",
                             "resnet50:int8", "efficientnet_edgetpu_s:int8"})
        found.push_back(fmt::format("{}{}", shape_prefix, name));
    return found;
}

std::vector<std::string> known_models() {
    std::vector<std::string> found;
    const char* folder = std::getenv("REEF_SHARED");
    if (folder == nullptr) return found;
    if (!std::filesystem::is_directory(folder)) {
        fmt::print(stderr, "REEF_SHARED: {} is no folder\n", folder);
        return found;
    }
    for (const char* name :
         {"models/mobilenet_v1_0.25_128_quant", "models/mobilenet_v1_0.5_160_quant",
          "edgetpu/wild/rt10__mobilenet_v1_1.0_224_quant_embedding_extractor",
          "models/tf2_mobilenet_v2_1.0_224_ptq", "models/movenet_single_pose_lightning_ptq",
          "models/deeplabv3_mnv2_dm05_pascal_quant",
          "models/posenet_mobilenet_v1_075_353_481_16_quant_decoder",
          "edgetpu/wild/facemesh__face_landmark_192_full_integer_quant",
          "edgetpu/wild/facemesh__face_detection_front_128_full_integer_quant",
          "edgetpu/wild/mot__yolov8n_full_integer_quant",
          "edgetpu/wild/mot__yolov5nu_full_integer_quant",
          "edgetpu/wild/lite640__yolov8n_full_integer_quant"})
        found.push_back(fmt::format("{}/data/{}.tflite", folder, name));
    return found;
}

}  // namespace reef::peers
