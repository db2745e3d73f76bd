// Sophgo's kinds of files among the chips of a build. There is no device to run on.
#include "reef/runtime/registry.h"
#include "sophgo/bmodel/parts.h"
#include "sophgo/final/parts.h"

namespace reef::sophgo {

void enrol(runtime::Registry& registry);

void enrol(runtime::Registry& registry) {
    registry.add_part<chip::FileInspector>(bmodel_inspector());
    registry.add_part<chip::FileChecker>(bmodel_checker());
    registry.add_part<chip::FileComparer>(bmodel_comparer());
    registry.add_part<chip::FileExtractor>(bmodel_extractor());
    registry.add_part<chip::FileInspector>(cvimodel_inspector());
    registry.add_part<chip::FileChecker>(cvimodel_checker());
    registry.add_part<chip::FileInspector>(final_inspector());
    registry.add_part<chip::FileChecker>(final_checker());
}

}  // namespace reef::sophgo
