#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "reef/base/file.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using InspectTest = CommandTest;

TEST_F(InspectTest, TextAtAGlance) {
    const std::string text = expect_ok({"inspect", two_input_model, "--tensors"});
    EXPECT_THAT(text, HasSubstr("two.tflite"));
    EXPECT_THAT(text, HasSubstr("2 operators, 4 tensors"));
    EXPECT_THAT(text, HasSubstr("input        t0 left  1x4 f32"));
    EXPECT_THAT(text, HasSubstr("cpu          runs; arena"));
    EXPECT_THAT(text, HasSubstr("t0 1x4 f32, t1 1x4 f32 -> t2 1x4 f32"));
    EXPECT_THAT(text, HasSubstr("computed  1x4 f32"));
}

TEST_F(InspectTest, JsonOfASmallModel) {
    const auto json = nlohmann::json::parse(expect_ok({"inspect", picture_model, "--json"}));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["description"], "a picture's pixels as scores");
    const auto& graph = json["subgraphs"][0];
    EXPECT_EQ(graph["operators"][0]["name"], "RESHAPE");
    EXPECT_EQ(graph["weight_bytes"], 8);
    EXPECT_EQ(graph["activation_bytes"], 24);
    EXPECT_EQ(graph["devices"]["cpu"]["runs"], true);
    EXPECT_EQ(graph["tensors"][0]["name"], "image");
    EXPECT_EQ(graph["tensors"][0]["role"], "input");
    EXPECT_EQ(graph["tensors"][0]["type"], "uint8");
    EXPECT_FLOAT_EQ(graph["tensors"][0]["quantization"]["scale"][0], 1.0F / 255);
}

TEST_F(InspectTest, SaysWhatAChipWouldTake) {
    const std::string text = expect_ok({"inspect", two_input_model});
    EXPECT_THAT(text, HasSubstr("on the Edge TPU  0 of 2 operators would run on it"));
    const auto json = nlohmann::json::parse(expect_ok({"inspect", two_input_model, "--json"}));
    const auto& operators = json["mapping"]["edgetpu"];
    ASSERT_EQ(operators.size(), 2U);
    EXPECT_EQ(operators[0]["name"], "ADD");
    EXPECT_EQ(operators[0]["on_chip"], false);
    // The reason is in the text, too.
    EXPECT_THAT(operators[0]["reason"].get<std::string>(), HasSubstr("float32"));
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = shared / "data/models/mobilenet_v1_0.25_128_quant.tflite";
    EXPECT_THAT(expect_ok({"inspect", plain}), HasSubstr("31 of 31 operators would run on it"));
    const auto compiled = shared / "data/models/mobilenet_v1_0.25_128_quant_edgetpu.tflite";
    EXPECT_THAT(expect_ok({"inspect", compiled}), Not(HasSubstr("would run on it")));
}

TEST_F(InspectTest, NamesOfTensorsAreWhole) {
    const std::string name(300, 'n');
    model::Builder builder("a long name");
    const auto in = builder.input(name, ElementType::float32, {1});
    const auto out = builder.tensor("out", ElementType::float32, {1});
    builder.add(model::Op::relu, {in}, {out});
    builder.output(out);
    const auto model = write("long.tflite", model::write_tflite(builder.finish().value()).value());
    EXPECT_THAT(expect_ok({"inspect", model, "--tensors"}), HasSubstr(name));
    EXPECT_THAT(expect_ok({"inspect", model}), HasSubstr("t0 1 f32\n               " + name));
}

TEST_F(InspectTest, SeveralModels) {
    const std::string one = expect_ok({"inspect", picture_model});
    const std::string other = expect_ok({"inspect", two_input_model});
    EXPECT_EQ(expect_ok({"inspect", picture_model, two_input_model}), one + "\n" + other);
    const auto json =
        nlohmann::json::parse(expect_ok({"inspect", picture_model, two_input_model, "--json"}));
    ASSERT_EQ(json["models"].size(), 2U);
    EXPECT_EQ(json["models"][1],
              nlohmann::json::parse(expect_ok({"inspect", two_input_model, "--json"})));
}

TEST_F(InspectTest, AFileThatCannotBeReadHidesNoOther) {
    const std::string broken = write("broken.tflite", "TFL3");
    const auto text = reef_command({"inspect", broken, picture_model});
    EXPECT_EQ(text.exit_code, 1);
    EXPECT_THAT(text.err, HasSubstr("reef inspect: " + broken));
    EXPECT_THAT(text.out, HasSubstr("RESHAPE"));
    const auto json = reef_command({"inspect", picture_model, broken, two_input_model, "--json"});
    EXPECT_EQ(json.exit_code, 1);
    EXPECT_EQ(nlohmann::json::parse(json.out)["models"].size(), 2U);
}

TEST_F(InspectTest, ReadsStandardInput) {
    const SharedBytes model = read_file(picture_model).value();
    EXPECT_THAT(expect_ok({"inspect", "-"}, {.stdin_text = std::string(as_text(model.view()))}),
                HasSubstr("RESHAPE"));
}

