#include "edgetpu/params/pairs.h"

#include <filesystem>
#include <string_view>

#include "support/shared_data.h"

namespace reef::test {

std::vector<CompiledPair> compiled_pairs() {
    std::vector<CompiledPair> found;
    for (const std::string folder : {"data/models", "data/edgetpu/templates"}) {
        for (const auto& path : shared_files(folder, "_edgetpu.tflite")) {
            std::string name = path.filename().string();
            name.erase(name.size() - std::string_view("_edgetpu.tflite").size());
            const std::string stem = name.substr(0, name.find("_cocompiled_with_"));
            const auto plain = path.parent_path() / (stem + ".tflite");
            if (!std::filesystem::exists(plain)) continue;
            found.push_back({name, plain.string(), path.string()});
        }
    }
    return found;
}

}  // namespace reef::test
