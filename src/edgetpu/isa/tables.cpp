#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/operators.h"
#include "reef/edgetpu/registers.h"
#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_operators.h"
#include "reef_spec/edgetpu_registers.h"

namespace reef::edgetpu {

static_assert(word_bytes == spec::instruction_set.word_bytes);
static_assert(Space::tile == spec::space::tile && Space::scalar == spec::space::scalar);

const hw::InstructionSet& isa() {
    return spec::instruction_set;
}

std::span<const RegisterInfo> registers() {
    return spec::registers;
}

std::span<const OperatorInfo> operators() {
    return spec::operators;
}

}  // namespace reef::edgetpu
