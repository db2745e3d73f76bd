#include "edgetpu/compiler/runtime_version.h"

#include <fmt/format.h>

#include <charconv>

#include "edgetpu/compiler/settings.h"
#include "reef/edgetpu/compiler.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t with_signed_values = 12, with_streamed_parameters = 12,
                       with_scratch_memory = 14;

void add(RuntimeNeed& need, std::int32_t version, std::string what) {
    if (version > need.version) need = {version, std::move(what)};
}

}  // namespace

Result<std::int32_t> runtime_version_of(const chip::CompileOptions& options) {
    const auto given = options.settings.find(std::string(setting::runtime_version));
    if (given == options.settings.end()) return newest_runtime;
    const std::string& text = given->second;
    std::int32_t version = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), version);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() ||
        version < oldest_runtime || version > newest_runtime)
        return fail(Cause::bad_argument, fmt::format("programs for runtime version '{}'", text),
                    std::string(setting::runtime_version),
                    fmt::format("give one of {} to {}", oldest_runtime, newest_runtime));
    return version;
}

RuntimeNeed needed_runtime(const Package& package) {
    RuntimeNeed need;
    for (const Executable& e : package.executables) {
        if (e.scratch_size_bytes != 0)
            add(need, with_scratch_memory, "tensors in the host's scratch memory");
        for (const auto* layers : {&e.inputs, &e.outputs})
            for (const Layer& layer : *layers)
                if (layer.data_type != DataType::fixed_point8)
                    add(need, with_signed_values, fmt::format("signed values of '{}'", layer.name));
        if (e.type == ExecutableType::execution_only && e.parameters.size() != 0)
            add(need, with_streamed_parameters, "parameters that come with every inference");
    }
    return need;
}

Status check_runtime(const Package& package) {
    const RuntimeNeed need = needed_runtime(package);
    if (need.version <= package.min_runtime_version) return {};
    return fail(Cause::unsupported,
                fmt::format("{} are known of runtime version {} and newer ones, not of {}",
                            need.what, need.version, package.min_runtime_version),
                {}, fmt::format("ask for runtime version {}", need.version));
}

}  // namespace reef::edgetpu::lowering

namespace reef::edgetpu {

std::vector<std::string> runtime_versions() {
    std::vector<std::string> names;
    for (std::int32_t v = lowering::oldest_runtime; v <= lowering::newest_runtime; ++v)
        names.push_back(std::to_string(v));
    return names;
}

}  // namespace reef::edgetpu
