#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "../isa/program_data.h"
#include "edgetpu/sim/machine/machine.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/program_check.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> faults_of(const std::vector<Bytes>& chunks) {
    std::vector<std::string> out;
    for (const auto& f : check_synchronisation(chunks))
        out.push_back(fmt::format("{}:{:#x}: {}", f.chunk, f.word, f.what));
    return out;
}

std::vector<std::string> faults(const std::string& body) {
    const auto stream = assemble("start\n" + body + "halt\n");
    EXPECT_TRUE(stream) << stream.error().message();
    return stream ? faults_of({*stream}) : std::vector<std::string>();
}

// -- Rules one by one -----------------------------------------------------------------------------

TEST(Synchronisation, WaitsNeedTheirEventsBeforeTheFence) {
    const std::string copy = "wide_to_narrow tiles=3 dst.limit0=3 signal.written.enable=1\n";
    const std::string mac = "mac tiles=3 wait0.enable=1 wait0.counter=11 wait0.start=";
    const std::string fence = "fence tiles=3 engines=3\n";
    EXPECT_THAT(faults(copy + mac + "4\n" + fence), IsEmpty());
    EXPECT_THAT(faults(copy + mac + "5\n" + fence),
                ElementsAre("0:0x8: tiles 0x0003: wait0 of mac needs WIDE_TO_NARROW 5, 4 come "
                            "before the fence at word 0x0019"));
    EXPECT_THAT(faults(mac + "4\n" + fence + copy),
                ElementsAre("0:0x1: tiles 0x0003: wait0 of mac needs WIDE_TO_NARROW 4, 0 come "
                            "before the fence at word 0x0012"));
    EXPECT_THAT(faults(mac + "1 wait0.step=3 wait0.level=1 loop.limit1=2\n" + copy),
                ElementsAre("0:0x1: tiles 0x0003: wait0 of mac needs WIDE_TO_NARROW 7, 4 come "
                            "before the end"));
}

TEST(Synchronisation, InstructionsThatWaitForEachOtherAreFound) {
    const auto program = [](int start) {
        return fmt::format(
            "ring_send tiles=1 to_tiles=2 src.limit0=3\n"
            "ring_receive_a tiles=2 dst.limit0=3 signal.ring_read.enable=1 wait0.enable=1 "
            "wait0.counter=11 wait0.start={} wait0.side=1\n"
            "wide_to_narrow tiles=2 src.limit0=3 dst.limit0=255 signal.written.enable=1 "
            "wait0.enable=1 wait0.counter=14 wait0.start=1 wait0.step=1\n",
            start);
    };
    EXPECT_THAT(faults(program(-64)), IsEmpty());
    EXPECT_THAT(faults(program(36)),
                ElementsAre("0:0x9: tile 1: wide_to_narrow cannot begin before ring_receive_a at "
                            "word 0x0005, which needs it to have begun"));
}

TEST(Synchronisation, FencesSetCountersToTheirValue) {
    const std::string mac = "mac tiles=1 wait0.enable=1 wait0.counter=11 wait0.start=65\n";
    EXPECT_THAT(faults("fence tiles=1 reset.counters=0x800 reset.value=65\n" + mac), IsEmpty());
    EXPECT_THAT(faults("fence tiles=1 reset.counters=0x800 reset.value=64\n" + mac),
                ElementsAre(HasSubstr("tile 0: wait0 of mac needs WIDE_TO_NARROW 65, 64 come")));
}

TEST(Synchronisation, CountersAreSetWhenNothingUsesThem) {
    const std::string copy = "wide_to_narrow tiles=1 signal.written.enable=1\n";
    EXPECT_THAT(faults(copy + "fence tiles=1 engines=2 reset.counters=0x800\n"), IsEmpty());
    EXPECT_THAT(faults(copy + "fence tiles=1 engines=1 reset.counters=0x800\n"),
                ElementsAre("0:0x8: tile 0: WIDE_TO_NARROW is set to 0 while it may "
                            "be counted by WIDE_TO_NARROW"));
    const std::string mac = "mac tiles=1 wait0.enable=1 wait0.counter=11 wait0.start=";
    EXPECT_THAT(faults(mac + "1\nfence tiles=1 reset.counters=0x800\n" + copy), IsEmpty());
    EXPECT_THAT(faults(mac + "0\nfence tiles=1 reset.counters=0x800\n"),
                ElementsAre("0:0x12: tile 0: WIDE_TO_NARROW is set from 0 to 0 while mac at word "
                            "0x0001 may wait for 0"));
}

