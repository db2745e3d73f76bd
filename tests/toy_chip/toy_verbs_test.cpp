// The command's verbs on a chip that none of them names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/process.h"
#include "support/temporary_folder.h"
#include "toy_chip/toy_program.h"

namespace reef::toy {
namespace {

using testing::HasSubstr;

class ToyVerbs : public testing::Test {
  protected:
    ToyVerbs() {
        const auto bytes = model::write_tflite(adding_model(4, 5).value()).value();
        EXPECT_TRUE(write_file(model, bytes));
        const Array array{
            ElementType::uint8, {1, 4}, {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{255}}};
        EXPECT_TRUE(write_file(input, write_npy(array).value()));
    }
    static test::ProcessResult reef(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), REEF_COMMAND);
        return test::run_process(arguments);
    }
    static std::string text(std::vector<std::string> arguments) {
        const auto result = reef(std::move(arguments));
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out;
    }

    test::TemporaryFolder folder;
    std::string model = folder.file("toy.tflite"), input = folder.file("in.npy");
};

TEST_F(ToyVerbs, List) {
    EXPECT_THAT(text({"list"}), HasSubstr("toy:sim"));
    const std::string drivers = text({"list", "--drivers"});
    EXPECT_THAT(drivers, HasSubstr("toy:sim[:NAME]"));
    EXPECT_THAT(drivers, HasSubstr("added with every addition"));
}

TEST_F(ToyVerbs, Run) {
    const std::string out = folder.file("out");
    const auto told = text({"run", model, "--device", "toy:sim", "--input", input, "--out", out,
                            "--placements", "--runs", "2"});
    EXPECT_THAT(told, HasSubstr("toy:sim  toy program  compiled for the toy"));
    const auto bytes = read_file(out + "/out0.npy");
    ASSERT_TRUE(bytes) << bytes.error().message();
    const Array array = read_npy(bytes->view()).value();
    const std::vector<std::byte> wanted = {std::byte{5}, std::byte{6}, std::byte{7}, std::byte{4}};
    EXPECT_EQ(array.data, wanted);
    EXPECT_THAT(text({"run", model, "--device", "toy:sim?bias=1", "--input", input, "--json"}),
                HasSubstr("\"device\": \"toy:sim?bias=1\""));
}

TEST_F(ToyVerbs, Bench) {
    EXPECT_THAT(text({"bench", model, "--device", "toy:sim", "--runs", "2", "--input", input}),
                HasSubstr("toy program"));
}

TEST_F(ToyVerbs, Compare) {
    EXPECT_EQ(reef({"compare", model, "--on", "toy:sim", "--on", "toy:sim:2", "--input", input})
                  .exit_code,
              0);
    const auto other =
        reef({"compare", model, "--on", "toy:sim", "--on", "toy:sim?bias=1", "--input", input});
    EXPECT_EQ(other.exit_code, 1) << other.err;
}

TEST_F(ToyVerbs, Inspect) {
    const std::string told = text({"inspect", model});
    EXPECT_THAT(told, HasSubstr("everything runs on the chip, nothing on the CPU"));
    EXPECT_THAT(told, HasSubstr("inside  Toy"));
    EXPECT_THAT(told, HasSubstr("Toy program\n  instructions   3\n"));
    EXPECT_THAT(text({"inspect", model, "--json"}), HasSubstr("\"toy\": {"));
}

TEST_F(ToyVerbs, Disasm) {
    const std::string listing = "0x0000: take 4\n0x0001: add 5\n0x0002: give 4\n";
    EXPECT_EQ(text({"disasm", model}), listing);
    EXPECT_THAT(text({"disasm", model, "--json"}), HasSubstr("\"operand\": 5"));
    EXPECT_THAT(text({"disasm", model, "--check"}), HasSubstr("3 instructions, all rules kept"));
    // A raw stream does not say whose it is.
    const std::string source = folder.file("toy.s"), stream = folder.file("toy.bin");
    EXPECT_TRUE(write_file(source, as_bytes(listing)));
    text({"asm", source, "--chip", "toy", "-o", stream});
    EXPECT_EQ(text({"disasm", stream, "--chip", "toy"}), listing);
    EXPECT_EQ(reef({"disasm", stream, "--chip", "cpu"}).exit_code, 2);
}

