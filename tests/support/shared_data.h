// The reference data folder (real models and golden tensors), which is not part of the repository.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace reef::test {

/// $REEF_SHARED, or ../shared beside the repository; nothing when that folder does not exist.
[[nodiscard]] std::optional<std::filesystem::path> shared_folder();

/// True when REEF_REQUIRE_SHARED=1: a test that lacks its data then fails instead of skipping.
[[nodiscard]] bool shared_required();

/// Files of a folder below shared_folder() whose names end in `ending`, sorted. Empty without it.
[[nodiscard]] std::vector<std::filesystem::path> shared_files(const std::string& folder,
                                                              const std::string& ending);

}  // namespace reef::test

// First statement of a test that reads reference data: defines `shared`, the folder's path.
#define REEF_SHARED_OR_SKIP(shared)                                                         \
    const auto reef_shared_folder = ::reef::test::shared_folder();                          \
    if (!reef_shared_folder) {                                                              \
        if (::reef::test::shared_required()) FAIL() << "REEF_SHARED has no reference data"; \
        GTEST_SKIP() << "no reference data: set REEF_SHARED to its folder";                 \
    }                                                                                       \
    const std::filesystem::path& shared = *reef_shared_folder
