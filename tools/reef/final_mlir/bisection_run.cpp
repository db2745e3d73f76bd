#include "final_mlir/bisection_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "outputs/console.h"
#include "outputs/work_folder.h"
#include "reef/base/file.h"
#include "reef/sophgo/final_engine.h"

namespace reef::tool {
namespace {

std::string with_place(std::string command, std::string_view placeholder, const std::string& path) {
    for (auto at = command.find(placeholder); at != std::string::npos;
         at = command.find(placeholder, at + path.size()))
        command.replace(at, placeholder.size(), path);
    return command;
}

/// The code generator looks for the weights beside its input.
void link_weights(const std::string& file, const std::string& weights, const std::string& folder) {
    std::error_code error;
    const auto from =
        std::filesystem::absolute(std::filesystem::path(file).parent_path() / weights, error);
    if (!weights.empty() && std::filesystem::exists(from, error))
        std::filesystem::create_symlink(from, std::filesystem::path(folder) / from.filename(),
                                        error);
}

}  // namespace

std::string shell_quoted(std::string_view text) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:,+=@%";
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos)
        return std::string(text);
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string cut_command(const std::string& file, const std::vector<std::string>& names) {
    return fmt::format("reef cut {} --at {} -o cut.mlir", shell_quoted(file),
                       shell_quoted(fmt::format("{}", fmt::join(names, ","))));
}

Result<std::optional<WrongUnit>> BisectionRun::narrow_down() {
    const auto folder = REEF_TRY(WorkFolder::make("bisect"));
    link_weights(file, program.weight_file, folder.path());
    const auto units = sophgo::units_of(program);
    // Halving asks of each end of the network, then about log2 of what is left, then of a group's
    // results.
    Progress progress("bisecting");
    const double expected = 3 + std::log2(1 + static_cast<double>(units.size()));
    const auto ask = [&](const sophgo::Unit& unit) {
        const double done = static_cast<double>(steps.size());
        progress.update(done / (done + expected));
        return is_wrong(unit, folder.path());
    };
    const auto found = REEF_TRY(sophgo::first_wrong_unit(units, ask));
    if (!found) return std::optional<WrongUnit>{};
    const sophgo::Unit& unit = units[*found];
    return WrongUnit{unit, REEF_TRY(sophgo::suspects_in(program, unit, ask))};
}

Result<bool> BisectionRun::is_wrong(const sophgo::Unit& unit, const std::string& folder) {
    const sophgo::FinalEngine* engine = REEF_TRY(sophgo::final_engine());
    sophgo::CutRequest request;
    request.at = unit.names;
    const auto cut = REEF_TRY(engine->cut(text, request));
    const std::string mlir = folder + "/cut.mlir", npz = folder + "/outputs.npz";
    REEF_CHECK(write_file(mlir, as_bytes(cut.text)));
    std::error_code error;
    std::filesystem::remove(npz, error);
    const bool judges = command.find("{npz}") != std::string::npos;
    const std::string line = with_place(with_place(command, "{mlir}", mlir), "{npz}", npz);
    const int code = REEF_TRY(run_program({"/bin/sh", "-c", line}));
    if (code != 0 && (judges || code != 1))
        return fail(Cause::io_failed,
                    // A shell's word for a signal; 255 is what ssh and others end with.
                    code > 128 && code < 193 ? std::string("the command was ended by a signal")
                                             : fmt::format("the command ended with {}", code),
                    "--run",
                    judges ? "0 says that the outputs are in {npz}" : "0 says right, 1 wrong");
    const bool wrong = judges ? REEF_TRY(differs(npz, unit.names)) : code == 1;
    steps.emplace_back(unit.names, wrong);
    return wrong;
}

Result<bool> BisectionRun::differs(const std::string& npz, const std::vector<std::string>& names) {
    std::error_code error;
    if (!std::filesystem::exists(npz, error))
        return fail(Cause::not_found, "the command ended with 0, but wrote no {npz}", "--run",
                    "let it write its outputs there, or leave {npz} out and end with 1 for wrong");
    const SharedBytes bytes = REEF_TRY(read_file(npz));
    const NamedArrays actual = REEF_TRY(in_place(read_npz(bytes.view()), npz));
    bool wrong = false;
    for (const std::string& name : names) {
        const auto named = [&](const auto& one) { return one.first == name; };
        const auto is = std::ranges::find_if(actual, named);
        const auto should = std::ranges::find_if(reference, named);
        if (is == actual.end() || should == reference.end())
            return fail(Cause::not_found, fmt::format("'{}' is missing", name),
                        is == actual.end() ? "the command's outputs" : "--reference");
        const auto value = std::ranges::find(program.values, name, &sophgo::Value::name);
        const auto numbers = sophgo::similarity(should->second, is->second, *value);
        wrong = wrong || !numbers || !numbers->within(tolerance);
    }
    return wrong;
}

}  // namespace reef::tool
