#include "final_mlir/demo.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "final_mlir/bisection_run.h"
#include "final_mlir/demo_network.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "reef/base/file.h"
#include "reef/sophgo/bisect.h"
#include "reef/sophgo/final_engine.h"

namespace reef::tool {
namespace {

constexpr std::string_view planted = "relu";

struct FinalDemo {
    std::string text;
    NamedArrays reference, actual;
    std::size_t compared = 0;
    std::string wrong_kind, wrong_name;  ///< of the first wrong operator
    std::vector<std::string> at;         ///< where it is cut out
    sophgo::Cut cut;
};

struct DemoFiles {
    std::string network, reference, actual, cut;
};

Result<FinalDemo> find_planted() {
    const sophgo::FinalEngine* engine = REEF_TRY(sophgo::final_engine());
    FinalDemo demo;
    demo.text = demo_network();
    const auto program = REEF_TRY(engine->read(demo.text));
    demo.reference = demo_tensors(program, {});
    demo.actual = demo_tensors(program, std::string(planted));
    const auto found = REEF_TRY(sophgo::bisect(program, demo.reference, demo.actual, {}));
    if (!found.first_wrong) return fail(Cause::bad_input, "the planted fault was not found");
    const auto& first = found.tensors[*found.first_wrong];
    demo.compared = found.compared;
    demo.wrong_kind = first.op->kind;
    demo.wrong_name = program.at(first.value).name;
    demo.at = sophgo::units_of(program)[first.unit].names;
    sophgo::CutRequest request;
    request.at = demo.at;
    demo.cut = REEF_TRY(engine->cut(demo.text, request));
    return demo;
}

Result<DemoFiles> write_demo(const FinalDemo& demo, const std::string& folder) {
    const SignalsWait wait;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(Cause::io_failed, error.message(), folder);
    const auto path = [&](const char* name) {
        return (std::filesystem::path(folder) / name).string();
    };
    DemoFiles files{path("small_final.mlir"), path("reference.npz"), path("actual.npz"),
                    path("cut.mlir")};
    const auto reference = REEF_TRY(write_npz(demo.reference, Compression::stored));
    const auto actual = REEF_TRY(write_npz(demo.actual, Compression::stored));
    REEF_CHECK(write_files(std::vector<NamedContents>{{files.network, as_bytes(demo.text)},
                                                      {files.reference, reference},
                                                      {files.actual, actual},
                                                      {files.cut, as_bytes(demo.cut.text)}}));
    return files;
}

std::string bisect_command(const DemoFiles& files) {
    return fmt::format("reef bisect {} --reference {} --actual {}", shell_quoted(files.network),
                       shell_quoted(files.reference), shell_quoted(files.actual));
}

void print_demo(Console& console, const FinalDemo& demo, const DemoFiles& files) {
    console.print(
        "A network of {} tensors whose {} was given wrong numbers: {}, reference.npz, "
        "actual.npz\n\n"
        "The first wrong operator is {} {}\n",
        demo.compared, planted, printable(files.network), demo.wrong_kind, demo.wrong_name);
    console.print("  found by   {}\n  cut out by {}\n\n", bisect_command(files),
                  cut_command(files.network, demo.at));
    for (const std::string& note : demo.cut.notes) console.print("  {}\n", printable(note));
    console.write(demo.cut.text);
}

void print_demo_json(Console& console, const FinalDemo& demo, const DemoFiles& files) {
    Json document = json_document("demo");
    document["tensors"] = demo.compared;
    document["fault"] = planted;
    document["first_wrong"] = {{"name", demo.wrong_name}, {"operator", demo.wrong_kind}};
    document["bisect"] = bisect_command(files);
    document["cut"] = cut_command(files.network, demo.at);
    document["notes"] = demo.cut.notes;
    document["files"] = {files.network, files.reference, files.actual, files.cut};
    print_json(console, document);
}

}  // namespace

Status run_final_demo(const std::string& folder, bool json, Console& console) {
    const FinalDemo demo = REEF_TRY(find_planted());
    const DemoFiles files = REEF_TRY(write_demo(demo, folder));
    if (json)
        print_demo_json(console, demo, files);
    else
        print_demo(console, demo, files);
    return {};
}

}  // namespace reef::tool
