// What captures and logs of real sticks show, one value after the other, on the simulated stick.
#include <gmock/gmock.h>

#include <cstring>

#include "edgetpu/usb/link.h"
#include "edgetpu/usb/register_map.h"
#include "edgetpu/usb/small_program.h"
#include "reef/base/sha256.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"

namespace reef::edgetpu::usb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A host that does single transfers with one stick.
class RawHost {
  public:
    explicit RawHost(const StickOptions& options = {.has_firmware = true, .faults = {}},
                     std::unique_ptr<ChipCore> core = test::small_core())
        : bus_(std::make_shared<SimulatedBus>()) {
        bus_->plug(options, std::move(core));
        open();
    }
    void open() {
        connection_.reset();
        connection_ = std::move(*bus_->open(bus_->list()->at(0)));
    }
    void bus_reset() {
        ASSERT_TRUE(connection_->reset());
        open();
    }
    [[nodiscard]] DeviceInfo device() { return bus_->list()->at(0); }
    [[nodiscard]] SimulatedBus& bus() { return *bus_; }
    [[nodiscard]] Connection& connection() { return *connection_; }

    [[nodiscard]] std::uint64_t read(std::uint32_t offset) {
        Link link(*bus_, *connection_, Milliseconds(100));
        return link.read(find_register(offset)).value();
    }
    void write(std::uint32_t offset, std::uint64_t value) {
        Link link(*bus_, *connection_, Milliseconds(100));
        ASSERT_TRUE(link.write(find_register(offset), value));
    }
    void start(Performance performance = Performance::max) {
        Link link(*bus_, *connection_, Milliseconds(100));
        const auto started = start_chip(link, connection_->speed(), performance, Endpoints::single);
        ASSERT_TRUE(started) << started.error().message();
    }
    void stop() {
        Link link(*bus_, *connection_, Milliseconds(100));
        const auto stopped = stop_chip(link);
        ASSERT_TRUE(stopped) << stopped.error().message();
    }
    /// The answer in hexadecimal; empty when the device refuses.
    [[nodiscard]] std::string control(const Setup& setup) {
        std::vector<std::byte> data(setup.length);
        const auto done = connection_->control(setup, data, Milliseconds(100));
        return done ? to_hex(Bytes(data).first(*done)) : "";
    }
    [[nodiscard]] std::string descriptor(std::uint16_t value) {
        return control({standard_read, get_descriptor, value, 0, 255});
    }
    /// Whether the stick took it.
    [[nodiscard]] bool send(std::uint8_t endpoint, Bytes bytes) {
        const auto id = connection_->submit_out(endpoint, bytes);
        if (!id) return false;
        const auto done = connection_->wait(Milliseconds(0));
        return done && *done && (*done)->id == *id && !(*done)->fault;
    }
    /// What comes within a request of that size; nothing when the endpoint has nothing.
    [[nodiscard]] std::optional<std::vector<std::byte>> receive(std::uint8_t endpoint,
                                                                std::size_t size) {
        std::vector<std::byte> room(size);
        const auto id = connection_->submit_in(endpoint, EndpointType::bulk, room);
        const auto done = connection_->wait(Milliseconds(0));
        if (!id || !done) return std::nullopt;
        if (!*done) {
            connection_->cancel(*id);
            EXPECT_TRUE(connection_->wait(Milliseconds(0)));
            return std::nullopt;
        }
        EXPECT_FALSE((*done)->fault);
        room.resize((*done)->size);
        return room;
    }

  private:
    std::shared_ptr<SimulatedBus> bus_;
    std::unique_ptr<Connection> connection_;
};

constexpr std::uint32_t scu_ctrl_3 = 0x1a318;

TEST(RealStick, ThePowerRegisterReadsAsInEveryCapture) {
    RawHost host;
    EXPECT_EQ(host.read(scu_ctrl_3), 0x50c5025cU);
    host.write(scu_ctrl_3, 0x0085025c);
    EXPECT_EQ(host.read(scu_ctrl_3), 0x00850004U);
    host.start();
    EXPECT_EQ(host.read(scu_ctrl_3), 0x0085000cU);
    host.write(scu_ctrl_3, 0x00c5000c);
    EXPECT_EQ(host.read(scu_ctrl_3), 0x00c5025cU);
}

TEST(RealStick, ThePowerRegisterKeepsTheThrottledClock) {
    RawHost host;
    host.write(scu_ctrl_3, 0x5085025c);
    EXPECT_EQ(host.read(scu_ctrl_3), 0x50850004U);
    host.start(Performance::high);
    EXPECT_EQ(host.read(scu_ctrl_3), 0x5085000cU);
    host.write(scu_ctrl_3, 0x50c5000c);
    EXPECT_EQ(host.read(scu_ctrl_3), 0x50c5025cU);
}

