#include "final_mlir/demo.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "final_mlir/bisection_run.h"
#include "final_mlir/demo_network.h"
#include "outputs/file_output.h"
#include "reef/base/file.h"
#include "reef/sophgo/bisect.h"
#include "reef/sophgo/final_engine.h"

namespace reef::tool {

Status run_final_demo(const std::string& folder, Console& console) {
    constexpr std::string_view fault = "relu";
    const sophgo::FinalEngine* engine = REEF_TRY(sophgo::final_engine());
    const std::string text = demo_network();
    const auto program = REEF_TRY(engine->read(text));
    const NamedArrays reference = demo_tensors(program, {});
    const NamedArrays actual = demo_tensors(program, std::string(fault));
    const auto found = REEF_TRY(sophgo::bisect(program, reference, actual, {}));
    if (!found.first_wrong) return fail(Cause::bad_input, "the planted fault was not found");
    const auto& first = found.tensors[*found.first_wrong];
    const auto units = sophgo::units_of(program);
    sophgo::CutRequest request;
    request.at = units[first.unit].names;
    const auto cut = REEF_TRY(engine->cut(text, request));

    const SignalsWait wait;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(Cause::io_failed, error.message(), folder);
    const auto reference_file = REEF_TRY(write_npz(reference, Compression::stored));
    const auto actual_file = REEF_TRY(write_npz(actual, Compression::stored));
    const std::filesystem::path out(folder);
    const std::string network = (out / "small_final.mlir").string();
    REEF_CHECK(
        write_files(std::vector<NamedContents>{{network, as_bytes(text)},
                                               {(out / "reference.npz").string(), reference_file},
                                               {(out / "actual.npz").string(), actual_file},
                                               {(out / "cut.mlir").string(), as_bytes(cut.text)}}));
    console.print(
        "A network of {} tensors whose {} was given wrong numbers: {}, reference.npz, "
        "actual.npz\n\n"
        "The first wrong operator is {} {}\n",
        found.compared, fault, printable(network), first.op->kind, program.at(first.value).name);
    console.print("  found by   reef bisect {0} --reference {1} --actual {2}\n  cut out by {3}\n\n",
                  shell_quoted(network), shell_quoted((out / "reference.npz").string()),
                  shell_quoted((out / "actual.npz").string()), cut_command(network, request.at));
    for (const std::string& note : cut.notes) console.print("  {}\n", printable(note));
    console.write(cut.text);
    return {};
}

}  // namespace reef::tool
