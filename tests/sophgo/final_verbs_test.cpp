// The command on final.mlir and bmodels, as users call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "final_mlir/demo_network.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "sophgo/small_bmodel.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace reef::tool {
namespace {

using testing::HasSubstr;

class FinalVerbs : public testing::Test {
  protected:
    FinalVerbs() { EXPECT_TRUE(write_file(net, as_bytes(demo_network()))); }

    static test::ProcessResult reef(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), REEF_COMMAND);
        return test::run_process(arguments);
    }
    static std::string text(std::vector<std::string> arguments, int code = 0) {
        const auto result = reef(std::move(arguments));
        EXPECT_EQ(result.exit_code, code) << result.err;
        return result.out;
    }
    [[nodiscard]] std::string file(const std::string& name) const { return folder.file(name); }

    test::TemporaryFolder folder;
    std::string net = folder.file("net_final.mlir");
};

TEST_F(FinalVerbs, InspectAndCheck) {
    const std::string told = text({"inspect", net});
    for (const char* words :
         {"chip           bm1684x", "tpu.Group of 8", "coefficients   [0x100000000",
          "input          x, 1x8x4x4xf32 at 0x100004000"})
        EXPECT_THAT(told, HasSubstr(words));
    EXPECT_THAT(text({"inspect", net, "--json"}), HasSubstr("\"address\": 4294983680"));
    EXPECT_THAT(text({"check", net}), HasSubstr("final.mlir: no fault\n"));
    EXPECT_EQ(reef({"check", net, "--target", "edgetpu"}).exit_code, 2);
}

TEST_F(FinalVerbs, CutWithWeights) {
    NamedArrays weights;
    for (const char* name : {"kernel", "bias", "matrix"})
        weights.emplace_back(name, Array{ElementType::uint8, {1}, {std::byte{1}}});
    EXPECT_TRUE(write_file(file("w.npz"), write_npz(weights, Compression::stored).value()));
    const std::string told = text({"cut", net, "--at", "conv", "-o", file("cut.mlir"), "--weights",
                                   file("w.npz"), "--out-weights", file("cut_w.npz")});
    EXPECT_THAT(told, HasSubstr("'relu' is no longer stored"));
    EXPECT_THAT(told, HasSubstr("output  conv, 1x8x4x4x!quant.uniform<i8:f32, 5.000000e-01> at "
                                "0x100006000"));
    EXPECT_THAT(told, testing::Not(HasSubstr("is not there")));
    const auto kept = read_npz(read_file(file("cut_w.npz")).value().view()).value();
    ASSERT_EQ(kept.size(), 2U);
    EXPECT_EQ(kept[1].first, "bias");
    EXPECT_THAT(std::string(as_text(read_file(file("cut.mlir")).value().view())),
                HasSubstr("module.weight_file = \"cut_w.npz\""));
    EXPECT_THAT(text({"check", file("cut.mlir")}), HasSubstr("no fault"));
    EXPECT_THAT(text({"cut", net, "--at", "conv", "-o", "-"}), testing::StartsWith("#loc = loc("));
    EXPECT_THAT(
        text({"cut", net, "--at", "conv", "-o", file("cut.mlir")}),
        HasSubstr("reads the weights from " + file("small_weight.npz") + ", which is not there"));
    // A weight that the network still reads is missing.
    weights.erase(weights.begin() + 1);
    EXPECT_TRUE(write_file(file("w.npz"), write_npz(weights, Compression::stored).value()));
    const auto missing = reef({"cut", net, "--at", "conv", "-o", file("none.mlir"), "--weights",
                               file("w.npz"), "--out-weights", file("none.npz")});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_THAT(missing.err, HasSubstr("the network reads the weight 'bias', which is not there"));
    EXPECT_FALSE(std::filesystem::exists(file("none.mlir")));
}

