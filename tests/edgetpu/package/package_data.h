// The compiled models of the reference data.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reef/edgetpu/package.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::test {

/// data/models and data/edgetpu/templates; empty without the reference data.
[[nodiscard]] inline std::vector<std::filesystem::path> compiled_files() {
    auto files = reef::test::shared_files("data/models", "_edgetpu.tflite");
    const auto templates = reef::test::shared_files("data/edgetpu/templates", "_edgetpu.tflite");
    files.insert(files.end(), templates.begin(), templates.end());
    return files;
}

/// The packages of a file; fails the running test when they cannot be read.
[[nodiscard]] inline std::vector<CompiledOperator> packages_in(const std::filesystem::path& path) {
    const auto model = model::load_tflite(path.string());
    EXPECT_TRUE(model) << model.error().message();
    if (!model) return {};
    auto packages = packages_of(*model);
    EXPECT_TRUE(packages) << packages.error().message();
    return packages ? std::move(*packages) : std::vector<CompiledOperator>();
}

}  // namespace reef::edgetpu::test
