// What real sticks computed, byte for byte. There are no other bytes of a chip; docs/silicon.md
// says what they decide and what they leave open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/numerics.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/transfers.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/runtime/session.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

constexpr const char* folder = "data/edgetpu/silicon";

std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
    const auto file = read_file(path.string());
    EXPECT_TRUE(file) << (file ? "" : file.error().message());
    if (!file) return {};
    const Bytes view = file->view();
    return {view.begin(), view.end()};
}

Array array_of(const std::filesystem::path& path) {
    auto array = read_npy(bytes_of(path));
    EXPECT_TRUE(array) << (array ? "" : array.error().message());
    return array ? std::move(*array) : Array{};
}

/// FNV-1a with 64 bits, which the stick's owner logged.
std::uint64_t hash_of(Bytes bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const auto byte : bytes) {
        hash ^= static_cast<std::uint64_t>(byte);
        hash *= 0x100000001b3;
    }
    return hash;
}

/// All that the chip sends on its bulk-in endpoint when it runs the executable once.
Status run_on(usb::SimulatorCore& chip, const Executable& executable,
              std::span<const Bytes> tensors, std::vector<std::byte>& received) {
    const auto plan = REEF_TRY(plan_transfers(executable));
    const auto packed = REEF_TRY(pack_inputs(executable, plan, tensors));
    for (std::size_t i = 0; i < executable.bitstreams.size(); ++i)
        REEF_CHECK(chip.receive(Tag::instructions, REEF_TRY(with_base_addresses(executable, i))));
    for (const Tag tag : {Tag::parameters, Tag::input_activations})
        REEF_CHECK(chip.receive(tag, REEF_TRY(sent_stream(executable, plan, tag, packed))));
    std::vector<std::byte> room(1024);
    while (const std::size_t size = chip.take_output(room))
        received.insert(received.end(), room.begin(),
                        room.begin() + static_cast<std::ptrdiff_t>(size));
    return {};
}

struct Logged {
    std::string width;
    std::uint64_t hash;
};

void PrintTo(const Logged& tested, std::ostream* out) {
    *out << tested.width;
}

class LoggedStream : public testing::TestWithParam<Logged> {};

TEST_P(LoggedStream, IsSentByTheSimulatedChip) {
    REEF_SHARED_OR_SKIP(shared);
    const auto place = shared / folder;
    const auto& [width, hash] = GetParam();
    const auto logged = bytes_of(place / ("rc_" + width + ".bin"));
    ASSERT_EQ(hash_of(logged), hash);

    const auto model = test::load_model(
        place / ("conv2d_12x" + width + "x32_to_32_k3_s1_same_quant_edgetpu.tflite"));
    const auto packages = packages_of(model);
    ASSERT_TRUE(packages) << packages.error().message();
    const auto& package = packages->front().package;
    const Array input = array_of(place / ("in_" + width + ".npy"));
    usb::SimulatorCore chip;
    std::vector<std::byte> received;
    const std::array<Bytes, 1> tensors = {input.data};
    if (const auto* caching = package.find(ExecutableType::parameter_caching)) {
        ASSERT_TRUE(run_on(chip, *caching, {}, received));
    }
    const auto computing = computing_executable(package);
    ASSERT_TRUE(computing);
    const auto ran = run_on(chip, **computing, tensors, received);
    ASSERT_TRUE(ran) << ran.error().message();
    EXPECT_EQ(received.size(), logged.size());
    EXPECT_EQ(hash_of(received), hash);
}

TEST_P(LoggedStream, IsTheTensorOfSimulatorAndArithmetic) {
    REEF_SHARED_OR_SKIP(shared);
    const auto place = shared / folder;
    const auto name = "conv2d_12x" + GetParam().width + "x32_to_32_k3_s1_same_quant";
    auto sessions = test::open_compared(test::load_model(place / (name + ".tflite")),
                                        test::load_model(place / (name + "_edgetpu.tflite")));
    ASSERT_TRUE(sessions) << sessions.error().message();
    const Array input = array_of(place / ("in_" + GetParam().width + ".npy"));
    const Array wanted = array_of(place / ("out_" + GetParam().width + ".npy"));
    for (auto* session : {&sessions->cpu, &sessions->chip}) {
        ASSERT_EQ(session->input(0).size(), input.data.size());
        std::ranges::copy(input.data, session->input(0).begin());
        const auto ran = session->run();
        ASSERT_TRUE(ran) << ran.error().message();
        EXPECT_TRUE(std::ranges::equal(session->output(0), wanted.data));
    }
}

INSTANTIATE_TEST_SUITE_P(Widths, LoggedStream,
                         testing::Values(Logged{"176", 0x00435b5db3e2d027},
                                         Logged{"184", 0xab3d663846659ce0},
                                         Logged{"192", 0x74ec3d24a028affd}),
                         [](const auto& logged) { return logged.param.width; });