TEST(Synchronisation, NotificationsAndSyncsMatch) {
    const std::string fence = "fence tiles=3 notify=1\n";
    const std::string sync = "sync notified.tiles=3 notified.count=1\n";
    EXPECT_THAT(faults(fence + sync), IsEmpty());
    EXPECT_THAT(faults(sync + fence),
                ElementsAre("0:0x1: tiles 0x0003: sync waits for notification 1, 0 come before "
                            "it"));
    EXPECT_THAT(faults(fence), ElementsAre("0:0x1: tiles 0x0003: 1 notifications at the end, sync "
                                           "waits for 0"));
}

const std::string send_to_1 =
    "ring_send tiles=1 to_tiles=2 src.limit0=1 signal.producer.enable=1 wait0.enable=1 "
    "wait0.counter=17 wait0.start=";
const std::string receive_2 = "ring_receive_a tiles=2 dst.limit0=1\n";

TEST(Synchronisation, SendersTakeTurns) {
    EXPECT_THAT(faults(send_to_1 + "0\n" + receive_2 + send_to_1 + "2\n" + receive_2), IsEmpty());
    EXPECT_THAT(faults(send_to_1 + "0\n" + receive_2 + send_to_1 + "3\n" + receive_2),
                ::testing::Contains("0:0x9: tile 0: wait0 of ring_send takes turn 3 on ring A, 2 "
                                    "is due"));
    EXPECT_THAT(faults("ring_send tiles=1 to_tiles=2 signal.producer.enable=1\n"
                       "ring_receive_a tiles=2\n"),
                ElementsAre("0:0x1: tile 0: ring_send counts on ring A without waiting for its "
                            "turn"));
    EXPECT_THAT(faults(send_to_1 + "0\n" + receive_2 + "sync expected.counters=0x20 expected5=3\n"),
                ElementsAre("0:0x9: sync expects PRODUCER_A 3, 2 come before it"));
}

TEST(Synchronisation, RowsAreReceivedBeforeTheCountBeginsAnew) {
    const std::string sync = "sync reset.counters=0x20\n";
    EXPECT_THAT(faults(send_to_1 + "0\n" + receive_2 + sync), IsEmpty());
    EXPECT_THAT(faults(send_to_1 + "0\n" + sync + receive_2),
                ElementsAre("0:0x1: tile 1: 2 rows are sent to it on ring A, 0 are received before "
                            "the sync at word 0x0005; the first without counterpart belong to this "
                            "ring_send",
                            "0:0x7: tile 1: 0 rows are sent to it on ring A, 2 are received before "
                            "the end; the first without counterpart belong to this "
                            "ring_receive_a"));
    EXPECT_THAT(faults(send_to_1 + "0\nring_receive_a tiles=2 head.enable=1 head.rows=1\n"),
                IsEmpty());
}

TEST(Synchronisation, EachGroupHasItsHead) {
    const auto program = [](unsigned rows, unsigned level) {
        return fmt::format(
            "ring_send tiles=1 to_tiles=2 src.limit0={}\n"
            "ring_receive_a tiles=2 dst.limit0=2 dst.limit1=3 head.enable=1 head.rows=2 "
            "head.level={}\n",
            rows - 1, level);
    };
    for (const unsigned level : {0U, 1U}) {
        EXPECT_THAT(faults(program(4 * (3 + 2), level)), IsEmpty());
        EXPECT_THAT(faults(program(4 * 3 + 2, level)), ElementsAre(HasSubstr("20 are received")));
    }
    EXPECT_THAT(faults(program(4 * 3 + 2, 2)), IsEmpty());
}

TEST(Synchronisation, FencesExpectMessagesThatWereSent) {
    const auto fence = [](unsigned ring, unsigned messages) {
        return fmt::format("fence tiles=4 expected.counters={} expected={}\n", 1U << ring,
                           messages);
    };
    const std::string sent = send_to_1 + "0\n" + receive_2;
    EXPECT_THAT(faults(sent + fence(0, 2)), IsEmpty());
    EXPECT_THAT(faults(sent + fence(0, 3)),
                ElementsAre("0:0x9: tile 2: fence expects RING_PRODUCER_A 3, 2 come before it"));
    EXPECT_THAT(faults(sent + fence(1, 2)),
                ElementsAre("0:0x9: tile 2: fence expects RING_PRODUCER_B 2, 0 come before it"));
    EXPECT_THAT(faults(fence(0, 2) + sent), ElementsAre(HasSubstr("0 come before it")));
}

