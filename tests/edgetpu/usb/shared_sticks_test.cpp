// Sticks behind a server, and the driver as its client; the packets travel by calls.
#include "reef/edgetpu/usb/shared_sticks.h"

#include <gmock/gmock.h>

#include <random>

#include "edgetpu/usb/shared_request.h"
#include "edgetpu/usb/small_program.h"
#include "reef/edgetpu/usb/recording.h"

namespace reef::edgetpu::usb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SharedSticks : public ::testing::Test {
  protected:
    SharedSticks() {
        for (const char* port : {"2-1", "2-2"}) {
            StickOptions options;
            options.port = port;
            options.has_firmware = true;
            server_.plug(options, test::small_core());
        }
    }
    SharedBus::Connect connect() {
        return [this]() -> std::optional<Exchange> {
            auto session = std::make_shared<StickServer::Session>(server_);
            return [session](const Packet& request) -> std::optional<Packet> {
                return session->answer(request);
            };
        };
    }
    std::shared_ptr<SharedBus> client(const std::string& port = "2-1") {
        return std::make_shared<SharedBus>(connect(), port);
    }

    StickServer server_;
};

TEST_F(SharedSticks, TheDriverRunsAsOnAStickOfItsOwn) {
    EXPECT_THAT(*SharedBus::ports(connect()), ElementsAre("2-1", "2-2"));
    const auto recorder = std::make_shared<RecordingBus>(client());
    const auto own = std::make_shared<SimulatedBus>();
    own->plug({.has_firmware = true, .faults = {}}, test::small_core());
    const auto own_recorder = std::make_shared<RecordingBus>(own);
    for (const auto& bus : {recorder, own_recorder}) {
        const auto device = Device::open(bus, {});
        ASSERT_TRUE(device) << device.error().message();
        for (int run = 0; run < 3; ++run) {
            const auto done = test::run_small(**device, test::small_program());
            ASSERT_TRUE(done) << done.error().message();
        }
    }
    EXPECT_EQ(*wire_view(recorder->recording()), *wire_view(own_recorder->recording()));
    EXPECT_EQ(client()->descriptors("2-1")->configuration, own->descriptors("1-1")->configuration);
    EXPECT_EQ(client()->descriptors("2-1")->strings, own->descriptors("1-1")->strings);
    EXPECT_FALSE(client()->descriptors("9-9"));
}

TEST_F(SharedSticks, AStickHasOneUserAtATimeAndKeepsItsState) {
    {
        const auto first = Device::open(client(), {});
        ASSERT_TRUE(first) << first.error().message();
        const auto second = Device::open(client(), {});
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().cause, Cause::device_denied);
        EXPECT_THAT(second.error().message(), HasSubstr("another process has claimed"));
        EXPECT_TRUE(test::run_small(**first, test::small_program()));
        EXPECT_TRUE(Device::open(client("2-2"), {}));
    }
    // What the first one left: its clock.
    const auto device = Device::open(client(), {});
    ASSERT_TRUE(device) << device.error().message();
    EXPECT_TRUE(test::run_small(**device, test::small_program()));
}

TEST_F(SharedSticks, ReasonsTravelToo) {
    const auto bus = client();
    const auto connection = bus->open(bus->list()->at(0));
    ASSERT_TRUE(connection);
    const std::vector<std::byte> bytes(8);
    ASSERT_TRUE((*connection)->submit_out(1, bytes));
    const auto ended = (*connection)->wait(Milliseconds(0));
    ASSERT_TRUE(ended && *ended);
    EXPECT_EQ((*ended)->fault, Fault::stall);
    EXPECT_THAT(bus->refusal("2-1"), HasSubstr("a chip that sleeps"));
    EXPECT_EQ(bus->standstill("2-1"), bus->refusal("2-1"));
    const auto begin = bus->now();
    const auto nothing = (*connection)->wait(Milliseconds(20));
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing);
    EXPECT_GE(bus->now() - begin, Milliseconds(20));
}

TEST_F(SharedSticks, AServerThatIsGoneIsADisconnectedStick) {
    SharedBus bus([]() -> std::optional<Exchange> { return std::nullopt; }, "2-1");
    EXPECT_TRUE(bus.list()->empty());
    EXPECT_EQ(bus.open({}).error().fault, Fault::disconnected);
    EXPECT_EQ(bus.standstill("2-1"), "");
}

TEST_F(SharedSticks, AnyPacketIsAnswered) {
    std::mt19937 random(5);
    StickServer::Session session(server_);
    Packet open = Packet().put(SharedRequest::open);
    put_device(open, client()->list()->at(0));
    for (int round = 0; round < 20000; ++round) {
        if (round % 50 == 0) static_cast<void>(session.answer(open));
        std::vector<std::byte> bytes(random() % 40);
        for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 5 == 0 ? random() : 0);
        if (!bytes.empty()) bytes[0] = static_cast<std::byte>(random() % 19);
        Packet answer = session.answer(Packet(bytes));
        auto maybe = std::optional(std::move(answer));
        static_cast<void>(take_outcome(maybe));
    }
    EXPECT_FALSE(client()->list()->empty());
}

TEST(PacketTest, TakesWhatWasPutAndNoMore) {
    Packet packet;
    packet.put(std::uint16_t{7}).put_text("abc");
    EXPECT_EQ(packet.take<std::uint16_t>(), 7U);
    EXPECT_EQ(packet.take_text(), "abc");
    EXPECT_TRUE(packet.good());
    EXPECT_EQ(packet.take<std::uint32_t>(), 0U);
    EXPECT_FALSE(packet.good());
    Packet hostile;
    hostile.put(std::uint32_t{0xffffffff});
    EXPECT_TRUE(hostile.take_bytes().empty());
    EXPECT_FALSE(hostile.good());
}

}  // namespace
}  // namespace reef::edgetpu::usb