/// What is not known is refused with what is, and nothing else loads the module with MLIR.
TEST_F(FinalVerbs, OnlyFinalMlirLoadsTheModule) {
    EXPECT_TRUE(write_file(file("odd"), as_bytes(std::string_view("of no kind"))));
    for (const char* verb : {"inspect", "check"}) {
        const auto refused = reef({verb, file("odd")});
        EXPECT_EQ(refused.exit_code, 1);
        EXPECT_THAT(refused.err, HasSubstr("a file of a kind that is not known (kinds that are "
                                           "known: TFLite model, "));
        EXPECT_THAT(refused.err, HasSubstr("bmodel, cvimodel and final.mlir"));
    }
    EXPECT_TRUE(write_file(file("reef_sophgo_mlir.so"), as_bytes(std::string_view("no library"))));
    EXPECT_TRUE(write_file(file("a.bmodel"), sophgo::small_bmodel()));
    const test::ProcessOptions broken{.environment = {"REEF_COMPONENTS=" + folder.path().string()}};
    const auto run = [&](const char* verb, const std::string& path) {
        return test::run_process({REEF_COMMAND, verb, path}, broken);
    };
    EXPECT_EQ(run("inspect", file("a.bmodel")).exit_code, 0);
    EXPECT_EQ(run("check", file("a.bmodel")).exit_code, 0);
    const auto loaded = run("inspect", net);
    EXPECT_EQ(loaded.exit_code, 1);
    EXPECT_THAT(loaded.err, HasSubstr("reef_sophgo_mlir.so"));
}

/// As a build without MLIR leaves the command.
TEST_F(FinalVerbs, WithoutTheModuleBmodelsAreRead) {
    const std::string alone = file("reef");
    const test::ProcessOptions nowhere{.environment = {"REEF_COMPONENTS=" + file("nowhere")}};
    std::filesystem::copy_file(REEF_COMMAND, alone);
    EXPECT_TRUE(write_file(file("a.bmodel"), sophgo::small_bmodel()));
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"inspect", file("a.bmodel")},
          {"check", file("a.bmodel")},
          {"diff", file("a.bmodel"), file("a.bmodel")},
          {"extract", file("a.bmodel")}}) {
        std::vector<std::string> arguments = {alone};
        arguments.insert(arguments.end(), words.begin(), words.end());
        EXPECT_EQ(test::run_process(arguments, nowhere).exit_code, 0) << words[0];
    }
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"inspect", net},
          {"check", net},
          {"cut", net, "--at", "conv", "-o", file("cut.mlir")},
          {"bisect", net, "--run", "true {mlir}"},
          {"demo", "sophgo", "--out", file("demo")}}) {
        std::vector<std::string> arguments = {alone};
        arguments.insert(arguments.end(), words.begin(), words.end());
        const auto refused = test::run_process(arguments, nowhere);
        EXPECT_EQ(refused.exit_code, 1) << words[0];
        EXPECT_THAT(refused.err, HasSubstr("apt-get install libmlir-19-dev llvm-19-dev"));
    }
}

TEST_F(FinalVerbs, CutRefuses) {
    const auto inside = reef({"cut", net, "--at", "load_bias", "-o", file("cut.mlir")});
    EXPECT_EQ(inside.exit_code, 2);
    EXPECT_THAT(inside.err, HasSubstr("cut at 'conv' or 'relu'"));
    EXPECT_EQ(reef({"cut", net, "--at", "conv", "-o", net}).exit_code, 2) << "the input stays";
    EXPECT_EQ(reef({"cut", net, "--at", "conv", "-o", file("c"), "--weights", "w"}).exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(file("cut.mlir")));
}

TEST_F(FinalVerbs, DemoAndBisect) {
    const std::string out = file("demo");
    EXPECT_THAT(text({"demo", "sophgo", "--out", out}),
                HasSubstr("The first wrong operator is tpu.Active relu"));
    EXPECT_THAT(text({"demo", "sophgo", "--out", out, "--json"}),
                HasSubstr("\"first_wrong\": {\n    \"name\": \"relu\""));
    const std::vector<std::string> sides = {"bisect", out + "/small_final.mlir", "--reference",
                                            out + "/reference.npz"};
    auto wrong = sides, right = sides, json = sides;
    wrong.insert(wrong.end(), {"--actual", out + "/actual.npz"});
    right.insert(right.end(), {"--actual", out + "/reference.npz"});
    json = wrong;
    json.emplace_back("--json");
    const std::string told = text(wrong, 1);
    EXPECT_THAT(told,
                HasSubstr("The first wrong operator is tpu.Active relu\n  reads conv: right\n"));
    EXPECT_THAT(told, HasSubstr("small_final.mlir --at conv,relu -o cut.mlir"));
    EXPECT_THAT(text(json, 1), HasSubstr("\"operator\": \"tpu.Active\""));
    EXPECT_THAT(text(right), HasSubstr("all are right"));
    // Of what is missing, nothing is said.
    auto arrays = read_npz(read_file(out + "/actual.npz").value().view()).value();
    std::erase_if(arrays,
                  [](const auto& one) { return one.first == "relu" || one.first == "sum"; });
    EXPECT_TRUE(write_file(file("part.npz"), write_npz(arrays, Compression::stored).value()));
    auto part = sides;
    part.insert(part.end(), {"--actual", file("part.npz")});
    EXPECT_THAT(text(part, 1), HasSubstr("The first wrong operator is tpu.Reshape flat\n"
                                         "  reads sum: not in the files\n"
                                         "  or one before it that was not compared: relu, sum\n"));
    // reef compare reads the same files.
    text({"compare", out + "/reference.npz", out + "/reference.npz"});
    text({"compare", out + "/reference.npz", out + "/actual.npz"}, 1);
}

