// The LiteRT in Chromium by a script in node's place, which answers as litert_web.mjs does.
#include "peers/litert_web_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "peers/known_shapes.h"
#include "peers/random_input.h"
#include "reef/cpu/kernel_set.h"
#include "reef/cpu/placer.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/temporary_folder.h"

namespace reef::peers {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Its output has its input's bytes.
Result<model::Model> reshape(ElementType type, std::int64_t zero_point) {
    model::Builder builder("reshape");
    const auto quantization = model::per_tensor(0.5F, zero_point);
    const auto in = builder.input("in", type, {1, 4, 4, 3}, quantization);
    const auto out = builder.tensor("out", type, {1, 48}, quantization);
    builder.add(model::Op::reshape, {in}, {out}, model::ReshapeOptions{.new_shape = {1, 48}});
    builder.output(out);
    return builder.finish();
}

class LitertWebPeerTest : public testing::Test {
  protected:
    /// `ready`: the second line. `run`: of one network; it gives the inputs back.
    void install(const std::string& ready,
                 const std::string& run = "cp \"$one\" \"$two\"; echo '{}'") {
        std::ofstream(node_) << "#!/bin/sh\necho '{\"version\":\"a browser\"}'\n"
                             << "cp \"$2\" " << folder_.file("network") << "\n"
                             << "cp \"${network:-$2}\" \"$3/model0.tflite\"\n"
                             << "echo '" << ready << "'\n"
                             << R"(tab=$(printf '\t')
while IFS="$tab" read -r verb one two; do
  case $verb in
    check) cp "$one" )" << folder_.file("in")
                             << "; " << run << R"( ;;
    burst) echo "{\"network_ns\":[${one}500000,${one}000000],\"overhead_ns\":[25000,50000]}" ;;
  esac
done
)";
        std::filesystem::permissions(node_, std::filesystem::perms::owner_all);
        ::setenv("REEF_NODE", node_.c_str(), 1);
    }
    Result<LitertWebPeer> start(const model::Model& model, int threads = 1) {
        ours_ = std::make_unique<graph::Executor>(
            REEF_TRY(graph::Executor::create(model, {.placers = {cpu::placer()}, .threads = 1})));
        fill(*ours_);
        REEF_TRY(ours_->run());
        return LitertWebPeer::start(model, *ours_, threads);
    }
    void TearDown() override {
        ::unsetenv("REEF_NODE");
        ::unsetenv("REEF_LITERT_SIMD");
        ::unsetenv("REEF_SIMD");
        ::unsetenv("network");
    }

    test::TemporaryFolder folder_;
    std::string node_ = folder_.file("node");
    std::unique_ptr<graph::Executor> ours_;
};

TEST_F(LitertWebPeerTest, ComparesAndTimes) {
    install("{}");
    auto peer = start(*reshape(ElementType::uint8, 3));
    ASSERT_TRUE(peer) << peer.error().message();
    EXPECT_EQ(peer->version(), "a browser");
    EXPECT_EQ(peer->alike().equal, 1);
    const auto time = peer->turn(7, 0);
    ASSERT_TRUE(time) << time.error().message();
    EXPECT_DOUBLE_EQ(time->network_ms, 7);
    EXPECT_DOUBLE_EQ(time->overhead_ms, 0.025);
}

TEST_F(LitertWebPeerTest, GetsUint8InPlaceOfInt8) {
    install("{}");
    auto peer = start(*reshape(ElementType::int8, -7));
    ASSERT_TRUE(peer) << peer.error().message();
    EXPECT_EQ(peer->alike().equal, 1);
    const auto given = model::load_tflite(folder_.file("network"));
    ASSERT_TRUE(given) << given.error().message();
    const auto& graph = given->subgraphs[0];
    for (const auto& ends : {graph.inputs, graph.outputs}) {
        const auto& tensor = graph.tensors[static_cast<std::size_t>(ends[0])];
        EXPECT_EQ(tensor.type, ElementType::uint8);
        EXPECT_EQ(tensor.quantization->zero_point[0], 121);
    }
    std::ifstream file(folder_.file("in"), std::ios::binary);
    const std::string in{std::istreambuf_iterator<char>(file), {}};
    ASSERT_EQ(in.size(), ours_->input(0).size());
    for (std::size_t i = 0; i < in.size(); ++i)
        EXPECT_EQ(std::byte(in[i]), ours_->input(0)[i] ^ std::byte{0x80});
}

/// The network that it gets computes what the file's does.
TEST_F(LitertWebPeerTest, RaisedEndsLeaveTheNetworkAsItIs) {
    const auto model = network_of_shape("mobilenet_v2:int8");
    ASSERT_TRUE(model);
    const auto create = [](const model::Model& m) {
        return graph::Executor::create(m, {.placers = {cpu::placer()}, .threads = 1});
    };
    auto plain = create(*model), raised = create(with_raised_ends(*model));
    ASSERT_TRUE(plain && raised);
    fill(*plain);
    const auto flip = [](Bytes from) {
        std::vector<std::byte> to(from.begin(), from.end());
        for (std::byte& byte : to) byte ^= std::byte{0x80};
        return to;
    };
    std::ranges::copy(flip(plain->input(0)), raised->input(0).begin());
    ASSERT_TRUE(plain->run() && raised->run());
    for (std::size_t i = 0; i < plain->output_count(); ++i)
        EXPECT_TRUE(std::ranges::equal(flip(plain->output(i)), raised->output(i))) << i;
}

