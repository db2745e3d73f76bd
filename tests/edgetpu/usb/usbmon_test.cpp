// Captures of usbmon as recordings, and a real stick's session against the driver.
#include "edgetpu/usb/usbmon.h"

#include <gmock/gmock.h>

#include <fstream>
#include <numeric>

#include "edgetpu/usb/recording_items.h"
#include "edgetpu/usb/small_program.h"
#include "reef/base/sha256.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::usb {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view descriptor_answer = "12011003 00000009 d1180293 00010000 0001";

std::string lines_of(std::string_view transfers) {
    return "ffff0001 100 S Ci:2:004:0 s 80 06 0100 0000 0012 18 <\n"
           "ffff0001 110 C Ci:2:004:0 0 18 = " +
           std::string(descriptor_answer) + "\n" + std::string(transfers);
}

constexpr std::string_view few_lines =
    "ffff0002 200 S Ci:2:004:0 s c0 01 a30c 0001 0004 4 <\n"
    "ffff0002 210 C Ci:2:004:0 0 4 = 59000f00\n"
    "ffff0003 220 S Co:2:004:0 s 40 01 a30c 0001 0004 4 = 59000f00\n"
    "ffff0003 230 C Co:2:004:0 0 4 >\n"
    "ffff0004 240 S Bi:2:004:1 -115 1024 <\n"
    "ffff0005 250 S Ii:2:004:3 -115:1 4 <\n"
    "ffff0006 260 S Bo:2:004:1 -115 40 = 01020304 05060708 090a0b0c 0d0e0f10 11121314 15161718 "
    "191a1b1c 1d1e1f20\n"
    "ffff0006 270 C Bo:2:004:1 0 40 >\n"
    "ffff0004 280 C Bi:2:004:1 0 6 = aabbccdd eeff\n"
    "ffff0005 290 C Ii:2:004:3 -2:1 0\n"
    "ffff0009 290 S Zi:2:009:3 -115:1:0 1 -18:0:100 100 <\n";

TEST(Usbmon, LinesBecomeARecording) {
    const auto recording = recording_of_usbmon(lines_of(few_lines));
    ASSERT_TRUE(recording) << recording.error().message();
    EXPECT_THAT(recording->text, HasSubstr("CTRL IN  bmRequestType=c0 bRequest=01 wValue=a30c "
                                           "wIndex=0001 wLength=4 timeout=0 ret=4 len=4 off=18 "
                                           "data=59000f00"));
    EXPECT_THAT(recording->text, HasSubstr("len=40 held=32 off="));
    EXPECT_THAT(recording->text, HasSubstr("INTR     ep=83 id="));
    const auto view = wire_view(*recording);
    ASSERT_TRUE(view) << view.error().message();
    EXPECT_THAT(*view, Contains("ctrl 40 01 a30c 0001 4 59000f00"));
    EXPECT_THAT(*view, Contains(HasSubstr("out ep 01 len 40 begins 0102030405")));
    EXPECT_THAT(*view, Contains(HasSubstr("in ep 81 bytes 6 sha256")));
    const auto transfers = register_transfers(*recording);
    ASSERT_TRUE(transfers);
    ASSERT_EQ(transfers->size(), 2U);
    EXPECT_TRUE(transfers->at(0).to_host);
    EXPECT_EQ(transfers->at(1).offset, 0x1a30cU);
    EXPECT_EQ(transfers->at(1).bits, 32U);
    EXPECT_EQ(transfers->at(1).value, 0xf0059U);
}

TEST(Usbmon, TheEndsOfTransfersHaveTheirFaults) {
    const auto text = lines_of(
        "a 1 S Ci:2:004:0 s c0 01 a30c 0001 0004 4 <\na 2 C Ci:2:004:0 -32 0\n"
        "b 3 S Bo:2:004:1 -115 3 = 010203\nb 4 C Bo:2:004:1 -108 0\n"
        "c 5 S Bi:2:004:1 -115 8 <\nc 6 C Bi:2:004:1 -75 0\n");
    const auto recording = recording_of_usbmon(text);
    ASSERT_TRUE(recording) << recording.error().message();
    EXPECT_THAT(recording->text, HasSubstr("ret=-1 fault=stall"));
    EXPECT_THAT(recording->text, HasSubstr("failed disconnected"));
    EXPECT_THAT(recording->text, HasSubstr("failed overflow"));
}