TEST(Synchronisation, MeshTransfersHaveTwoEnds) {
    const std::string send = "mesh_south tiles=1 src.mask=1 src.limit0=3\n";
    EXPECT_THAT(faults(send + "mesh_south tiles=0x10 dst.mask=1 dst.limit0=3\n"), IsEmpty());
    EXPECT_THAT(faults(send + "mesh_south tiles=0x10 dst.mask=1 dst.limit0=3 fill=1\n"),
                ElementsAre("0:0x1: tile 4: 4 words are sent south to it, 0 are received; the "
                            "first without counterpart belong to this mesh_south"));
    EXPECT_THAT(faults("mesh_east tiles=8 src.mask=1 src.limit0=3\n"),
                ElementsAre("0:0x1: tile 3: mesh_east sends beyond the edge of the grid"));
}

TEST(Synchronisation, HostTransfersAreWhatTheFifosMove) {
    // A descriptor of 16 bytes of input.
    const std::string dma =
        "bundle alu.op=0x2f alu.dst=1 alu.operand=1\n"
        "bundle store.op=5 store.address=3 store.reg=1 alu.op=0x2f alu.dst=1 alu.operand=16\n"
        "bundle store.op=5 store.address=2 store.reg=1\n"
        "bundle store.op=6\n";
    const std::string infeed = "infeed source=1 dst.limit0=1\n";
    const std::string push = "ring_push source=1 src.limit0=1 to_tiles=1 message=3\n";
    const std::string receive = "ring_receive_a tiles=1\n";
    EXPECT_THAT(faults(dma + infeed + push + receive), IsEmpty());
    EXPECT_THAT(faults(infeed + push + receive),
                ElementsAre(HasSubstr("the input transfers of the program have 0 bytes, infeed "
                                      "16")));
    EXPECT_THAT(faults(dma + infeed + "ring_push source=1 to_tiles=1 message=3\n" + receive),
                ElementsAre(HasSubstr("1 units of 8 bytes go to tiles before it, 2 came")));
    EXPECT_THAT(faults(dma + infeed +
                       "ring_push source=1 src.base=1 src.limit0=1 to_tiles=1 "
                       "message=3\n" +
                       receive),
                ElementsAre(HasSubstr("0:0x7: ring_push begins at unit 0x1 of its FIFO, 0x0 is "
                                      "due")));
}

// Addresses begin anew behind the FIFO's last unit.
TEST(Synchronisation, FifosAreCircular) {
    const auto program = [](unsigned base) {
        return fmt::format(
            "bundle alu.op=0x2f alu.dst=1 alu.operand=1\n"
            "bundle store.op=5 store.address=3 store.reg=1 alu.op=0x2f alu.dst=1 "
            "alu.operand=0x40000\n"
            "bundle store.op=5 store.address=2 store.reg=1\n"
            "bundle store.op=6\n"
            "infeed source=1 dst.base=0x10 dst.limit0=0x7fff\n"
            "ring_push source=1 src.base=0x10 src.limit0=0x7fef to_tiles=1 message=3\n"
            "ring_push source=1 src.base={} src.limit0=0xf to_tiles=1 message=3\n"
            "ring_receive_a tiles=1 dst.limit0=0x3fff\n",
            base);
    };
    EXPECT_THAT(faults(program(0)), IsEmpty());
    EXPECT_THAT(faults(program(1)),
                ElementsAre(HasSubstr("ring_push begins at unit 0x1 of its FIFO, 0x0 is due")));
}

TEST(Synchronisation, RowsToTheScalarCoreHoldWhatRingPopTakes) {
    const auto program = [](unsigned units) {
        return fmt::format(
            "bundle alu.op=0x2f alu.dst=1 alu.operand=3\n"
            "bundle store.op=5 store.address=3 store.reg=1 alu.op=0x2f alu.dst=1 alu.operand={}\n"
            "bundle store.op=5 store.address=2 store.reg=1\n"
            "bundle store.op=6\n"
            "narrow_to_wide tiles=1 dst.base=9 src.limit0=2 row_level=1\n"
            "ring_send tiles=1 src.base=9 to_scalar=1\n"
            "ring_pop dst.limit0={} to_host=1\n",
            units * 8, units - 1);
    };
    EXPECT_THAT(faults(program(2)), IsEmpty());
    EXPECT_THAT(faults(program(3)), ElementsAre("0:0x10: ring_pop takes 3 units, the rows sent to "
                                                "it before the end hold 2"));
}

