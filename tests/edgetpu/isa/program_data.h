// The Edge TPU programs of the reference data.
#pragma once

#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/runtime/program_streams.h"

namespace reef::edgetpu::test {

struct ProgramFile {
    std::string name;
    SharedBytes bytes;
    std::vector<runtime::ProgramStreams> programs;
};

/// Every compiled model, template and raw stream; fails the running test when one cannot be read.
[[nodiscard]] std::vector<ProgramFile> program_files();
/// The same of compiled models as users publish them, some of which have bits of unknown purpose,
/// and of those whose outputs a stick gave.
[[nodiscard]] std::vector<ProgramFile> wild_program_files();

}  // namespace reef::edgetpu::test