TEST(Usbmon, WhatIsNoCaptureOrHoldsNoStickIsRefusedWithTheReason) {
    const auto error = [](const std::string& text) {
        return recording_of_usbmon(text).error().message();
    };
    EXPECT_FALSE(is_usbmon("000000 OPEN 18d1:9302\n"));
    EXPECT_FALSE(is_usbmon(""));
    EXPECT_TRUE(is_usbmon(lines_of("")));
    EXPECT_THAT(error(lines_of("")), HasSubstr("no transfer of an Edge TPU"));
    EXPECT_THAT(error(lines_of("x 1 S Ci:2:004:0 s c0\n")), HasSubstr("line 3: no request"));
    EXPECT_THAT(error(lines_of("a b S Ci:2:004:0\n")), HasSubstr("line 3: no time"));
    EXPECT_THAT(error(lines_of("a 1 Q Ci:2:004:0\n")), HasSubstr("'Q' is no event"));
    EXPECT_THAT(error(lines_of("a 1 S Qi:2:004:0\n")), HasSubstr("no type of a transfer"));
    EXPECT_THAT(error(lines_of("a 1 S Ci:2:x:0\n")), HasSubstr("no bus, device and endpoint"));
    EXPECT_THAT(error(lines_of("a 1 S Ci:2:004:0 s zz\n")), HasSubstr("no setup packet"));
    EXPECT_THAT(error(lines_of("a 1 C Bi:2:004:1 0 x\n")), HasSubstr("no length"));
    EXPECT_THAT(error(lines_of("a 1 C Bi:2:004:1 0 1 = 0102\n")), HasSubstr("no data"));
    EXPECT_THAT(error(lines_of("a 1 S Co:2:004:0 s 21 01 0000 0000 0100 256 = 00\n")),
                HasSubstr("captures of a firmware download"));
    EXPECT_THAT(error("Frame 1: 64 bytes on wire\n    URB transfer type: URB_BULK (0x03)\n"),
                HasSubstr("line 1: a frame without its device"));
    EXPECT_THAT(error("Frame 1: 64 bytes on wire\n    wValue: zz\n"),
                HasSubstr("'    wValue: zz' is not understood"));
}

std::string frame(int number, std::string_view text) {
    return "Frame " + std::to_string(number) + ": 64 bytes on wire (512 bits)\n" +
           std::string(text) + "\n";
}

TEST(Usbmon, FramesSayWhatLinesSay) {
    const std::string head = "    URB transfer type: URB_CONTROL (0x02)\n";
    const std::string text =
        frame(1,
              "    [Source: host]\n    [Destination: 2.4.0]\n    URB id: 0xffff0001\n"
              "    URB type: URB_SUBMIT ('S')\n" +
                  head +
                  "    Endpoint: 0x80, Direction: IN\n    URB length [bytes]: 18\nURB setup\n"
                  "    bmRequestType: 0x80\n    bRequest: GET DESCRIPTOR (6)\n"
                  "    Descriptor Index: 0x00\n    bDescriptorType: 0x01\n    wLength: 18\n") +
        frame(2,
              "    [Source: 2.4.0]\n    [Destination: host]\n    URB id: 0xffff0001\n"
              "    URB type: URB_COMPLETE ('C')\n" +
                  head +
                  "    Endpoint: 0x80, Direction: IN\n    URB status: Success (0)\n"
                  "    URB length [bytes]: 18\nDEVICE DESCRIPTOR\n"
                  "    idVendor: Google Inc. (0x18d1)\n    idProduct: Unknown (0x9302)\n") +
        frame(3,
              "    [Source: host]\n    [Destination: 2.4.0]\n    URB id: 0xffff0002\n"
              "    URB type: URB_SUBMIT ('S')\n" +
                  head +
                  "    Endpoint: 0x00, Direction: OUT\n    URB length [bytes]: 4\nURB setup\n"
                  "    bmRequestType: 0x40\n    bRequest: 1\n    wValue: 0xa30c\n"
                  "    wIndex: 1 (0x0001)\n    wLength: 4\n    Data Fragment: 59000f00\n") +
        frame(4,
              "    [Source: 2.4.0]\n    [Destination: host]\n    URB id: 0xffff0002\n"
              "    URB type: URB_COMPLETE ('C')\n" +
                  head +
                  "    Endpoint: 0x00, Direction: OUT\n    URB status: Success (0)\n"
                  "    URB length [bytes]: 4\n");
    const auto recording = recording_of_usbmon(text);
    ASSERT_TRUE(recording) << recording.error().message();
    const auto lines =
        recording_of_usbmon(lines_of("f 220 S Co:2:004:0 s 40 01 a30c 0001 0004 4 = 59000f00\n"
                                     "f 230 C Co:2:004:0 0 4 >\n"));
    ASSERT_TRUE(lines) << lines.error().message();
    EXPECT_EQ(recording->text, lines->text);
    EXPECT_EQ(recording->data, lines->data);
}

// -- A real stick's session -----------------------------------------------------------------------

