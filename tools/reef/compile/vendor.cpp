// The vendor's own compiler, where it is installed.
#include <fmt/format.h>

#include <filesystem>

#include "compile/against.h"
#include "outputs/work_folder.h"

namespace reef::tool {

Result<std::string> compile_with_vendor(const chip::Compiler& compiler, const std::string& model,
                                        const std::string& folder) {
    const auto vendor = compiler.vendor();
    if (!vendor)
        return fail(Cause::unsupported, fmt::format("no compiler of the vendor's is known for '{}'",
                                                    compiler.family()));
    std::vector<std::string> words{std::string(vendor->program)};
    for (const auto word : vendor->arguments) words.emplace_back(word);
    words.push_back(folder);
    words.push_back(model);
    const auto code = run_program(words);
    if (!code && code.error().cause == Cause::not_found)
        return fail(Cause::unsupported, fmt::format("'{}' is not installed", vendor->program), {},
                    std::string(vendor->hint));
    if (!code) return std::unexpected(code.error());
    if (*code != 0)
        return fail(Cause::io_failed, fmt::format("'{}' ended with {}", vendor->program, *code),
                    model);
    const auto stem = std::filesystem::path(model).stem().string();
    const auto made = std::filesystem::path(folder) / (stem + std::string(vendor->suffix));
    std::error_code unknown;
    if (!std::filesystem::exists(made, unknown))
        return fail(Cause::io_failed,
                    fmt::format("'{}' has not written {}", vendor->program, made.string()), model);
    return made.string();
}

}  // namespace reef::tool