// Rows on their way to a ring_push are taken by the ring_pop that counts them, the scalar core's
// own by one that does not.
TEST(Synchronisation, RelaysAndTheScalarCoresOwnRowsAreToldApart) {
    const auto program = [](std::string_view counts) {
        return fmt::format(
            "ring_pop dst.limit0=63 message=63 signal.outfeed.enable={}\n"
            "ring_send tiles=1 to_scalar=1 ring_b=1\n"
            "narrow_to_wide tiles=1 dst.base=9 src.limit0=2 row_level=1\n"
            "ring_send tiles=1 src.base=9 to_scalar=1\n"
            "ring_pop dst.limit0=2 message=63\n",
            counts);
    };
    EXPECT_THAT(faults(program("1")), IsEmpty());
    EXPECT_THAT(faults(program("0")), Not(IsEmpty()));
}

TEST(Synchronisation, WhatCannotBeFollowedIsSaid) {
    EXPECT_THAT(faults("bundle alu.op=8\n"),
                ElementsAre(HasSubstr("0:0x1: the order of issue cannot be followed: word 0x1: not "
                                      "modelled: scalar opcode 0x00 bundle: alu.op 0x08")));
    EXPECT_THAT(faults("branch offset=0\n"),
                ElementsAre(HasSubstr("no halt within 1048576 instructions")));
    const auto halt = [](const std::string& body) {
        return check_halts({{*assemble("start\n" + body + "halt\n")}});
    };
    EXPECT_FALSE(halt("bundle\n"));
    EXPECT_FALSE(halt("branch offset=0\n").value().unmodelled);
    EXPECT_TRUE(halt("bundle alu.op=8\n").value().unmodelled);
}

TEST(Synchronisation, WhatTheSimulatorRefusesIsNamed) {
    const auto refused = [](const std::string& body) {
        const auto bytes = assemble("start\n" + body + "halt\n");
        EXPECT_TRUE(bytes) << bytes.error().message();
        std::vector<std::string> out;
        for (const auto& one : unmodelled_instructions({{*bytes}}))
            out.push_back(fmt::format("{:#x}: {}", one.word, one.what));
        return out;
    };
    EXPECT_THAT(refused("mac unknown_1844=1\n"), IsEmpty());
    EXPECT_THAT(refused("bundle\nmac unknown_1844=1 single=1\nring_push unknown_392=1 source=3\n"),
                ElementsAre("0x2: not modelled: single and single_par that differ",
                            "0x13: not modelled: source=0x3 at bit 12, which is no fifo"));
}

// -- Real programs --------------------------------------------------------------------------------

TEST(Synchronisation, EveryProgramOfTheDataKeepsTheRules) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t programs = 0;
    std::size_t followed = 0;
    auto files = test::program_files();
    std::ranges::move(test::wild_program_files(), std::back_inserter(files));
    for (const auto& file : files) {
        for (const auto& program : file.programs) {
            SCOPED_TRACE(file.name + " " + program.type);
            const auto faults = check_synchronisation(program.chunks);
            for (const auto& fault : faults)
                EXPECT_TRUE(fault.unmodelled)
                    << fmt::format("{}:{:#x}: {}", fault.chunk, fault.word, fault.what);
            followed += faults.empty() ? 1 : 0;
            // What the simulator refuses before a run is listed, and nothing else is.
            EXPECT_EQ(unmodelled_instructions(program.chunks).empty(),
                      sim::translate_program(program.chunks).has_value());
            ++programs;
        }
    }
    EXPECT_GE(programs, 100u) << shared;
    EXPECT_GE(followed + 2, programs) << shared;
}

/// Changes one instruction's bytes; false when there is nothing to change.
using Change = std::function<bool(const InstructionInfo&, MutableBytes)>;

struct Counts {
    std::size_t changed = 0;
    std::vector<std::string> missed;
};

/// Checks the program once for every `stride`-th instruction that `change` applies to, with that
/// one change.
Counts check_changed(const runtime::ProgramStreams& program, const Change& change,
                     std::size_t stride) {
    std::vector<std::vector<std::byte>> chunks;
    for (const auto chunk : program.chunks) chunks.emplace_back(chunk.begin(), chunk.end());
    Counts counts;
    std::size_t candidates = 0;
    for (auto& chunk : chunks) {
        const auto instructions = decode(chunk);
        EXPECT_TRUE(instructions);
        for (const auto& instruction : *instructions) {
            const MutableBytes bytes(chunk.data() + instruction.word * word_bytes,
                                     instruction.bytes.size());
            const std::vector<std::byte> before(bytes.begin(), bytes.end());
            if (change(*instruction.info, bytes) && candidates++ % stride == 0) {
                ++counts.changed;
                if (faults_of({chunks.begin(), chunks.end()}).empty())
                    counts.missed.push_back(
                        fmt::format("{:#x} {}", instruction.word, instruction.info->name));
            }
            std::ranges::copy(before, bytes.begin());
        }
    }
    return counts;
}