TEST(RealStick, TheEngineIsGatedWhenItIsIdleOnly) {
    RawHost host;
    host.start();
    EXPECT_EQ(csr::cur_gated_gcb.get(host.read(scu_ctrl_3)), 1U);
    // Instructions whose inputs are still to come.
    const std::vector<std::byte> header = {std::byte{96}, {}, {}, {}, {}, {}, {}, {}};
    ASSERT_TRUE(host.send(out_endpoint, header));
    ASSERT_TRUE(host.send(out_endpoint, std::vector<std::byte>(96, std::byte{0})));
    EXPECT_EQ(csr::cur_gated_gcb.get(host.read(scu_ctrl_3)), 0U);
}

TEST(RealStick, ThePerformanceLevelsAreTheHighestFourBits) {
    for (const auto& [level, bits] : {std::pair{Performance::low, 0xfU},
                                      {Performance::medium, 6U},
                                      {Performance::high, 5U},
                                      {Performance::max, 0U}}) {
        RawHost host;
        host.start(level);
        EXPECT_EQ(host.read(scu_ctrl_3) >> 28U, bits);
        host.stop();
        EXPECT_EQ(host.read(scu_ctrl_3), bits << 28U | 0x00c5025cU);
    }
    EXPECT_EQ(csr::gcb_clkdiv.mask, 0x30000000U);
    EXPECT_EQ(csr::axi_clk_125m.mask, 0x40000000U);
    EXPECT_EQ(csr::cpu_clk_250m.mask, 0x80000000U);
}

TEST(RealStick, TheClockOutlivesABusReset) {
    RawHost host;
    host.start();
    host.stop();
    host.bus_reset();
    EXPECT_EQ(host.read(scu_ctrl_3), 0x00c5025cU);
    host.bus().unplug("1-1");
    host.bus().plug({.has_firmware = true, .faults = {}}, test::small_core());
    host.open();
    EXPECT_EQ(host.read(scu_ctrl_3), 0x50c5025cU) << "not the loss of power";
}

TEST(RealStick, WhatAProcessThatDidNotCloseLeavesOutlivesABusReset) {
    RawHost host;
    host.start();
    host.bus_reset();
    EXPECT_EQ(host.read(0x1a0d8), 0x80000000U);
    EXPECT_EQ(host.read(0x1a0d4), 0x80000001U);
    EXPECT_EQ(host.read(0x1a314), 0x00110000U) << "clock gating does not";
    host.start();
}

struct Value {
    std::uint32_t offset;
    std::uint64_t at_open, while_running, after_close;
};

TEST(RealStick, RegistersHaveTheirValuesInEachPhase) {
    const Value values[] = {
        {0x1a30c, 0x000f0059, 0x000f0059, 0x000f0059},
        {0x1a314, 0x00110000, 0x00150000, 0x00150000},
        {0x1a000, 0x0219089a, 0x0219089a, 0x0219089a},
        {0x1a0d4, 1, 0x80000001, 1},
        {0x1a704, 0x70007f, 0x7f, 0x70007f},
        {0x1a33c, 0xc003f, 0x3f, 0xc003f},
        {0x1a0d8, 0, 0x80000000, 0},
        {0x44018, 0, 0, 0},
        {0x4a000, 0x9000, 1, 0x9000},
        {0x48788, 0, 0x7f, 0},
        {0x40020, 0, 0x1e02, 0},
        {0x4c058, 0, 0x80, 0},
        {0x4c148, 0, 0xf0, 0},
        {0x4c160, 0, 0, 0},
        {0x4c060, 0, 0, 0},
        {0x1907c, 0, 0, 0},
    };
    RawHost host;
    for (const Value& each : values)
        EXPECT_EQ(host.read(each.offset), each.at_open) << std::hex << each.offset;
    host.start();
    for (const Value& each : values)
        EXPECT_EQ(host.read(each.offset), each.while_running) << std::hex << each.offset;
    host.stop();
    for (const Value& each : values)
        EXPECT_EQ(host.read(each.offset), each.after_close) << std::hex << each.offset;
    host.bus_reset();
    EXPECT_EQ(host.read(0x1a314), 0x00110000U);
}

TEST(RealStick, TheTestRegisterIsOneByteOfTheChipId) {
    RawHost host;
    host.write(0x1a000, 0xffaaffff);
    EXPECT_EQ(host.read(0x1a000), 0x02aa089aU);
    EXPECT_EQ(field_named(csr::omc0_00, "chip_id").get(0x0219089a), 0x89aU);
    EXPECT_EQ(field_named(csr::omc0_00, "efuse_programming_revision").get(0x0219089a), 2U);
}

