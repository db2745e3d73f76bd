#include "support/shared_data.h"

#include <algorithm>
#include <cstdlib>

namespace reef::test {

std::optional<std::filesystem::path> shared_folder() {
    const char* given = std::getenv("REEF_SHARED");
    const std::filesystem::path folder = given != nullptr ? given : REEF_DEFAULT_SHARED;
    std::error_code error;
    if (!std::filesystem::is_directory(folder / "data", error)) return std::nullopt;
    return folder;
}

bool shared_required() {
    const char* value = std::getenv("REEF_REQUIRE_SHARED");
    return value != nullptr && std::string(value) == "1";
}

std::vector<std::filesystem::path> shared_files(const std::string& folder,
                                                const std::string& ending) {
    std::vector<std::filesystem::path> files;
    const auto root = shared_folder();
    if (!root) return files;
    for (const auto& entry : std::filesystem::directory_iterator(*root / folder)) {
        if (entry.path().filename().string().ends_with(ending)) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace reef::test