TEST_F(LitertWebPeerTest, CountsConvolutionsOfWhatTheBrowserRuns) {
    const auto write = [&](const char* shape) {
        const auto bytes = model::write_tflite(*network_of_shape(shape));
        std::ofstream(folder_.file("other"), std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes->data()),
                   static_cast<std::streamsize>(bytes->size()));
        ::setenv("network", folder_.file("other").c_str(), 1);
    };
    install("{}");
    write("mobilenet_v1:int8");
    auto peer = start(*reshape(ElementType::uint8, 3));
    ASSERT_TRUE(peer) << peer.error().message();
    EXPECT_EQ(peer->optimised().integer_convolutions, 28);
    EXPECT_EQ(peer->optimised().float_convolutions, 0);
    write("mobilenet_v1:float32");
    peer = start(*reshape(ElementType::uint8, 3));
    ASSERT_TRUE(peer) << peer.error().message();
    EXPECT_EQ(peer->optimised().integer_convolutions, 0);
    EXPECT_EQ(peer->optimised().float_convolutions, 28);
}

TEST_F(LitertWebPeerTest, FailsAsItsProgramDoes) {
    install(R"({"error":"LiteRT.js splits the network"})");
    const auto peer = start(*reshape(ElementType::uint8, 3));
    ASSERT_FALSE(peer);
    EXPECT_THAT(peer.error().message(), HasSubstr("splits the network"));
    install("no JSON");
    EXPECT_FALSE(start(*reshape(ElementType::uint8, 3)));
}

TEST_F(LitertWebPeerTest, FailsAsAProgramThatDies) {
    install("{}", "echo '{\"error\":\"the page crashed\"}'; exit 1");
    const auto peer = start(*reshape(ElementType::uint8, 3));
    ASSERT_FALSE(peer);
    EXPECT_THAT(peer.error().message(), HasSubstr("the page crashed"));
}

TEST_F(LitertWebPeerTest, RefusesOutputsOfAnotherSize) {
    for (const char* cut : {"head -c 47 \"$one\" > \"$two\"; echo '{}'",
                            "cat \"$one\" \"$one\" > \"$two\"; echo '{}'"}) {
        install("{}", cut);
        const auto peer = start(*reshape(ElementType::uint8, 3));
        ASSERT_FALSE(peer);
        EXPECT_THAT(peer.error().message(), HasSubstr("another size"));
    }
}

TEST_F(LitertWebPeerTest, RefusesAnswersWithoutTimes) {
    for (const char* times : {"[]", "5", "[1,\"a\"]", "null"}) {
        install("{}", std::string("cp \"$one\" \"$two\"; echo '{}'; read -r line; echo "
                                  "'{\"network_ns\":[1],\"overhead_ns\":") +
                          times + "}'");
        auto peer = start(*reshape(ElementType::uint8, 3));
        ASSERT_TRUE(peer) << peer.error().message();
        const auto time = peer->turn(1, 0);
        ASSERT_FALSE(time) << times;
        EXPECT_THAT(time.error().message(), HasSubstr("overhead_ns"));
    }
}

TEST_F(LitertWebPeerTest, SaysTheVersionOfWhatRuns) {
    install(R"({"version":"Chromium 1"})");
    const auto peer = start(*reshape(ElementType::uint8, 3));
    ASSERT_TRUE(peer) << peer.error().message();
    EXPECT_EQ(peer->version(), "Chromium 1");
}

TEST_F(LitertWebPeerTest, NeedsAVersion) {
    for (const char* first : {"5", "{}", R"({"version":1})", "[]", ""}) {
        std::ofstream(node_) << "#!/bin/sh\necho '" << first << "'\n";
        std::filesystem::permissions(node_, std::filesystem::perms::owner_all);
        ::setenv("REEF_NODE", node_.c_str(), 1);
        EXPECT_NE(why_no_program("program.mjs"), "") << first;
    }
}

TEST_F(LitertWebPeerTest, IsLeftOutWhereItHasOtherMeans) {
    install("{}");
    const int processors = static_cast<int>(std::thread::hardware_concurrency());
    const int threads = std::min(4, (processors + 1) / 2);
    EXPECT_EQ(why_no_litert_web(threads), "");
    EXPECT_THAT(why_no_litert_web(threads + 1), HasSubstr("thread"));
    ::setenv("REEF_LITERT_SIMD", "ANOTHER", 1);
    EXPECT_EQ(why_no_litert_web(threads), "");
    ::setenv("REEF_SIMD", "", 1);
    EXPECT_EQ(why_no_litert_web(threads), "");
    ::setenv("REEF_SIMD", "AVX2", 1);
    EXPECT_THAT(why_no_litert_web(threads), HasSubstr("ANOTHER"));
    ::setenv("REEF_LITERT_SIMD", "", 1);
    EXPECT_THAT(why_no_litert_web(threads), Not(HasSubstr("limited to  alone")));
    ::setenv("REEF_LITERT_SIMD", std::string(cpu::simd_target()).c_str(), 1);
    EXPECT_EQ(why_no_litert_web(threads), "");
}

TEST_F(LitertWebPeerTest, DoesNotStartWithoutNode) {
    ::setenv("REEF_NODE", folder_.file("nothing").c_str(), 1);
    EXPECT_NE(why_no_program("program.mjs"), "");
    ::setenv("REEF_NODE", "", 1);
    EXPECT_THAT(why_no_program("program.mjs"), HasSubstr("no node"));
}

}  // namespace
}  // namespace reef::peers