TEST(RealStick, ThermalRegistersHaveNames) {
    EXPECT_EQ(csr::thermal_warning_on.mask, 0x80000000U);
    EXPECT_EQ(csr::thermal_shutdown_on.mask, 0x80000000U);
    EXPECT_EQ(field_named(csr::omc0_d4, "method_sel").get(0x80000001), 1U);
    EXPECT_EQ(field_named(csr::omc0_d4, "thm_warn_threshold").mask, 0x03ff0000U);
    EXPECT_EQ(field_named(csr::omc0_dc, "warn_o").mask, 0x80000000U);
    EXPECT_EQ(field_named(csr::omc0_dc, "sd_o").mask, 0x40000000U);
    RawHost host;
    EXPECT_EQ(host.read(0x1a0dc), 0U);
    host.write(0x1a0dc, 1);
    const auto adc = static_cast<int>(csr::thermal_adc.get(host.read(0x1a0dc)));
    const int thousandths = (662 - adc) * 250 + 550;
    EXPECT_GE(thousandths, 42000);
    EXPECT_LE(thousandths, 53000);
}

TEST(RealStick, DescriptorsOnUsb3AreThoseOfACapture) {
    RawHost host;
    EXPECT_EQ(host.descriptor(0x0100),
              "1201100300000009d118029300010000"
              "0001");
    EXPECT_EQ(host.descriptor(0x0f00), "050f160002071002020000000a1003000c0002000000");
    const std::string all = host.descriptor(0x0200);
    ASSERT_EQ(all.size(), 2 * 96U);
    EXPECT_EQ(all.substr(0, 36),
              "09026000010100807009040000"
              "06ffffff00");
    constexpr std::string_view endpoints[] = {"07050102000400", "07050202000400", "07050302000400",
                                              "07058102000400", "07058202000400", "07058303400001"};
    for (std::size_t i = 0; i < std::size(endpoints); ++i) {
        EXPECT_EQ(all.substr(36 + i * 26, 14), endpoints[i]);
        EXPECT_EQ(all.substr(36 + i * 26 + 14, 4), "0630");
    }
}

/// A host may ask for nothing: no room has no address.
TEST(RealStick, RequestsForNoBytesAreAnswered) {
    RawHost chip;
    RawHost boot({.has_firmware = false, .faults = {}});
    for (RawHost* host : {&chip, &boot}) {
        for (const usb::Setup& setup : {usb::Setup{standard_read, get_descriptor, 0x100, 0, 0},
                                        usb::Setup{standard_read, get_configuration, 0, 0, 0}}) {
            EXPECT_EQ(host->connection().control(setup, {}, Milliseconds(100)).value_or(1), 0U);
        }
    }
    EXPECT_EQ(boot.connection().control({dfu_read, dfu_upload, 0, 0, 0}, {}, Milliseconds(100)),
              0U);
    EXPECT_TRUE(chip.connection().submit_in(event_endpoint, EndpointType::interrupt, {}));
}

TEST(RealStick, OnUsb2ThereAreNoCompanions) {
    RawHost host({.speed = Speed::high, .has_firmware = true, .faults = {}});
    EXPECT_EQ(host.descriptor(0x0100).substr(0, 16), "1201100200000040");
    const std::string all = host.descriptor(0x0200);
    ASSERT_EQ(all.size(), 2 * 60U);
    EXPECT_EQ(all.substr(36, 14), "07050102000200");
}

TEST(RealStick, ASimulatedOneSaysSoInAString) {
    RawHost host;
    EXPECT_EQ(host.descriptor(0x0300), "04030904");
    const std::string product = host.descriptor(0x0302);
    ASSERT_EQ(product.size(), 2 * (2 + 2 * simulated_product.size()));
    EXPECT_EQ(host.descriptor(0x0303), "");
    EXPECT_THAT(host.bus().standstill("1-1"), HasSubstr("no descriptor 0x0303"));
}

