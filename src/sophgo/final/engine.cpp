#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "reef/sophgo/final_engine.h"

namespace reef::sophgo {
namespace {

constexpr const char* module_name = "reef_sophgo_mlir.so";
constexpr const char* door = "reef_sophgo_final_engine";

/// Where the module may be: a folder that the user names, that of the program, that of its
/// installation.
std::vector<std::filesystem::path> module_places() {
    std::vector<std::filesystem::path> places;
    if (const char* folder = std::getenv("REEF_COMPONENTS")) places.emplace_back(folder);
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error) {
        places.push_back(program.parent_path());
        places.push_back(program.parent_path() / REEF_COMPONENTS);
    }
    return places;
}

Result<const FinalEngine*> load() {
    for (const auto& folder : module_places()) {
        const auto path = folder / module_name;
        std::error_code error;
        if (!std::filesystem::exists(path, error)) continue;
        void* module = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (module == nullptr)
            return fail(
                Cause::io_failed, ::dlerror(), path.string(),
                "install the libraries that it needs (of MLIR: apt-get install libmlir-19)");
        using Door = const FinalEngine*();
        auto* open = reinterpret_cast<Door*>(::dlsym(module, door));
        if (open == nullptr)
            return fail(Cause::io_failed, fmt::format("it has no {}", door), path.string(),
                        "it belongs to another version of Reef");
        return open();
    }
    return fail(Cause::unsupported,
                "final.mlir is read by a module that this build of Reef has not", {},
                "apt-get install libmlir-19-dev llvm-19-dev, then configure and build Reef again");
}

}  // namespace

Result<const FinalEngine*> final_engine() {
    static const Result<const FinalEngine*> engine = load();
    return engine;
}

}  // namespace reef::sophgo
