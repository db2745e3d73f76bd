#include "model/small_models.h"
#include "reef/model/tflite.h"
#include "seeds.h"

namespace reef::fuzz {

Result<Seeds> tflite_seeds() {
    Seeds seeds;
    const model::Model rich = test::rich_model();
    seeds.emplace_back("rich.tflite", REEF_TRY(model::write_tflite(rich)));
    seeds.emplace_back("plain.tflite", REEF_TRY(model::write_tflite(test::plain_model())));
    const Bytes options = rich.subgraphs[0].operators[2].custom_options.view();
    seeds.emplace_back("options.flexbuffer",
                       std::vector<std::byte>(options.begin(), options.end()));
    return seeds;
}

}  // namespace reef::fuzz