TEST_F(FinalVerbs, BisectByRuns) {
    EXPECT_THAT(text({"bisect", net, "--run", "! grep -q tpu.Add {mlir}"}, 1),
                HasSubstr("The first wrong operator is tpu.Add sum"));
    // Inside the group, whose first result is right.
    EXPECT_THAT(text({"bisect", net, "--run", "! grep -q tpu.Active {mlir}"}, 1),
                HasSubstr("The first wrong operator is tpu.Active relu\n"));
    EXPECT_THAT(text({"bisect", net, "--run", "! grep -q tpu.Active {mlir}", "--json"}, 1),
                HasSubstr("\"suspects\": [\n      {\n        \"name\": \"relu\""));
    EXPECT_THAT(text({"bisect", net, "--run", "true {mlir}"}), HasSubstr("all are right"));
    const auto broken = reef({"bisect", net, "--run", "test -f {mlir}; exit 7"});
    EXPECT_EQ(broken.exit_code, 1);
    EXPECT_THAT(broken.err, HasSubstr("the command ended with 7"));
    const std::string out = file("demo");
    text({"demo", "sophgo", "--out", out});
    EXPECT_THAT(text({"bisect", net, "--reference", out + "/reference.npz", "--run",
                      "test -f {mlir} && cp " + out + "/actual.npz {npz}"},
                     1),
                HasSubstr("The first wrong operator is tpu.Active relu"));
    EXPECT_EQ(reef({"bisect", net}).exit_code, 2);
    EXPECT_EQ(reef({"bisect", net, "--run", "true {mlir} {npz}"}).exit_code, 2);
    EXPECT_THAT(
        reef({"bisect", net, "--reference", out + "/reference.npz", "--run", "true {mlir} {npz}"})
            .err,
        HasSubstr("the command ended with 0, but wrote no {npz}"));
}

TEST_F(FinalVerbs, Bmodels) {
    const std::string model = file("a.bmodel"), other = file("b.bmodel"), parts = file("parts");
    auto bytes = sophgo::small_bmodel();
    EXPECT_TRUE(write_file(model, bytes));
    bytes[bytes.size() - 3 * 4096] ^= std::byte{4};
    EXPECT_TRUE(write_file(other, bytes));
    EXPECT_THAT(text({"inspect", model}), HasSubstr("chip           BM1684X"));
    EXPECT_THAT(text({"check", model}), HasSubstr("bmodel: no fault"));
    EXPECT_THAT(text({"check", other}, 1), HasSubstr("coefficients: net small stage 0"));
    EXPECT_THAT(text({"diff", model, model}), HasSubstr("none"));
    EXPECT_THAT(text({"diff", model, other}, 1), HasSubstr("others from byte 0 on"));
    EXPECT_EQ(reef({"diff", model, net}).exit_code, 1);
    text({"extract", model, "kernel", "-o", parts});
    EXPECT_EQ(std::filesystem::file_size(parts + "/kernel_module.so"), 8192U);
    EXPECT_FALSE(std::filesystem::exists(parts + "/net0"));
    EXPECT_EQ(reef({"extract", model, "nothing"}).exit_code, 2);
}

/// The verbs themselves name no kind of file.
TEST_F(FinalVerbs, HelpNamesTheKindsThatAreEnrolled) {
    EXPECT_THAT(text({"extract", "--help"}),
                HasSubstr("reef extract net.bmodel kernel_module -o parts"));
    EXPECT_THAT(text({"diff", "--help"}), HasSubstr("reef diff before.bmodel after.bmodel"));
    EXPECT_THAT(text({"--help"}), HasSubstr("Truncate a final.mlir after named tensors"));
}

}  // namespace
}  // namespace reef::tool