TEST_F(ToyVerbs, CheckOfItsModelsAndStreams) {
    EXPECT_THAT(text({"check", model}), HasSubstr("3 instructions, all rules kept"));
    EXPECT_THAT(text({"check", model, "--target", "toy", "--json"}),
                HasSubstr("\"verb\": \"check\""));
    const auto other = reef({"check", model, "--target", "edgetpu"});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.err, HasSubstr("the model is compiled for 'toy', not for 'edgetpu'"));
    // A raw stream does not say whose it is.
    const std::string stream = folder.file("toy.bin");
    EXPECT_TRUE(write_file(stream, encode(std::vector<Instruction>{{Opcode::give, 4}})));
    EXPECT_EQ(reef({"check", stream, "--target", "toy"}).exit_code, 1);
    const auto unknown = reef({"check", stream});
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_THAT(unknown.err, HasSubstr("a file of a kind that is not known (kinds that are known: "
                                       "TFLite model"));
    EXPECT_THAT(unknown.err, HasSubstr("toy tape"));
}

TEST_F(ToyVerbs, CheckOfPlainModels) {
    model::Builder builder("plain");
    const auto in = builder.input("in", ElementType::float32, {1, 4});
    const auto out = builder.tensor("out", ElementType::float32, {1, 4});
    builder.add(model::Op::relu, {in}, {out});
    builder.output(out);
    const std::string plain = folder.file("plain.tflite");
    EXPECT_TRUE(write_file(plain, model::write_tflite(builder.finish().value()).value()));
    EXPECT_THAT(text({"check", plain, "--target", "toy"}),
                HasSubstr("plain model for the Toy: no fault, 1 note\n\nNotes\n  operator: RELU: "
                          "toys are programmed by hand\n"));
    const auto untold = reef({"check", plain});
    EXPECT_EQ(untold.exit_code, 2);
    EXPECT_THAT(untold.err, HasSubstr("--target names the chip that it is checked against"));
    EXPECT_THAT(reef({"check", plain, "--target", "cpu"}).err, HasSubstr("(targets are "));
}

/// A program that its own verification refutes is given to nobody.
TEST_F(ToyVerbs, CompileWritesNoModelThatIsWrong) {
    model::Builder builder("plain");
    const auto in = builder.input("in", ElementType::uint8, {2, 3});
    const auto out = builder.tensor("out", ElementType::uint8, {3, 2});
    builder.add(model::Op::reshape, {in}, {out}, model::ReshapeOptions{{3, 2}});
    builder.output(out);
    const std::string plain = folder.file("plain.tflite"),
                      compiled = folder.file("compiled.tflite");
    EXPECT_TRUE(write_file(plain, model::write_tflite(builder.finish().value()).value()));
    const std::vector<std::string> right = {"compile", plain, "--target", "toy", "-o", compiled},
                                   piped = {"compile", plain, "--target", "toy", "--wrong"};
    auto wrong = right;
    wrong.push_back("--wrong");

    const auto refuted = reef(wrong);
    EXPECT_EQ(refuted.exit_code, 1);
    EXPECT_THAT(refuted.out, HasSubstr("6 of 6 bytes of 'out' on random values"));
    EXPECT_FALSE(std::filesystem::exists(compiled));

    EXPECT_THAT(text(right), HasSubstr("compiled.tflite: "));
    const auto before = read_file(compiled);
    ASSERT_TRUE(before) << before.error().message();
    EXPECT_EQ(reef(wrong).exit_code, 1);
    EXPECT_EQ(read_file(compiled).value(), *before)
        << "a right model is not replaced by a wrong one";

    auto to_stdout = piped;
    to_stdout.insert(to_stdout.end(), {"-o", "-"});
    const auto streamed = reef(to_stdout);
    EXPECT_EQ(streamed.exit_code, 1);
    EXPECT_EQ(streamed.out, "");
    EXPECT_THAT(streamed.err, HasSubstr("not verified, so that no model is written: 6 of 6 bytes"));
    auto unverified = wrong;
    unverified.push_back("--no-verify");
    EXPECT_EQ(reef(unverified).exit_code, 0);
    EXPECT_NE(read_file(compiled).value(), *before);
}