TEST(RealStick, TheBootLoaderSaysHowLongToWait) {
    RawHost host(StickOptions{});
    const auto status = [&] { return host.control({dfu_read, dfu_get_status, 0, 0, 6}); };
    const auto download = [&](std::uint16_t number, std::size_t size) {
        std::vector<std::byte> block(size, std::byte{7});
        return host.connection()
            .control({dfu_write, dfu_download, number, 0, static_cast<std::uint16_t>(size)}, block,
                     Milliseconds(100))
            .has_value();
    };
    EXPECT_EQ(status(), "000100000200");
    for (std::uint16_t number = 0; number < 43; ++number) {
        ASSERT_TRUE(download(number, number == 42 ? 31 : 256));
        EXPECT_EQ(status(), "000100000500");
    }
    ASSERT_TRUE(download(43, 0));
    EXPECT_EQ(status(), "000100000200");
    EXPECT_FALSE(download(0, 257));
    EXPECT_THAT(host.bus().standstill("1-1"), HasSubstr("a firmware block of 257 bytes"));
    host.bus_reset();
    EXPECT_EQ(host.device().product, chip_product);
}

TEST(RealStick, DetachLeadsToTheBootLoaderAtTheNextBusReset) {
    RawHost host;
    EXPECT_EQ(host.control({dfu_write, dfu_detach, 1000, 0, 0}), "");
    EXPECT_EQ(host.device().product, chip_product);
    host.bus_reset();
    EXPECT_EQ(host.device().product, boot_product);
    host.bus_reset();
    EXPECT_EQ(host.device().product, boot_product) << "its firmware is gone";
}

/// The three streams of small_package(): what a host sends for its second executable.
struct SmallStreams {
    std::vector<std::byte> instructions = std::vector<std::byte>(96, std::byte{1});
    std::vector<std::byte> input = std::vector<std::byte>(56, std::byte{2});
};

std::vector<std::byte> with_header(std::uint32_t tag, Bytes data) {
    std::vector<std::byte> all(header_bytes + data.size());
    const std::uint32_t words[] = {static_cast<std::uint32_t>(data.size()), tag};
    std::memcpy(all.data(), words, sizeof words);
    std::ranges::copy(data, all.begin() + header_bytes);
    return all;
}

TEST(RealStick, HeadersAndDataMayComeInAnyTransfers) {
    const SmallStreams streams;
    std::vector<std::byte> all = with_header(0, streams.instructions);
    const auto input = with_header(1, streams.input);
    all.insert(all.end(), input.begin(), input.end());
    for (const std::size_t piece : {all.size(), std::size_t{104}, std::size_t{7}, std::size_t{5}}) {
        RawHost host({.has_firmware = true, .faults = {}}, test::small_core());
        host.start();
        for (std::size_t at = 0; at < all.size(); at += piece)
            ASSERT_TRUE(
                host.send(out_endpoint, Bytes(all).subspan(at, std::min(piece, all.size() - at))))
                << host.bus().standstill("1-1");
        const auto output = host.receive(output_endpoint, 32768);
        ASSERT_TRUE(output) << piece;
        EXPECT_EQ(output->size(), 40U);
    }
}

TEST(RealStick, InTheMultipleEndpointModeTagsHaveEndpoints) {
    const SmallStreams streams;
    RawHost host({.has_firmware = true, .faults = {}}, test::small_core());
    host.start();
    EXPECT_FALSE(host.send(inputs_endpoint, streams.input));
    EXPECT_THAT(host.bus().standstill("1-1"), HasSubstr("multi_bo_ep"));
    ASSERT_TRUE(host.connection().clear_halt(inputs_endpoint));
    host.write(0x4c160, 1);
    ASSERT_TRUE(host.send(out_endpoint, streams.instructions));
    ASSERT_TRUE(host.send(inputs_endpoint, streams.input));
    EXPECT_EQ(host.receive(output_endpoint, 32768)->size(), 40U);
    host.write(0x1a000, 0xffffffff);
    const std::uint64_t credits = host.read(0x4c150);
    EXPECT_EQ((credits & 0x1fffff) * 8, 28672U);
    EXPECT_EQ((credits >> 21U & 0x1fffff) * 8, 32768U);
    EXPECT_EQ((credits >> 42U & 0x1fffff) * 8, 49152U);
}

TEST(RealStick, TheEventMayBeReadBeforeTheOutput) {
    const SmallStreams streams;
    RawHost host({.has_firmware = true, .faults = {}}, test::small_core());
    host.start();
    ASSERT_TRUE(host.send(out_endpoint, with_header(0, streams.instructions)));
    ASSERT_TRUE(host.send(out_endpoint, with_header(1, streams.input)));
    const auto event = host.receive(event_endpoint, event_bytes);
    ASSERT_TRUE(event);
    EXPECT_EQ(to_hex(*event), "00000000000000000000000004000000");
    EXPECT_EQ(host.receive(output_endpoint, 32768)->size(), 40U);
    EXPECT_EQ(host.receive(output_endpoint, 32768)->size(), 3000U);
}

