#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/sim/copy_program.h"
#include "reef/edgetpu/transfers.h"
#include "reef/model/tflite.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

using edgetpu::sim::copy_package;
using edgetpu::sim::copy_program;
using edgetpu::sim::with;

std::vector<std::byte> in_mode(std::uint8_t mode, Bytes stream) {
    std::vector<std::byte> seed = {std::byte{mode}};
    seed.insert(seed.end(), stream.begin(), stream.end());
    return seed;
}

std::vector<std::byte> stream_of(const std::string& text, std::uint8_t mode) {
    const auto package = copy_package(text);
    return in_mode(mode, package.executables[0].bitstreams[0].instructions.view());
}

}  // namespace

// Every mode of the target: engine, strictness, full bits, order, twice, both engines.
Result<Seeds> edgetpu_simulator_seeds() {
    Seeds seeds;
    const std::string text = copy_program();
    for (std::uint8_t mode = 0; mode < 64; ++mode)
        seeds.emplace_back("copy" + std::to_string(mode), stream_of(text, mode));
    const std::pair<const char*, std::string> variants[] = {
        {"table",
         with(text, "mesh_east tiles=t0 seq=5", "load_table tiles=t0\nmesh_east tiles=t0 seq=5")},
        {"sum", with(text, "mac tiles=t0", "sum tiles=t0")},
        {"max", with(text, "mac tiles=t0", "max tiles=t0")},
        {"deadlock", with(text, "WIDE_TO_NARROW@0>=1+1", "WIDE_TO_NARROW@0>=101+1")},
        {"relay", with(text, "message=63 to_host=1", "message=63")},
        {"loop", with(text, "halt last=1\n",
                      "loop count=3 body=1\nbundle alu=addi(s4,s4,1)\nhalt last=1\n")},
        {"branch", with(text, "halt last=1\n", "branch offset=-1\nhalt last=1\n")},
    };
    for (const auto& [name, variant] : variants)
        for (const std::uint8_t mode : {std::uint8_t{32}, std::uint8_t{3}})
            seeds.emplace_back(name + std::to_string(mode), stream_of(variant, mode));
    return seeds;
}

// Longer ones would be cut by the target.
Result<Seeds> edgetpu_vendor_seeds(const std::filesystem::path& folder) {
    constexpr std::size_t most_bytes = 1 << 15;
    constexpr std::uint8_t modes[] = {32, 2, 8 + 1};
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename().string().ends_with("_edgetpu.tflite"))
            files.push_back(entry->path());
    }
    if (error) return fail(Cause::io_failed, error.message(), folder.string());
    std::ranges::sort(files);
    Seeds seeds;
    for (const auto& file : files) {
        const auto model = REEF_TRY(model::load_tflite(file.string()));
        for (const auto& custom : REEF_TRY(edgetpu::packages_of(model)))
            for (const auto& executable : custom.package.executables)
                for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
                    const auto stream = REEF_TRY(edgetpu::with_base_addresses(executable, i));
                    if (stream.size() >= most_bytes) continue;
                    for (const auto mode : modes)
                        seeds.emplace_back(
                            fmt::format("{}_{}_{}_{}", file.stem().string(),
                                        edgetpu::to_string(executable.type), i, mode),
                            in_mode(mode, stream));
                }
    }
    return seeds;
}

}  // namespace reef::fuzz
