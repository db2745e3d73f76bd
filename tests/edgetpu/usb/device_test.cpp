#include "reef/edgetpu/usb/device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <malloc.h>
#include <zlib.h>

#include <thread>

#include "edgetpu/usb/register_map.h"
#include "edgetpu/usb/scenarios.h"
#include "edgetpu/usb/small_program.h"
#include "reef/base/file.h"
#include "reef/base/log.h"
#include "reef/edgetpu/usb/recording.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef::edgetpu::usb {
namespace {

using test::run_small;
using test::small_program;
using ::testing::HasSubstr;

std::shared_ptr<SimulatedBus> bus_with(const std::vector<std::string>& ports) {
    auto bus = std::make_shared<SimulatedBus>();
    for (const std::string& port : ports) {
        StickOptions options;
        options.port = port;
        options.has_firmware = true;
        bus->plug(options, test::small_core());
    }
    return bus;
}

std::unique_ptr<Device> opened(const std::shared_ptr<Bus>& bus, const std::string& port = {}) {
    DeviceOptions options;
    options.port = port;
    auto device = Device::open(bus, options);
    EXPECT_TRUE(device) << device.error().message();
    return device ? std::move(*device) : nullptr;
}

TEST(Device, ParametersAreSentOncePerToken) {
    const auto device = opened(bus_with({"1-1"}));
    const auto first = small_program(7, 0), second = small_program(7, 1);
    for (const auto& program : {first, second, second, first}) {
        const auto done = run_small(*device, program);
        ASSERT_TRUE(done) << done.error().message();
    }
    EXPECT_EQ(device->counters().runs, 4U);
    EXPECT_EQ(device->counters().parameter_loads, 2U);
    EXPECT_EQ(device->counters().evictions, 0U);

    ASSERT_TRUE(run_small(*device, small_program(8, 2)));
    EXPECT_EQ(device->counters().evictions, 1U);
    ASSERT_TRUE(run_small(*device, first));
    EXPECT_EQ(device->counters().parameter_loads, 4U);
    EXPECT_EQ(device->counters().evictions, 2U);
}

TEST(Device, EqualParametersOfAnotherPackageAreTheSame) {
    const auto device = opened(bus_with({"1-1"}));
    ASSERT_TRUE(run_small(*device, small_program()));
    ASSERT_TRUE(run_small(*device, small_program()));
    EXPECT_EQ(device->counters().parameter_loads, 1U);
}

TEST(Device, ATokenOfZeroAlwaysLoads) {
    const auto device = opened(bus_with({"1-1"}));
    const auto program = small_program(0);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(run_small(*device, program));
    EXPECT_EQ(device->counters().parameter_loads, 3U);
}

TEST(Device, WrongTensorsAreRefusedBeforeAnythingIsSent) {
    const auto bus = bus_with({"1-1"});
    const auto device = opened(bus);
    const auto program = small_program();
    const std::size_t before = bus->transactions("1-1");
    std::vector<std::byte> small(49), a(40), b(3000);
    const Bytes inputs[] = {small};
    const MutableBytes outputs[] = {a, b};
    EXPECT_THAT(device->run(program, inputs, outputs).error().message(),
                HasSubstr("input 0: 49 bytes given, the tensor has 50"));
    EXPECT_THAT(device->run(program, inputs, {}).error().message(), HasSubstr("0 outputs given"));
    EXPECT_EQ(bus->transactions("1-1"), before);
}

TEST(Device, WithoutAStickItSaysSo) {
    const auto device = Device::open(std::make_shared<SimulatedBus>(), {});
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().cause, Cause::device_missing);
    DeviceOptions options;
    options.port = "4-2";
    const auto elsewhere = Device::open(bus_with({"1-1"}), options);
    ASSERT_FALSE(elsewhere);
    EXPECT_THAT(elsewhere.error().message(), HasSubstr("no Edge TPU at USB port 4-2"));
}