TEST(RealStick, TheEventComesBeforeTheLastPacketsOfALargeOutputAndNoEarlier) {
    const SmallStreams streams;
    constexpr int large = 256 << 10;
    RawHost host({.has_firmware = true, .faults = {}}, test::small_core(large));
    host.start();
    ASSERT_TRUE(host.send(out_endpoint, with_header(0, streams.instructions)));
    ASSERT_TRUE(host.send(out_endpoint, with_header(1, streams.input)));
    std::size_t taken = 0, before_event = 0;
    while (taken < large + 40) {
        if (before_event == 0 && host.receive(event_endpoint, event_bytes)) before_event = taken;
        const auto output = host.receive(output_endpoint, 1024);
        ASSERT_TRUE(output);
        taken += output->size();
    }
    EXPECT_EQ(taken, large + 40U);
    EXPECT_GT(before_event, taken - 11 * 1024);
    EXPECT_LT(before_event, taken - 3 * 1024);
}

TEST(RealStick, TheDriverTakesAnEventBeforeTheLastOutput) {
    constexpr int large = 256 << 10;
    const auto program = Program::prepare(test::small_package(7, 1, large));
    ASSERT_TRUE(program) << program.error().message();
    const auto stick = std::make_shared<SimulatedBus>();
    stick->plug({.speed = Speed::high, .has_firmware = true, .faults = {}},
                test::small_core(large));
    const auto bus = std::make_shared<RecordingBus>(stick);
    {
        const auto device = Device::open(bus, {});
        ASSERT_TRUE(device) << device.error().message();
        std::vector<std::byte> input(50), a(40), b(large);
        const Bytes inputs[] = {input};
        const MutableBytes outputs[] = {a, b};
        for (int run = 0; run < 3; ++run) {
            const auto done = (*device)->run(*program, inputs, outputs);
            ASSERT_TRUE(done) << done.error().message();
            // The null core's stream goes on from one output to the next.
            const auto first = static_cast<unsigned>(a[0]);
            EXPECT_EQ(static_cast<unsigned>(b[0]), (first + 40 * 7) % 256);
            EXPECT_EQ(static_cast<unsigned>(b[large - 1]), (first + (40 + large - 1) * 7) % 256);
        }
    }
    const std::string text = bus->recording().text;
    const std::size_t event = text.rfind("complete len=16 "),
                      output = text.rfind("complete len=256 ");
    ASSERT_NE(event, text.npos);
    ASSERT_NE(output, text.npos);
    EXPECT_LT(event, output);
}

TEST(RealStick, OnUsb2ChunksEndTransfers) {
    const SmallStreams streams;
    RawHost host({.speed = Speed::high, .has_firmware = true, .faults = {}}, test::small_core());
    host.start();
    ASSERT_TRUE(host.send(out_endpoint, with_header(0, streams.instructions)));
    ASSERT_TRUE(host.send(out_endpoint, with_header(1, streams.input)));
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 4; ++i) sizes.push_back(host.receive(output_endpoint, 4096)->size());
    EXPECT_THAT(sizes, ElementsAre(40, 256, 256, 256));
}

TEST(RealStick, EveryRefusalHasAReason) {
    RawHost host;
    const std::vector<std::byte> bytes(8, std::byte{9});
    const auto reason = [&] { return host.bus().standstill("1-1"); };
    EXPECT_FALSE(host.send(out_endpoint, bytes));
    EXPECT_THAT(reason(), HasSubstr("a chip that sleeps"));
    host.write(scu_ctrl_3, 0x0085025c);
    ASSERT_TRUE(host.connection().clear_halt(out_endpoint));
    EXPECT_FALSE(host.send(out_endpoint, bytes));
    EXPECT_THAT(reason(), HasSubstr("run controls"));
    host.start();
    ASSERT_TRUE(host.connection().clear_halt(out_endpoint));
    EXPECT_FALSE(host.send(out_endpoint, bytes));
    EXPECT_THAT(reason(), HasSubstr("for tag 151587081"));
    EXPECT_FALSE(host.send(7, bytes));
    EXPECT_THAT(reason(), HasSubstr("no endpoint 07"));
    EXPECT_EQ(host.control({register_read, register_32_bits, 0, 0x55, 4}), "");
    EXPECT_THAT(reason(), HasSubstr("no register of 32 bits at 0x550000"));
    EXPECT_EQ(host.control({register_read, 9, 0, 0, 4}), "");
    EXPECT_THAT(reason(), HasSubstr("request 9"));
    RawHost boot(StickOptions{});
    EXPECT_FALSE(boot.send(out_endpoint, bytes));
    EXPECT_THAT(boot.bus().standstill("1-1"), HasSubstr("boot loader"));
}

}  // namespace
}  // namespace reef::edgetpu::usb