TEST(Silicon, FactoryTestGivesTheExpectedBytes) {
    REEF_SHARED_OR_SKIP(shared);
    const auto place = shared / folder;
    auto session = runtime::Session::open(test::load_model(place / "testconv1-edgetpu.tflite"),
                                          {.devices = {"edgetpu:sim"}});
    ASSERT_TRUE(session) << session.error().message();
    const auto input = bytes_of(place / "testconv1-test-input.bin");
    ASSERT_EQ(session->input(0).size(), input.size());
    std::ranges::copy(input, session->input(0).begin());
    const auto ran = session->run();
    ASSERT_TRUE(ran) << ran.error().message();
    const auto wanted = bytes_of(place / "testconv1-expected-output.bin");
    EXPECT_EQ(wanted.size(), 14400U);
    EXPECT_TRUE(std::ranges::equal(session->output(0), wanted));
}

/// By element of the tensor: the byte of the layer's wire form that it comes from.
std::vector<std::size_t> places_of(const Layer& layer) {
    const auto unpacker = OutputUnpacker::prepare(layer);
    EXPECT_TRUE(unpacker);
    if (!unpacker) return {};
    std::vector<std::size_t> places(unpacker->tensor_bytes());
    std::vector<std::byte> wire(unpacker->wire_bytes()), tensor(unpacker->tensor_bytes());
    for (unsigned shift = 0; shift < 24; shift += 8) {
        for (std::size_t i = 0; i < wire.size(); ++i) wire[i] = static_cast<std::byte>(i >> shift);
        unpacker->run(wire, tensor);
        for (std::size_t i = 0; i < tensor.size(); ++i)
            places[i] |= static_cast<std::size_t>(tensor[i]) << shift;
    }
    return places;
}

struct Packet {
    std::size_t offset = 0;
    std::vector<std::byte> visible;
};

std::vector<Packet> packets_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::vector<Packet> packets;
    std::string hexadecimal;
    std::size_t offset = 0, length = 0;
    while (file >> offset >> length >> hexadecimal) {
        Packet packet{.offset = offset, .visible = {}};
        for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
            unsigned value = 0;
            std::from_chars(&hexadecimal[i], &hexadecimal[i] + 2, value, 16);
            packet.visible.push_back(static_cast<std::byte>(value));
        }
        packets.push_back(std::move(packet));
    }
    return packets;
}

/// Of what the decoder of boxes reads: the tensor of that size.
model::TensorIndex decoded(const runtime::Session& session, std::size_t bytes) {
    for (const auto index : session.graph().operators.back().inputs)
        if (session.tensor(index).size() == bytes) return index;
    return model::absent_tensor;
}

// The compiled file of that session is not to be had; another one of the same network lays its
// outputs out in the same way.
TEST(Silicon, VisibleBytesOfSsdAreTheArithmetics) {
    REEF_SHARED_OR_SKIP(shared);
    auto session =
        runtime::Session::open(test::load_model(shared / folder / "ssd_v1_2018_06_29.tflite"),
                               {.arithmetic = &arithmetic(), .keep_all_tensors = true});
    ASSERT_TRUE(session) << session.error().message();
    std::ranges::fill(session->input(0), std::byte{128});
    ASSERT_TRUE(session->run());

    const auto packages = packages_of(test::load_model(
        shared /
        "data/models/ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2_edgetpu.tflite"));
    ASSERT_TRUE(packages);
    const auto computing = computing_executable(packages->front().package);
    ASSERT_TRUE(computing);
    const Executable& executable = **computing;
    const auto plan = plan_transfers(executable);
    ASSERT_TRUE(plan);

    std::vector<std::vector<int>> layers;  // by place in the layer: the byte, or -1
    for (std::size_t i = 0; i < executable.outputs.size(); ++i) {
        auto& wire = layers.emplace_back(plan->output_bytes[i], -1);
        const auto places = places_of(executable.outputs[i]);
        const auto tensor = decoded(*session, places.size());
        ASSERT_NE(tensor, model::absent_tensor) << executable.outputs[i].name;
        const Bytes values = session->tensor(tensor);
        for (std::size_t e = 0; e < places.size(); ++e)
            wire[places[e]] = std::to_integer<int>(values[e]);
    }
    std::vector<int> stream;
    for (const Transfer& transfer : plan->transfers) {
        if (transfer.kind != Transfer::Kind::receive) continue;
        const auto from =
            layers[transfer.index].begin() + static_cast<std::ptrdiff_t>(transfer.offset);
        stream.insert(stream.end(), from, from + static_cast<std::ptrdiff_t>(transfer.size));
    }
    std::size_t equal = 0, padding = 0, visible = 0;
    for (const auto& packet : packets_of(shared / folder / "ssd_v1_grey_visible.tsv")) {
        for (std::size_t i = 0; i < packet.visible.size(); ++i, ++visible) {
            ASSERT_LT(packet.offset + i, stream.size());
            const int wanted = stream[packet.offset + i];
            const int got = std::to_integer<int>(packet.visible[i]);
            padding += wanted < 0;
            equal += wanted == got;
        }
    }
    EXPECT_EQ(visible, 4368U);
    EXPECT_EQ(padding, 46U);
    EXPECT_EQ(equal, visible - padding);
}

}  // namespace
}  // namespace reef::edgetpu