TEST(Device, FirmwareIsLoadedWhenTheStickHasNone) {
    const reef::test::TemporaryFolder folder;
    const std::string firmware = folder.file("firmware.bin");
    ASSERT_TRUE(write_file(firmware, test::any_firmware()));
    auto bus = std::make_shared<SimulatedBus>();
    bus->plug({}, test::small_core());
    DeviceOptions options;
    options.firmware = firmware;
    std::string warning;
    set_log_sink([&](LogLevel level, std::string_view text) {
        if (level == LogLevel::warning) warning = text;
    });
    const auto device = Device::open(bus, options);
    set_log_sink({});
    ASSERT_TRUE(device) << device.error().message();
    EXPECT_TRUE(run_small(**device, small_program()));
    EXPECT_THAT(warning, HasSubstr(firmware + ": not a firmware that Reef knows (SHA-256 "));
    EXPECT_THAT(warning, HasSubstr(known_firmware_hint));

    bus->plug({}, test::small_core());
    options.firmware = folder.file("none.bin");
    const auto none = Device::open(bus, options);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().cause, Cause::not_found);
}

TEST(Device, RegistersAreReadAndWrittenByName) {
    const auto device = opened(bus_with({"1-1"}));
    // Also on a chip that runs.
    EXPECT_EQ(device->read_register(*csr::scalar_core_run_control), std::uint64_t{0});
    ASSERT_TRUE(device->write_register(*csr::idle, 5));
    EXPECT_EQ(device->read_register(*csr::idle), std::uint64_t{5});
    const auto power = device->read_register(*csr::scu_ctrl_3);
    ASSERT_TRUE(power);
    EXPECT_EQ(csr::power_state.get(*power), csr::running);
}

TEST(Device, ComesBackAfterAReplug) {
    const auto bus = bus_with({"1-1"});
    const auto device = opened(bus);
    ASSERT_TRUE(run_small(*device, small_program()));
    StickOptions options;
    options.has_firmware = true;
    bus->unplug("1-1");
    const auto gone = run_small(*device, small_program());
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().cause, Cause::device_missing) << gone.error().message();
    bus->plug(options, test::small_core());
    const auto again = run_small(*device, small_program());
    EXPECT_TRUE(again) << again.error().message();
    EXPECT_EQ(device->counters().recoveries, 1U);
}

