#include "program_data.h"

#include <gtest/gtest.h>

#include <span>

#include "reef/base/file.h"
#include "support/shared_data.h"

namespace reef::edgetpu::test {

namespace {

using Place = std::pair<std::string, std::string>;  ///< folder, end of the names

std::vector<ProgramFile> files_in(std::span<const Place> places) {
    std::vector<ProgramFile> out;
    for (const auto& [folder, ending] : places) {
        for (const auto& path : reef::test::shared_files(folder, ending)) {
            auto bytes = read_file(path.string());
            EXPECT_TRUE(bytes) << path;
            if (!bytes) continue;
            auto programs = runtime::program_streams_of(*bytes);
            EXPECT_TRUE(programs) << path << ": " << programs.error().message();
            if (programs) out.push_back({path.filename().string(), *bytes, std::move(*programs)});
        }
    }
    return out;
}

}  // namespace

std::vector<ProgramFile> program_files() {
    const Place places[] = {{"data/models", "_edgetpu.tflite"},
                            {"data/edgetpu/templates", "_edgetpu.tflite"},
                            {"data/edgetpu/programs", ".coral"}};
    return files_in(places);
}

std::vector<ProgramFile> wild_program_files() {
    const Place places[] = {{"data/edgetpu/wild", "_edgetpu.tflite"},
                            {"data/edgetpu/silicon", "edgetpu.tflite"}};
    return files_in(places);
}

}  // namespace reef::edgetpu::test
