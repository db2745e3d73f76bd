#include "program_data.h"

#include <gtest/gtest.h>

#include "reef/base/file.h"
#include "support/shared_data.h"

namespace reef::edgetpu::test {

std::vector<ProgramFile> program_files() {
    std::vector<ProgramFile> out;
    const std::pair<std::string, std::string> places[] = {
        {"data/models", "_edgetpu.tflite"},
        {"data/edgetpu/templates", "_edgetpu.tflite"},
        {"data/edgetpu/programs", ".coral"}};
    for (const auto& [folder, ending] : places) {
        for (const auto& path : reef::test::shared_files(folder, ending)) {
            auto bytes = read_file(path.string());
            EXPECT_TRUE(bytes) << path;
            if (!bytes) continue;
            auto programs = tool::programs_of(*bytes);
            EXPECT_TRUE(programs) << path << ": " << programs.error().message();
            if (programs) out.push_back({path.filename().string(), *bytes, std::move(*programs)});
        }
    }
    return out;
}

}  // namespace reef::edgetpu::test
