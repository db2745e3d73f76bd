#include "command_line.h"

int main(int argc, char** argv) {
    return reef::tool::run_command(argc, argv);
}
