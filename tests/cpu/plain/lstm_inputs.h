// The inputs of UNIDIRECTIONAL_SEQUENCE_LSTM without CIFG, peephole connections, a projection and
// layer normalisation, where the format has them.
#pragma once

#include <array>
#include <vector>

#include "cpu/plain/operator_case.h"

namespace reef::plain {

/// By gate: input, forget, cell, output.
struct LstmConstants {
    std::array<Values, 4> input, recurrent, bias;
};

[[nodiscard]] inline std::vector<Values> lstm_inputs(const Values& in, const LstmConstants& gates,
                                                     const Values& output_state,
                                                     const Values& cell_state) {
    std::vector<Values> inputs = {in};
    inputs.insert(inputs.end(), gates.input.begin(), gates.input.end());
    inputs.insert(inputs.end(), gates.recurrent.begin(), gates.recurrent.end());
    inputs.insert(inputs.end(), 3, absent());
    inputs.insert(inputs.end(), gates.bias.begin(), gates.bias.end());
    inputs.insert(inputs.end(), 2, absent());
    inputs.insert(inputs.end(), {output_state, cell_state});
    inputs.insert(inputs.end(), 4, absent());
    return inputs;
}

}  // namespace reef::plain
