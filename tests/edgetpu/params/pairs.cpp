#include "edgetpu/params/pairs.h"

#include <filesystem>
#include <string_view>

#include "support/shared_data.h"

namespace reef::test {
namespace {

std::vector<CompiledPair> pairs_in(const std::vector<std::string>& folders) {
    std::vector<CompiledPair> found;
    for (const std::string& folder : folders) {
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

}  // namespace

std::vector<CompiledPair> compiled_pairs() {
    return pairs_in({"data/models", "data/edgetpu/templates"});
}

std::vector<CompiledPair> wild_pairs() {
    return pairs_in({"data/edgetpu/wild"});
}

}  // namespace reef::test
