#include "reef/runtime/registry.h"
#include "rk3588/inspect/disassembler.h"

namespace reef::rk3588 {

void enrol(runtime::Registry& registry);

void enrol(runtime::Registry& registry) {
    registry.add_part<chip::Disassembler>(std::make_unique<Disassembler>());
}

}  // namespace reef::rk3588
