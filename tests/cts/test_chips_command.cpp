// The reef command with the chips that only the tests have.
#include "command_line.h"
#include "reef/runtime/registry.h"

namespace reef::runtime {
void enrol_test_chips(Registry& registry);
}

int main(int argc, char** argv) {
    reef::runtime::enrol_test_chips(reef::runtime::Registry::of_process());
    return reef::tool::run_command(argc, argv);
}
