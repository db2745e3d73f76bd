// reef weights and reef retarget through the real command.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using testing::HasSubstr;

class WeightsVerbs : public CommandTest {
  protected:
    void SetUp() override {
        REEF_SHARED_OR_SKIP(shared);
        templates_ = shared / "data/edgetpu/templates";
    }
    [[nodiscard]] std::string plain(const std::string& name) const {
        return (templates_ / (name + ".tflite")).string();
    }
    [[nodiscard]] std::string compiled(const std::string& name) const {
        return plain(name + "_edgetpu");
    }

  private:
    std::filesystem::path templates_;
};

TEST_F(WeightsVerbs, VerifyExplainsEveryByte) {
    const auto red = compiled("color_red_64x64");
    const auto text = expect_ok({"weights", "verify", red, "--like", plain("color_red_64x64")});
    EXPECT_THAT(text, HasSubstr("operator 1 CONV_2D"));
    EXPECT_THAT(text,
                HasSubstr("132416 bytes: 132416 as in the plain model, 0 differ, 0 unexplained"));
    const auto other =
        reef_command({"weights", "verify", red, "--like", plain("color_white_64x64"), "--json"});
    EXPECT_EQ(other.exit_code, 1);
    const auto document = nlohmann::json::parse(other.out);
    EXPECT_EQ(document["complete"], false);
    EXPECT_EQ(document["differing_bytes"], 2);
}

TEST_F(WeightsVerbs, GetAndSetGiveEachOther) {
    const std::string npz = file("w.npz"), changed = file("c.tflite"), again = file("again.npz");
    const auto like = plain("dense_256");
    expect_ok({"weights", "get", compiled("dense_256"), "--like", like, "-o", npz});
    auto arrays = read_npz(read_file(npz).value().view()).value();
    arrays[0].second.data[5] = std::byte{77};
    ASSERT_TRUE(write_file(npz, write_npz(arrays, Compression::stored).value()));
    expect_ok(
        {"weights", "set", compiled("dense_256"), "--like", like, "--from", npz, "-o", changed});
    expect_ok({"weights", "get", changed, "--like", like, "-o", again});
    EXPECT_EQ(read_npz(read_file(again).value().view()).value(), arrays);
    expect_error({"weights", "get", like, "--like", like, "-o", again}, 1, "not compiled");
}

TEST_F(WeightsVerbs, RetargetMakesTheTargetsProgram) {
    const std::string out = file("green_edgetpu.tflite");
    expect_ok({"retarget", compiled("color_red_64x64"), "--like", plain("color_red_64x64"), "--to",
               plain("color_green_64x64"), "-o", out});
    expect_ok({"weights", "verify", out, "--like", plain("color_green_64x64")});
    const std::string white = file("white_edgetpu.tflite");
    expect_ok(
        {"retarget", compiled("color_red_64x64"), "--to", plain("color_white_64x64"), "-o", white});
    expect_ok({"weights", "verify", white, "--like", plain("color_white_64x64")});
    expect_error({"retarget", compiled("color_red_64x64"), "--like", plain("color_red_64x64"),
                  "--to", plain("bright_64x64"), "-o", file("bright_edgetpu.tflite")},
                 1, "another architecture");
}

// A wrong file is a failure, and no wrong command line.
TEST_F(WeightsVerbs, RetargetRefusesOtherNetworks) {
    const auto refused = [&](const std::vector<std::string>& arguments, const std::string& words) {
        std::vector<std::string> all{"retarget", "-o", file("out.tflite")};
        all.insert(all.end(), arguments.begin(), arguments.end());
        expect_error(all, 1, words);
    };
    refused({compiled("gabor_64x64_p4"), "--to", plain("gabor_64x64_7k_4o_2s")},
            "another architecture");
    refused({compiled("gabor_64x64_p4"), "--like", plain("gabor_64x64_p4"), "--to",
             plain("gabor_64x64_7k_4o_2s")},
            "another architecture");
    refused({compiled("dense_256"), "--to", plain("bright_16x16")}, "another architecture");
    refused({compiled("color_red_64x64"), "--like", plain("color_white_64x64"), "--to",
             plain("color_green_64x64")},
            "no instruction holds its scales");
}

}  // namespace
}  // namespace reef::tool
