#include "edgetpu/sim/copy_program.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

using edgetpu::sim::copy_package;
using edgetpu::sim::copy_program;
using edgetpu::sim::with;

std::vector<std::byte> stream_of(const std::string& text, std::uint8_t mode) {
    const auto package = copy_package(text);
    const Bytes bytes = package.executables[0].bitstreams[0].instructions.view();
    std::vector<std::byte> seed = {std::byte{mode}};
    seed.insert(seed.end(), bytes.begin(), bytes.end());
    return seed;
}

}  // namespace

// Every mode of the target: engine, strictness, full bits, order.
Result<Seeds> edgetpu_simulator_seeds() {
    Seeds seeds;
    const std::string text = copy_program();
    for (std::uint8_t mode = 0; mode < 16; ++mode)
        seeds.emplace_back("copy" + std::to_string(mode), stream_of(text, mode));
    const std::pair<const char*, std::string> variants[] = {
        {"table",
         with(text, "mesh_east tiles=t0 seq=5", "load_table tiles=t0\nmesh_east tiles=t0 seq=5")},
        {"sum", with(text, "mac tiles=t0", "sum tiles=t0")},
        {"max", with(text, "mac tiles=t0", "max tiles=t0")},
        {"deadlock", with(text, "WIDE_TO_NARROW@0>=1+1", "WIDE_TO_NARROW@0>=101+1")},
        {"relay", with(text, "message=15 to_host=1", "message=15")},
        {"loop", with(text, "halt\n", "loop count=3 body=1\nbundle alu=addi(s4,s4,1)\nhalt\n")},
        {"branch", with(text, "halt\n", "branch offset=-1\nhalt\n")},
    };
    for (const auto& [name, variant] : variants)
        for (const std::uint8_t mode : {std::uint8_t{0}, std::uint8_t{3}})
            seeds.emplace_back(name + std::to_string(mode), stream_of(variant, mode));
    return seeds;
}

}  // namespace reef::fuzz
