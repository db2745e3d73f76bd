// Bmodels and cvimodels among the kinds of files that the command knows.
#pragma once

#include <memory>

#include "reef/chip/checker.h"
#include "reef/chip/file_kind.h"

namespace reef::sophgo {

[[nodiscard]] std::unique_ptr<chip::FileInspector> bmodel_inspector();
[[nodiscard]] std::unique_ptr<chip::FileChecker> bmodel_checker();
[[nodiscard]] std::unique_ptr<chip::FileComparer> bmodel_comparer();
[[nodiscard]] std::unique_ptr<chip::FileExtractor> bmodel_extractor();
[[nodiscard]] std::unique_ptr<chip::FileInspector> cvimodel_inspector();
[[nodiscard]] std::unique_ptr<chip::FileChecker> cvimodel_checker();

}  // namespace reef::sophgo
