#include "peers/random_input.h"

#include <algorithm>
#include <random>

namespace reef::peers {

void fill(graph::Executor& executor) {
    std::mt19937 random(1);
    for (std::size_t i = 0; i < executor.input_count(); ++i) {
        const auto input = executor.input(i);
        const auto& graph = executor.graph();
        const auto type = graph.tensors[static_cast<std::size_t>(graph.inputs[i])].type;
        if (type == ElementType::float32) {
            std::uniform_real_distribution<float> value(-1, 1);
            auto* values = reinterpret_cast<float*>(input.data());
            std::generate_n(values, input.size() / sizeof(float), [&] { return value(random); });
        } else {
            std::ranges::generate(input, [&] { return static_cast<std::byte>(random() & 0xFF); });
        }
    }
}

}  // namespace reef::peers