TEST(Device, ThreadsShareAStickAndSticksShareABus) {
    const auto bus = bus_with({"1-1", "1-2"});
    const std::shared_ptr<Device> first = opened(bus, "1-1"), second = opened(bus, "1-2");
    std::vector<std::thread> threads;
    std::atomic<int> good = 0;
    constexpr int runs = 200;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const auto device = t % 2 == 0 ? first : second;
            const auto program = small_program(7, static_cast<std::uint8_t>(t));
            for (int i = 0; i < runs; ++i) {
                if (run_small(*device, program)) ++good;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(good, 4 * runs);
    EXPECT_EQ(first->counters().runs + second->counters().runs, 4U * runs);
    EXPECT_EQ(first->counters().parameter_loads, 2U);
}

TEST(Device, TheNextInputTravelsWhileTheChipWorks) {
    const auto bus = bus_with({"1-1"});
    const auto device = opened(bus);
    const auto a = small_program(7, 0), b = small_program(7, 1);
    ASSERT_TRUE(test::start_small(*device, a));
    for (int i = 0; i < 50; ++i) {
        const auto started = test::start_small(*device, i % 2 == 0 ? b : a);
        ASSERT_TRUE(started) << started.error().message();
        const auto finished = test::finish_small(*device);
        ASSERT_TRUE(finished) << finished.error().message();
    }
    ASSERT_TRUE(test::finish_small(*device));
    EXPECT_EQ(device->counters().runs, 51U);
    EXPECT_EQ(device->counters().parameter_loads, 2U);
}

TEST(Device, StartedInferencesAreCounted) {
    const auto device = opened(bus_with({"1-1"}));
    const auto program = small_program();
    EXPECT_THAT(test::finish_small(*device).error().message(), HasSubstr("no inference"));
    ASSERT_TRUE(test::start_small(*device, program));
    EXPECT_THAT(run_small(*device, program).error().message(), HasSubstr("is not finished"));
    ASSERT_TRUE(test::start_small(*device, program));
    EXPECT_THAT(test::start_small(*device, program).error().message(),
                HasSubstr("2 inferences are under way"));
    ASSERT_TRUE(test::finish_small(*device));
    ASSERT_TRUE(test::finish_small(*device));
    EXPECT_TRUE(run_small(*device, program));
}

TEST(Device, AFaultLosesEveryInferenceUnderWay) {
    const auto bus = bus_with({"1-1"});
    const auto device = opened(bus);
    const auto program = small_program(7, 1);
    ASSERT_TRUE(test::start_small(*device, program));
    ASSERT_TRUE(test::start_small(*device, program));
    bus->unplug("1-1");
    const auto first = test::finish_small(*device), second = test::finish_small(*device);
    ASSERT_FALSE(first);
    ASSERT_FALSE(second);
    EXPECT_EQ(first.error().cause, Cause::device_missing) << first.error().message();
    EXPECT_THAT(second.error().message(), HasSubstr("lost with another inference"));
    StickOptions options;
    options.has_firmware = true;
    bus->plug(options, test::small_core());
    EXPECT_TRUE(test::start_small(*device, program));
    EXPECT_TRUE(test::finish_small(*device));
}

TEST(Device, ManyRunsNeedNoMoreMemory) {
    const auto device = opened(bus_with({"1-1"}));
    const auto program = small_program();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(run_small(*device, program));
    const auto before = mallinfo2().uordblks;
    for (int i = 0; i < 100000; ++i) ASSERT_TRUE(run_small(*device, program));
    const auto after = mallinfo2().uordblks;
    EXPECT_LT(after, before + 4096);
    EXPECT_EQ(device->counters().runs, 101000U);
}

TEST(Recording, IsReplayedAndTheFirstDifferenceIsNamed) {
    const auto recorder = std::make_shared<RecordingBus>(bus_with({"1-1"}));
    ASSERT_TRUE(run_small(*opened(recorder), small_program()));
    const Recording recording = recorder->recording();

    const auto same = replay_bus(recording);
    ASSERT_TRUE(same) << same.error().message();
    EXPECT_TRUE(run_small(*opened(*same), small_program()));

    const auto other = replay_bus(recording);
    const auto device = opened(*other);
    const auto differs = run_small(*device, small_program(7, 3));
    ASSERT_FALSE(differs);
    EXPECT_THAT(differs.error().message(), HasSubstr("the host does: BULK OUT ep=01 len=64"));
    EXPECT_THAT(differs.error().message(), HasSubstr("recorded: BULK OUT ep=01"));
}

TEST(Recording, IsReadBackFromItsFiles) {
    const reef::test::TemporaryFolder folder;
    const auto recorder = std::make_shared<RecordingBus>(bus_with({"1-1"}));
    ASSERT_TRUE(run_small(*opened(recorder), small_program()));
    const Recording recording = recorder->recording();
    ASSERT_TRUE(write_recording(folder.file("traffic.log"), recording));
    const auto read = read_recording(folder.file("traffic.log"));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->text, recording.text);
    EXPECT_EQ(read->data, recording.data);
    const auto view = wire_view(*read);
    ASSERT_TRUE(view) << view.error().message();
    EXPECT_EQ(view->front(), "open 18d1:9302");
    EXPECT_THAT(*view, ::testing::Contains(HasSubstr("out tag 2 len 300")));
    EXPECT_THAT(*view, ::testing::Contains(HasSubstr("in ep 81 bytes 3040")));
}

