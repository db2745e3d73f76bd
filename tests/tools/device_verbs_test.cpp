// Every device is a device for every verb that takes one.
#include <gmock/gmock.h>

#include "command.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using testing::HasSubstr;
using testing::Not;

class DeviceVerbs : public CommandTest {
  protected:
    static std::string compiled(const std::filesystem::path& shared) {
        return (shared / "data/edgetpu/templates/dense_256_edgetpu.tflite").string();
    }
    /// The model with an operator of the CPU before the chip's.
    [[nodiscard]] std::string behind_the_cpu(const std::filesystem::path& shared) const {
        model::Model model = model::load_tflite(compiled(shared)).value();
        auto& graph = model.subgraphs[0];
        model::Tensor given = graph.tensors[static_cast<std::size_t>(graph.inputs[0])];
        given.name = "given";
        model::Operator reshape;
        reshape.code.builtin = model::Op::reshape;
        reshape.inputs = {static_cast<model::TensorIndex>(graph.tensors.size())};
        reshape.outputs = {graph.inputs[0]};
        model::ReshapeOptions options;
        options.new_shape = given.shape;
        reshape.options = options;
        graph.inputs[0] = reshape.inputs[0];
        graph.tensors.push_back(given);
        graph.operators.insert(graph.operators.begin(), reshape);
        model.signatures.clear();
        return write("behind.tflite", Bytes(model::write_tflite(model).value()));
    }
    [[nodiscard]] std::string input() const {
        return "1x256xu8=@" + write("in.raw", std::string(256, 'x'));
    }
};

TEST_F(DeviceVerbs, ANamedSimulatorHasLayers) {
    REEF_SHARED_OR_SKIP(shared);
    expect_ok({"run", compiled(shared), "--device", "edgetpu:sim:2", "--input", input(), "--runs",
               "1", "--dump-layers", file("layers")});
    EXPECT_TRUE(exists("layers/layer_000.npy"));
}

TEST_F(DeviceVerbs, ANamedSimulatorHasMemories) {
    REEF_SHARED_OR_SKIP(shared);
    EXPECT_THAT(expect_ok({"debug", compiled(shared), "--device", "edgetpu:sim:2"},
                          {.stdin_text = "info\n"}),
                HasSubstr("memory narrow of each tile"));
}

TEST_F(DeviceVerbs, TheNullDeviceRuns) {
    REEF_SHARED_OR_SKIP(shared);
    EXPECT_THAT(expect_ok({"run", compiled(shared), "--device", "edgetpu:null", "--input", input(),
                           "--runs", "1", "--placements"}),
                HasSubstr("compiled program, not computed"));
    expect_ok({"bench", compiled(shared), "--device", "edgetpu:null", "--runs", "1"});
}

TEST_F(DeviceVerbs, ARecordingIsADevice) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string log = file("traffic.log");
    expect_ok({"record", compiled(shared), "--device", "edgetpu:null", "--input", input(), "--runs",
               "3", "--out", log});
    EXPECT_THAT(expect_ok({"run", compiled(shared), "--device", "edgetpu:replay:" + log, "--input",
                           input(), "--runs", "3", "--placements"}),
                HasSubstr("compiled program, replayed"));
    expect_error({"run", compiled(shared), "--device", "edgetpu:replay:" + log, "--input", input(),
                  "--runs", "4"},
                 1, "no further inference is recorded: `reef record --runs` records more");
    expect_error({"run", compiled(shared), "--device", "edgetpu:replay:" + file("none.log"),
                  "--input", input()},
                 1, "none.log");
}

TEST_F(DeviceVerbs, OperatorsBehindTheCpuAreRecorded) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string model = behind_the_cpu(shared);
    const std::string log = file("behind.log"), plain = file("plain.log");
    expect_ok({"record", model, "--device", "edgetpu:null", "--input", input(), "--out", log});
    expect_ok({"record", compiled(shared), "--device", "edgetpu:null", "--input", input(), "--out",
               plain});
    // RESHAPE changes no byte.
    EXPECT_THAT(expect_ok({"replay", log, "--against", plain}), HasSubstr("0 of "));
    expect_ok({"replay", log, model, "--input", input()});
}

TEST_F(DeviceVerbs, OperatorsBehindTheCpuAreDebugged) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string model = behind_the_cpu(shared);
    const auto outputs = [&](const std::string& one, const std::string& folder) {
        expect_ok({"debug", one, "--input", input(), "--out", file(folder)},
                  {.stdin_text = "continue\n"});
        return read_file(file(folder) + "/out0.npy").value().view().size();
    };
    EXPECT_EQ(outputs(model, "a"), outputs(compiled(shared), "b"));
    expect_ok({"compare", file("a"), file("b")});
}

/// The state is among the operator's inputs and not among the model's.
TEST_F(DeviceVerbs, ModelsWithStateAreDebugged) {
    REEF_SHARED_OR_SKIP(shared);
    const auto model = (shared / "data/models/keras_lstm_mnist_ptq_edgetpu.tflite").string();
    EXPECT_THAT(expect_ok({"debug", model}, {.stdin_text = "info\nstep\n"}), HasSubstr("input "));
    const auto recorded =
        reef_command({"record", model, "--device", "edgetpu:null", "--out", file("state.log")});
    EXPECT_THAT(recorded.err, Not(HasSubstr("whose inputs the CPU computes")));
    EXPECT_THAT(recorded.err, HasSubstr("hints are not complete"));
}

TEST_F(DeviceVerbs, OptionsOfDevicesAreInTheirUris) {
    REEF_SHARED_OR_SKIP(shared);
    const std::vector<std::string> run = {"run", compiled(shared), "--input", input(), "--device"};
    const auto on = [&](const std::string& device) {
        auto arguments = run;
        arguments.push_back(device);
        return arguments;
    };
    expect_ok(on("edgetpu:sim?engine=plain"));
    expect_error(on("edgetpu:sim?engin=plain"), 2, "did you mean engine?");
    expect_error(on("edgetpu:sim?most_steps=x"), 2, "option most_steps is a number from 1 to");
    expect_error(on("edgetpu:sin"), 2, "did you mean edgetpu:sim?");
    expect_error(on("edgetpu:sim?most_steps=2000"), 1, "did not end within 2000 steps");
}

TEST_F(DeviceVerbs, DriversAreListed) {
    const std::string text = expect_ok({"list", "--drivers"});
    for (const char* known : {"edgetpu:replay:FILE", "edgetpu:null", "edgetpu:usb[:PORT]",
                              "random_seed", "maximum, high, medium, low or standard"})
        EXPECT_THAT(text, HasSubstr(known));
    EXPECT_THAT(expect_ok({"list", "--drivers", "--json"}), HasSubstr("\"type\": \"choice\""));
}

}  // namespace
}  // namespace reef::tool