TEST_F(InspectTest, BadInput) {
    expect_error({"inspect"}, 2, "MODEL");
    expect_error({"inspect", picture_model, "--frobnicate"}, 2, "--frobnicate");
    expect_error({"inspect", file("none.tflite")}, 1, "none.tflite");
    expect_error({"inspect", file("")}, 1, "is a folder");
    expect_error({"inspect", write("empty.tflite", "")}, 1, "empty.tflite");
    expect_error({"inspect", write("text.tflite", "this is not a model")}, 1, "text.tflite");
    const SharedBytes model = read_file(picture_model).value();
    expect_error({"inspect", write("cut.tflite", model.view().first(model.size() / 2))}, 1,
                 "cut.tflite");
    expect_error({"inspect", "line\nbreak.tflite"}, 1, "line?break.tflite");
}

TEST_F(InspectTest, EveryReferenceModelAsTextAndJson) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t compiled = 0;
    for (const char* folder : {"data/models", "data/edgetpu/templates"}) {
        const auto files = test::shared_files(folder, ".tflite");
        ASSERT_FALSE(files.empty()) << shared / folder;
        for (const auto& path : files) {
            SCOPED_TRACE(path.filename().string());
            const std::string text = expect_ok({"inspect", path.string()});
            const auto json = nlohmann::json::parse(expect_ok({"inspect", path, "--json"}));
            EXPECT_EQ(json["file_bytes"], std::filesystem::file_size(path));
            for (const auto& op : json["subgraphs"][0]["operators"]) {
                if (op["name"] != "edgetpu-custom-op") continue;
                ++compiled;
                EXPECT_GT(op["custom_options_bytes"], 0);
                EXPECT_THAT(text, HasSubstr("cannot run: operator"));
                EXPECT_THAT(text, HasSubstr("of custom options"));
            }
        }
    }
    EXPECT_GT(compiled, 10U);
}

TEST_F(InspectTest, CostOfAKnownNetwork) {
    REEF_SHARED_OR_SKIP(shared);
    const auto path = shared / "data/models/tf2_mobilenet_v2_1.0_224_ptq.tflite";
    const auto json = nlohmann::json::parse(expect_ok({"inspect", path, "--json"}));
    // The network's published cost is 300 million multiply-accumulates.
    EXPECT_NEAR(json["subgraphs"][0]["macs"], 300e6, 3e6);
    EXPECT_NEAR(json["subgraphs"][0]["weight_bytes"], 3.5e6, 0.1e6);
}

TEST_F(InspectTest, ColourOnTerminalsOnly) {
    const auto on_terminal = [&](const std::string& setting) {
        return reef_command({"inspect", two_input_model},
                            {.environment = {"TERM=xterm", setting}, .terminal = true})
            .out;
    };
    EXPECT_THAT(on_terminal("NO_COLOR="), HasSubstr("\x1b[1mtwo.tflite"));
    EXPECT_THAT(on_terminal("NO_COLOR=1"), Not(HasSubstr("\x1b")));
    EXPECT_THAT(on_terminal("TERM=dumb"), Not(HasSubstr("\x1b")));
    EXPECT_THAT(expect_ok({"inspect", two_input_model}), Not(HasSubstr("\x1b")));
}

TEST_F(InspectTest, HelpAndVersion) {
    EXPECT_THAT(expect_ok({"--version"}), HasSubstr("reef "));
    const std::string help = expect_ok({"--help"});
    for (const char* verb : {"inspect", "run", "compare", "bench", "ops"}) {
        EXPECT_THAT(help, HasSubstr(verb));
        const std::string verb_help = expect_ok({verb, "--help"});
        EXPECT_THAT(verb_help, HasSubstr("Examples:\n  reef " + std::string(verb)));
        EXPECT_THAT(verb_help, HasSubstr("--json"));
    }
    // Only the verb that stands first has its options made alone.
    EXPECT_THAT(expect_ok({"-h", "inspect"}), HasSubstr("MODEL"));
    expect_error({}, 2, "no verb");
    expect_error({"dance"}, 2, "'dance' is not a verb");
    expect_error({"--dance"}, 2, "--dance");
}

TEST_F(InspectTest, OpsListTheKernels) {
    const auto json = nlohmann::json::parse(expect_ok({"ops", "--json"}));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_GT(json["operators"].size(), 15U);
    const std::string table = expect_ok({"ops"});
    const std::string markdown = expect_ok({"ops", "--markdown"});
    for (const auto& op : json["operators"]) {
        EXPECT_THAT(table, HasSubstr("  " + op["name"].get<std::string>()));
        EXPECT_THAT(markdown, HasSubstr("| `" + op["name"].get<std::string>() + "` | "));
        EXPECT_FALSE(op["devices"]["cpu"].get<std::string>().empty());
    }
    expect_error({"ops", "--json", "--markdown"}, 2, "--markdown");
    expect_error({"ops", "extra"}, 2, "extra");
}

/// A page shows options in code type, a terminal as they are typed.
TEST_F(InspectTest, OpsOfCompilersNamesOptionsAsTyped) {
    for (const char* form : {"", "--json"}) {
        std::vector<std::string> words{"ops", "--compilers"};
        if (*form != '\0') words.emplace_back(form);
        const std::string said = expect_ok(words);
        EXPECT_THAT(said, testing::HasSubstr("(--assume ppu)")) << form;
        EXPECT_THAT(said, testing::Not(testing::HasSubstr("`"))) << form;
    }
    EXPECT_THAT(expect_ok({"ops", "--compilers", "--markdown"}),
                testing::HasSubstr("(`assume` ppu)"));
}

}  // namespace
}  // namespace reef::tool