/// As a member of a gzip file.
std::vector<std::byte> gzip_member(Bytes contents) {
    z_stream stream{};
    constexpr int gzip_window = 15 + 16;
    EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::vector<std::byte> out(deflateBound(&stream, contents.size()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(contents.data()));
    stream.avail_in = static_cast<uInt>(contents.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

TEST(Recording, IsReadFromGzipFilesOfSeveralMembers) {
    const reef::test::TemporaryFolder folder;
    const std::string path = folder.file("traffic.log");
    // Larger than what is unpacked at once, and not to be packed smaller.
    std::vector<std::byte> data(std::size_t{3} << 20);
    std::uint32_t state = 1;
    for (auto& byte : data)
        byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    const std::string_view text = "000000 OPEN 18d1:9302\n000001 CLOSE\n";
    std::vector<std::byte> members;
    for (const Bytes part : {as_bytes(text.substr(0, 7)), as_bytes(text.substr(7))}) {
        const auto member = gzip_member(part);
        members.insert(members.end(), member.begin(), member.end());
    }
    ASSERT_TRUE(write_file(path + ".gz", members));
    ASSERT_TRUE(write_file(path + ".bin.gz", gzip_member(data)));
    const auto read = read_recording(path);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->text, text);
    EXPECT_EQ(read->data, data);

    auto cut = members;
    cut.pop_back();
    ASSERT_TRUE(write_file(path + ".gz", cut));
    const std::string second =
        fmt::format("the gzip member at byte {}", gzip_member(as_bytes(text.substr(0, 7))).size());
    EXPECT_THAT(read_recording(path).error().message(),
                HasSubstr(second + ": the file ends in it"));
    auto other = members;
    for (const char c : std::string("garbage")) other.push_back(static_cast<std::byte>(c));
    ASSERT_TRUE(write_file(path + ".gz", other));
    const auto refused = read_recording(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, Cause::bad_input);
    EXPECT_THAT(refused.error().message(),
                HasSubstr(fmt::format("the gzip member at byte {}: ", members.size())));
}

TEST(Recording, MalformedLinesAreErrorsWithTheirNumber) {
    for (const char* text :
         {"000000 NOISE\n", "x\n", "000000 OPEN 18d1\n", "000000 CLAIM x\n",
          "000000 CTRL IN  bmRequestType=80\n", "000000 BULK OUT ep=01 async id=1 len=9 off=0\n",
          "000000 BULK IN  ep=81 async id=1 unknown\n",
          "000000 #   chunk 0 size=8 patches(bit:desc:pos) 40:2:0\n"}) {
        const auto view = wire_view({.text = text, .data = {}});
        ASSERT_FALSE(view) << text;
        EXPECT_THAT(view.error().message(), HasSubstr("line 1")) << text;
    }
}

TEST(Firmware, IsTakenOutOfAVendorsLibrary) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto firmware = test::golden(test::scenarios().at(0)).firmware;
    ASSERT_EQ(firmware.size(), 10783U);
    const reef::test::TemporaryFolder temporary;
    for (const std::size_t at : {std::size_t{7}, std::size_t{100000}}) {
        std::vector<std::byte> library(at + firmware.size() + 1000, std::byte{3});
        std::ranges::copy(firmware, library.begin() + static_cast<std::ptrdiff_t>(at));
        const std::string path = temporary.file("libedgetpu.so");
        ASSERT_TRUE(write_file(path, library));
        const auto found = find_firmware(path);
        ASSERT_TRUE(found) << found.error().message();
        EXPECT_TRUE(found->known);
        EXPECT_EQ(found->bytes, firmware);
        EXPECT_THAT(found->origin, HasSubstr("libedgetpu.so at byte " + std::to_string(at)));
    }
    ASSERT_TRUE(write_file(temporary.file("other.so"), std::vector<std::byte>(70000)));
    EXPECT_THAT(find_firmware(temporary.file("other.so")).error().message(),
                HasSubstr("the known one is not inside"));
}

TEST(Firmware, IsFoundByItsDigestOnly) {
    std::vector<std::byte> file(50000, std::byte{3});
    EXPECT_EQ(find_known_firmware(file), std::nullopt);
    EXPECT_EQ(find_known_firmware({}), std::nullopt);
}

}  // namespace
}  // namespace reef::edgetpu::usb