Recording real_session(const std::filesystem::path& shared) {
    const auto path = shared / "data/edgetpu/real_sticks/mobilenet_v1_1.0_224.usbmon.txt";
    auto recording = read_recording(path.string());
    EXPECT_TRUE(recording) << recording.error().message();
    return recording ? std::move(*recording) : Recording{};
}

TEST(RealSession, TheDriverStartsAndStopsAgainstIt) {
    REEF_SHARED_OR_SKIP(shared);
    const Recording session = without_data_transfers(real_session(shared));
    const auto recorded = register_transfers(session);
    ASSERT_TRUE(recorded);
    ASSERT_EQ(recorded->size(), 91U);
    const auto replay = replay_bus(session);
    ASSERT_TRUE(replay) << replay.error().message();
    const auto driver = std::make_shared<RecordingBus>(*replay);
    {
        const auto device = Device::open(driver, {});
        ASSERT_TRUE(device) << device.error().message();
    }
    const auto driven = register_transfers(driver->recording());
    ASSERT_TRUE(driven);
    ASSERT_EQ(driven->size(), 91U);
    for (std::size_t i = 0; i < 91; ++i) {
        const auto &a = recorded->at(i), &b = driven->at(i);
        EXPECT_TRUE(a.to_host == b.to_host && a.offset == b.offset && a.bits == b.bits) << i;
        EXPECT_EQ(a.value, b.value) << i << std::hex << " at " << a.offset;
    }
}

/// The session's stick had been used and closed before, at the same clock.
TEST(RealSession, TheSimulatedStickAnswersEveryRegisterTransferAsTheRealOne) {
    REEF_SHARED_OR_SKIP(shared);
    const auto recorded = register_transfers(real_session(shared));
    ASSERT_TRUE(recorded);
    const auto stick = std::make_shared<SimulatedBus>();
    stick->plug({.has_firmware = true, .faults = {}}, test::small_core());
    ASSERT_TRUE(Device::open(stick, {}));
    const auto driver = std::make_shared<RecordingBus>(stick);
    ASSERT_TRUE(Device::open(driver, {}));
    const auto driven = register_transfers(driver->recording());
    ASSERT_TRUE(driven);
    ASSERT_EQ(recorded->size(), 91U);
    ASSERT_EQ(driven->size(), 91U);
    for (std::size_t i = 0; i < 91; ++i) {
        EXPECT_EQ(recorded->at(i).offset, driven->at(i).offset) << i;
        EXPECT_EQ(recorded->at(i).value, driven->at(i).value)
            << i << std::hex << " at " << recorded->at(i).offset;
    }
}

/// `beginning` and then zeros, as the session's payloads are known.
SharedBytes begins_with(std::string_view digits, std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; 2 * i < digits.size(); ++i)
        bytes[i] =
            static_cast<std::byte>(std::stoi(std::string(digits.substr(2 * i, 2)), nullptr, 16));
    return SharedBytes::copy_of(bytes);
}

/// The model of the session is not in the data: a package of its sizes and known bytes.
Package package_of_session(const Recording& session) {
    Package package = test::small_package(7, 1, 1008);
    Executable& main = package.executables.at(0);
    Executable& caching = package.executables.at(1);
    const auto view = wire_view(session).value();
    std::vector<std::string> begins;
    std::vector<std::size_t> sizes;
    for (const std::string& line : view) {
        if (!line.starts_with("out ep 01 len ")) continue;
        sizes.push_back(std::stoul(line.substr(14)));
        begins.push_back(line.substr(line.rfind(' ') + 1));
    }
    // Header and instructions, header and five pieces of parameters, header and instructions, ...
    EXPECT_EQ(sizes.at(1), 6832U);
    EXPECT_EQ(sizes.at(9), 82768U);
    EXPECT_EQ(sizes.at(11), 150528U);
    caching.bitstreams.at(0).instructions = begins_with(begins.at(1), sizes.at(1));
    std::string parameters;
    std::size_t size = 0;
    for (std::size_t piece = 3; piece < 8; ++piece) {
        parameters += begins.at(piece);
        parameters.resize(2 * (size += sizes.at(piece)), '0');
    }
    caching.parameters = begins_with(parameters, size);
    std::get<DmaDescriptorHint>(caching.dma_hints->hints.at(1).what).size_bytes =
        static_cast<int>(size);
    main.bitstreams.at(0) = {.instructions = begins_with(begins.at(9), sizes.at(9)),
                             .field_offsets = {}};
    Layer& input = main.inputs.at(0);
    input.size_bytes = input.z_dim = 150528;
    std::get<DmaDescriptorHint>(main.dma_hints->hints.at(1).what).size_bytes = 150528;
    main.outputs.erase(main.outputs.begin());
    main.dma_hints->hints.erase(main.dma_hints->hints.begin() + 2);
    return package;
}