class MutatedPrograms : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        REEF_SHARED_OR_SKIP(shared);
        ASSERT_FALSE(shared.empty());
    }

    Counts checked(const Change& change, std::size_t stride) const {
        for (const auto& file : test::program_files())
            if (file.name == GetParam()) return check_changed(file.programs.at(0), change, stride);
        ADD_FAILURE() << GetParam() << " is missing";
        return {};
    }

    void expect_found(const Change& change, std::size_t stride, std::size_t at_least) const {
        const auto counts = checked(change, stride);
        EXPECT_GE(counts.changed, at_least);
        EXPECT_THAT(counts.missed, IsEmpty()) << "of " << counts.changed;
    }
};

/// Adds to a field of that instruction.
Change adding(std::string_view instruction, std::string_view field, std::int64_t amount) {
    return [=](const InstructionInfo& info, MutableBytes bytes) {
        if (info.name != instruction) return false;
        const auto* known = info.find(field);
        const auto value = known ? field_value(bytes, *known) : 0;
        return known && set_field(bytes, *known, value + amount).has_value();
    };
}

/// Sets a field that is not zero to zero.
Change clearing(std::string_view instruction, std::string_view field) {
    return [=](const InstructionInfo& info, MutableBytes bytes) {
        const auto* known = info.name == instruction ? info.find(field) : nullptr;
        if (!known || field_bits(bytes, *known) == 0) return false;
        set_field_bits(bytes, *known, 0);
        return true;
    };
}

/// `change` where the instruction's field is not zero.
Change where(std::string_view field, const Change& change) {
    return [=](const InstructionInfo& info, MutableBytes bytes) {
        const auto* known = info.find(field);
        return known && field_bits(bytes, *known) != 0 && change(info, bytes);
    };
}

// The credits of the scalar core's FIFOs bear a hundred more.
TEST_P(MutatedPrograms, StartValuesPlusHundredAreFound) {
    for (unsigned wait = 0; wait < 3; ++wait) {
        const auto change = [&](const InstructionInfo& info, MutableBytes bytes) {
            const bool slack = info.space == Space::scalar || info.name.starts_with("ring_receive");
            return !slack && adding(info.name, fmt::format("wait{}.start", wait), 100)(info, bytes);
        };
        expect_found(where(fmt::format("wait{}.enable", wait), change), 1, wait == 0 ? 20 : 0);
    }
}

TEST_P(MutatedPrograms, MissingReceiversAndSendersAreFound) {
    expect_found(clearing("ring_receive_a", "tiles"), 1, 4);
    expect_found(clearing("ring_receive_b", "tiles"), 1, 0);
    expect_found(clearing("ring_send", "tiles"), 1, 8);
    for (const auto* name : {"mesh_north", "mesh_south", "mesh_east", "mesh_west"}) {
        const auto not_fill = [name](const InstructionInfo& info, MutableBytes bytes) {
            return info.name == name && field_bits(bytes, *info.find("fill")) == 0 &&
                   clearing(name, "tiles")(info, bytes);
        };
        expect_found(not_fill, 1, 0);
    }
}

TEST_P(MutatedPrograms, WrongNumbersAreFound) {
    expect_found(where("expected5", adding("sync", "expected5", 1)), 1, 1);
    expect_found(where("expected6", adding("sync", "expected6", -1)), 1, 0);
    expect_found(adding("ring_pop", "dst.limit0", 1), 1, 4);
    expect_found(adding("ring_receive_a", "dst.limit0", 1), 1, 4);
    expect_found(adding("ring_send", "src.limit0", 1), 1, 8);
    expect_found(adding("infeed", "dst.crop.last", 1), 1, 1);

    expect_found(clearing("fence", "notify"), 1, 6);
    expect_found(clearing("sync", "notified.tiles"), 1, 6);
}

INSTANTIATE_TEST_SUITE_P(Programs, MutatedPrograms,
                         ::testing::Values("dense_256_edgetpu.tflite",
                                           "gabor_64x64_7k_4o_2s_edgetpu.tflite",
                                           "mobilenet_v1_0.25_128_quant_edgetpu.tflite"));

}  // namespace
}  // namespace reef::edgetpu
