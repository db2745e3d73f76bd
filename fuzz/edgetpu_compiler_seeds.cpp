#include <fmt/format.h>

#include "compiler/random_network.h"
#include "reef/model/tflite.h"
#include "seeds.h"

namespace reef::fuzz {

Result<Seeds> edgetpu_compiler_seeds() {
    Seeds seeds;
    for (unsigned seed = 1; seed <= 30; ++seed)
        seeds.emplace_back(fmt::format("network_{}.tflite", seed),
                           REEF_TRY(model::write_tflite(test::random_network(seed))));
    return seeds;
}

Result<Seeds> edgetpu_weights_seeds() {
    Seeds seeds;
    for (unsigned seed = 1; seed <= 12; ++seed)
        seeds.emplace_back(fmt::format("network_{}.tflite", seed),
                           REEF_TRY(model::write_tflite(test::random_network(seed))));
    for (unsigned seed = 1; seed <= 3; ++seed)
        seeds.emplace_back(fmt::format("recurrent_{}.tflite", seed),
                           REEF_TRY(model::write_tflite(test::random_recurrent_network(seed))));
    return seeds;
}

}  // namespace reef::fuzz