// The inputs of the session begin with 24 bytes of 128; what follows is not in the capture.
TEST(RealSession, TheDriverRunsItsInferencesAgainstIt) {
    REEF_SHARED_OR_SKIP(shared);
    const Recording session = real_session(shared);
    const auto program = Program::prepare(package_of_session(session));
    ASSERT_TRUE(program) << program.error().message();
    const auto replay = replay_bus(session);
    ASSERT_TRUE(replay) << replay.error().message();
    std::size_t runs = 0;
    {
        const auto device = Device::open(*replay, {});
        ASSERT_TRUE(device) << device.error().message();
        const std::vector<std::byte> input(150528, std::byte{128});
        std::vector<std::byte> output(1008, std::byte{1});
        const Bytes inputs[] = {input};
        const MutableBytes outputs[] = {output};
        for (; runs < 5; ++runs) {
            const auto done = (*device)->run(*program, inputs, outputs);
            ASSERT_TRUE(done) << runs << ": " << done.error().message();
        }
        const auto one_more = (*device)->run(*program, inputs, outputs);
        ASSERT_FALSE(one_more);
        EXPECT_THAT(one_more.error().message(), HasSubstr("recorded: CTRL OUT"));
    }
    EXPECT_EQ(runs, 5U);
}

#ifdef REEF_LARGE_PROGRAMS
/// Sizes of what ends with a packet of less than 1024 bytes.
std::vector<std::size_t> chunks_of(const std::vector<std::size_t>& transfers) {
    std::vector<std::size_t> chunks(1, 0);
    for (const std::size_t size : transfers) {
        chunks.back() += size;
        if (size % 1024 != 0) chunks.push_back(0);
    }
    chunks.pop_back();
    return chunks;
}

/// Of a list with one line for each transfer: the sizes of the input on endpoint 1.
std::vector<std::size_t> listed_input(const std::filesystem::path& list) {
    constexpr std::size_t usbmon_head = 64;
    std::vector<std::size_t> sizes;
    std::ifstream lines(list);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t from = line.find("2.4.1 \u2192 host"), usb = line.find(" USB ");
        if (from == line.npos || usb == line.npos || !line.ends_with("URB_BULK in")) continue;
        const std::size_t size = std::stoul(line.substr(usb + 5)) - usbmon_head;
        if (size != 0) sizes.push_back(size);
    }
    return sizes;
}

// The second half of the model that a real stick ran whole: the outputs are its. Where the
// descriptors that the program fires end, the stick's packets are short; its hints name fewer and
// larger pieces.
TEST(RealSession, OutputsEndWhereTheRealStickEndsItsPackets) {
    REEF_SHARED_OR_SKIP(shared);
    const auto real = chunks_of(
        listed_input(shared / "data/edgetpu/real_sticks/single_coco_ssd_mobilenet_v1_10W.txt"));
    const auto path = shared / "data/models" /
                      "ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2_edgetpu.tflite";
    const auto model = model::load_tflite(path.string());
    ASSERT_TRUE(model) << model.error().message();
    const Package package = packages_of(*model)->at(0).package;
    const auto program = Program::prepare(package);
    ASSERT_TRUE(program) << program.error().message();
    const auto stick = std::make_shared<SimulatedBus>();
    stick->plug({.has_firmware = true, .faults = {}}, std::make_unique<SimulatorCore>());
    const auto bus = std::make_shared<RecordingBus>(stick);
    std::vector<std::vector<std::byte>> tensors;
    for (const auto& layer : (*program)->inputs()) tensors.emplace_back(*tensor_bytes(layer));
    const std::vector<Bytes> inputs(tensors.begin(), tensors.end());
    std::vector<std::vector<std::byte>> results;
    for (const auto& layer : (*program)->outputs()) results.emplace_back(*tensor_bytes(layer));
    const std::vector<MutableBytes> outputs(results.begin(), results.end());
    ASSERT_TRUE((*Device::open(bus, {}))->run(*program, inputs, outputs));
    const Recording recording = bus->recording();
    const auto items = parse_recording(recording);
    ASSERT_TRUE(items);
    std::vector<std::size_t> sizes;
    for (const RecordedItem& item : items->items) {
        if (item.kind == RecordedItem::Kind::completed && item.endpoint == 0x81)
            sizes.push_back(item.size);
    }
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), 184040U);
    EXPECT_EQ(real, chunks_of(sizes));
    EXPECT_EQ(real.size(), 8U);
}
#endif

}  // namespace
}  // namespace reef::edgetpu::usb