TEST_F(ToyVerbs, FilesOfItsOwnKind) {
    const auto tape = [&](const std::vector<Instruction>& program) {
        std::string contents = "TAPE";
        contents += as_text(encode(program));
        const std::string path = folder.file("tape");
        EXPECT_TRUE(write_file(path, as_bytes(contents)));
        return path;
    };
    const std::string good = tape({{Opcode::take, 4}, {Opcode::add, 1}, {Opcode::give, 4}});
    EXPECT_THAT(text({"inspect", good}), HasSubstr("toy tape\n\nTape\n  instructions   3\n"));
    EXPECT_THAT(text({"inspect", good, "--all"}), HasSubstr("detail         all"));
    EXPECT_THAT(text({"inspect", good, "--json"}), HasSubstr("\"instructions\": 3"));
    EXPECT_THAT(text({"check", good}), HasSubstr("toy tape: no fault, 1 note"));
    EXPECT_EQ(reef({"check", good, "--target", "edgetpu"}).exit_code, 2);
    const auto bad = reef({"check", tape({{Opcode::give, 4}}), "--json"});
    EXPECT_EQ(bad.exit_code, 1);
    EXPECT_THAT(bad.out, HasSubstr("\"rule\": \"beginning\""));
}

TEST_F(ToyVerbs, Diff) {
    const std::string other = folder.file("other.tflite");
    EXPECT_TRUE(write_file(other, model::write_tflite(adding_model(4, 6).value()).value()));
    EXPECT_THAT(text({"diff", model, model}), HasSubstr("0-TOY: identical"));
    const auto differs = reef({"diff", model, other});
    EXPECT_EQ(differs.exit_code, 1) << differs.err;
    EXPECT_THAT(differs.out, HasSubstr("0x0001 0x0001  add\n"));
    EXPECT_THAT(differs.out, HasSubstr("operand: 5 -> 6"));
}

TEST_F(ToyVerbs, Debug) {
    const std::string script = folder.file("script"), out = folder.file("out");
    EXPECT_TRUE(write_file(
        script, as_bytes(std::string_view("info\nwhere\nbreak 1 done\ncontinue\nadded\nreg a0\n"
                                          "memory bytes 0 4\nlist 0 3\nlayers\ncounters core\n"
                                          "delete 1\ncontinue\noutputs\n"))));
    const std::string told = text({"debug", model, "--device", "toy:sim", "--input", input,
                                   "--script", script, "--output", out});
    for (const char* words :
         {"executable 0 TOY, stream 0: 3 words", "memory bytes: 0x100 bytes\n",
          "core: 0:0x0000 take", "breakpoint 1: core has finished 0:0x0001 add", "a0 0x00000005",
          "a0 = 0x5", "0x00000: 05 06 07 04", "> 0x0001: add 5", "core: instructions 2",
          "the program has ended, after 3 rounds"})
        EXPECT_THAT(told, HasSubstr(words));
    const auto bytes = read_file(out + "/out0.npy");
    ASSERT_TRUE(bytes) << bytes.error().message();
    const std::vector<std::byte> wanted = {std::byte{5}, std::byte{6}, std::byte{7}, std::byte{4}};
    EXPECT_EQ(read_npy(bytes->view()).value().data, wanted);
}

TEST_F(ToyVerbs, RefusesWhatTheToyHasNot) {
    const auto strict = reef({"run", model, "--device", "toy:sim", "--input", input, "--strict"});
    EXPECT_EQ(strict.exit_code, 2);
    EXPECT_THAT(strict.err, HasSubstr("device toy:sim has no strict runs"));
    const auto on_cpu = reef({"run", model, "--input", input});
    EXPECT_EQ(on_cpu.exit_code, 1);
    EXPECT_THAT(on_cpu.err, HasSubstr("the operator holds a program for the toy, which the CPU "
                                      "cannot run (run it with --device toy:sim"));
}

/// What goes by parts that the toy has not is refused by the toy's name.
TEST_F(ToyVerbs, RefusesVerbsThatItHasNoPartFor) {
    const std::string out = folder.file("out.bin");
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"weights", "get", model, "--like", model, "-o", out},
             {"retarget", model, "--to", model, "-o", out},
             {"record", model, "-o", out}}) {
        const auto refused = reef(arguments);
        EXPECT_EQ(refused.exit_code, 1) << arguments[0];
        EXPECT_THAT(refused.err, HasSubstr("the Toy has nothing for reef " + arguments[0]));
    }
    const auto replay = reef({"replay", model, "--chip", "toy"});
    EXPECT_EQ(replay.exit_code, 2);
    EXPECT_THAT(replay.err, HasSubstr("no chip 'toy' whose traffic is recorded"));
}

/// Two devices in one session: the toy's operator, and the rest.
TEST_F(ToyVerbs, SeveralDevices) {
    EXPECT_THAT(text({"run", model, "--device", "edgetpu:sim", "--device", "toy:sim", "--input",
                      input, "--placements", "--json"}),
                HasSubstr("\"device\": \"edgetpu:sim,toy:sim\""));
}

}  // namespace
}  // namespace reef::toy
