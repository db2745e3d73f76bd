#include "reef/edgetpu/program_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program_data.h"
#include "reef/edgetpu/assembly.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A whole stream around `body`, with the right length.
std::vector<std::byte> stream_with(const std::string& body, std::int64_t wrong_by = 0,
                                   const std::string& halt = "halt last=1\n") {
    const std::string tail = halt + "bundle\nbundle\nbundle\nbundle\nend bits=128\n";
    const auto inside = assemble(body + tail);
    EXPECT_TRUE(inside) << inside.error().message();
    const auto bits = static_cast<std::int64_t>(inside->size() - 16) * 8 + wrong_by;
    return *assemble(fmt::format("start bits={}\n{}{}", bits, body, tail));
}

std::vector<std::string> faults(std::initializer_list<std::vector<std::byte>> chunks) {
    std::vector<Bytes> views(chunks.begin(), chunks.end());
    std::vector<std::string> out;
    for (const auto& f : check_program(views))
        out.push_back(fmt::format("{}:{}: {}", f.chunk, f.word, f.what));
    return out;
}

TEST(ProgramCheck, EveryProgramOfTheDataPasses) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t programs = 0;
    std::size_t tile_instructions = 0;
    auto files = test::program_files();
    std::ranges::move(test::wild_program_files(), std::back_inserter(files));
    for (const auto& file : files) {
        for (const auto& program : file.programs) {
            for (const auto& f : check_program(program.chunks))
                ADD_FAILURE() << file.name << " " << program.type << " word " << f.word << ": "
                              << f.what;
            ++programs;
            for (const auto chunk : program.chunks) {
                InstructionCursor cursor(chunk);
                while (const auto i = cursor.next())
                    tile_instructions += i->info && i->info->space == Space::tile;
            }
        }
    }
    EXPECT_GE(programs, 100u) << shared;
    EXPECT_GE(tile_instructions, 40000u) << shared;
}

TEST(ProgramCheck, HaltSaysWhetherItIsInTheLastStream) {
    const auto continues = stream_with("", 0, "halt continues=1\n");
    const auto older = stream_with("", 0, "halt\n");
    const auto last = stream_with("");
    EXPECT_THAT(faults({continues, last}), IsEmpty());
    EXPECT_THAT(faults({older, last}), IsEmpty());
    EXPECT_THAT(
        faults({last, last}),
        ElementsAre("0:1: halt says last=true continues=false, and another stream follows"));
    EXPECT_THAT(faults({continues, continues}),
                ElementsAre("1:1: halt says last=false continues=true, and no stream follows"));
}

TEST(ProgramCheck, NumbersRunOverChunks) {
    const auto first = stream_with("fence\nmac seq=1\n", 0, "halt continues=1\n");
    EXPECT_THAT(faults({first, stream_with("fence seq=2\n")}), IsEmpty());
    EXPECT_THAT(faults({first, stream_with("fence seq=3\nfence seq=4\n")}),
                ElementsAre("1:1: tile instruction has the number 3, 2 is due"));
    EXPECT_THAT(faults({stream_with("fence seq=8191\nfence seq=8192\n")}),
                ElementsAre("0:1: tile instruction has the number 8191, 0 is due"));
    EXPECT_THAT(faults({stream_with("fence seq=32767\nfence seq=0\n")}),
                ElementsAre("0:1: tile instruction has the number 32767, 0 is due"));
}

TEST(ProgramCheck, StartSaysTheLength) {
    EXPECT_THAT(faults({stream_with("")}), IsEmpty());
    EXPECT_THAT(faults({stream_with("", 128)}),
                ElementsAre("0:0: start says 768 bits, the stream has 640 besides start and end"));
    const auto none = assemble("halt\nbundle\nbundle\nbundle\nbundle\nend\n");
    EXPECT_THAT(faults({*none}), ElementsAre("0:0: the stream does not begin with start"));
    EXPECT_THAT(faults({{}}), ElementsAre("0:0: the stream is empty"));
}

TEST(ProgramCheck, EndIsHaltAndFourEmptyBundles) {
    const auto message = "the stream does not end with halt, 4 empty bundles and end";
    for (const auto* tail :
         {"halt\nbundle\nbundle\nbundle\nend\n", "bundle\nbundle\nbundle\nbundle\nbundle\nend\n",
          "halt\nbundle\nbundle\nbundle alu.op=1\nbundle\nend\n",
          "halt\nbundle\nbundle\nbundle\nbundle\n"}) {
        const auto stream = assemble(fmt::format(
            "start bits={}\n{}", (std::count(tail, tail + strlen(tail), '\n') - 1) * 128, tail));
        ASSERT_TRUE(stream);
        const auto all = faults({*stream});
        ASSERT_EQ(all.size(), 1u) << tail;
        EXPECT_NE(all[0].find(message), std::string::npos) << all[0];
    }
    EXPECT_THAT(faults({stream_with("halt\n")}), ElementsAre("0:2: halt occurs again"));
}

// A stream has room for 16384 words besides start and end.
TEST(ProgramCheck, TheLongestStreamLeavesOutBundles) {
    const auto stream = [](std::size_t words, unsigned bundles) {
        std::string body;
        for (std::size_t i = 0; i + bundles + 1 < words; ++i) body += "bundle alu.op=1\n";
        body += "halt\n";
        for (unsigned i = 0; i < bundles; ++i) body += "bundle\n";
        return *assemble(fmt::format("start bits={}\n{}end bits=128\n", words * 128, body));
    };
    for (unsigned bundles = 0; bundles <= 4; ++bundles)
        EXPECT_THAT(faults({stream(16384, bundles)}), IsEmpty()) << bundles;
    const std::string_view ends = "does not end with halt";
    EXPECT_THAT(faults({stream(16383, 3)}), ElementsAre(testing::HasSubstr(ends)));
    EXPECT_THAT(faults({stream(16384, 5)}), ElementsAre(testing::HasSubstr(ends)));
    EXPECT_THAT(faults({stream(16385, 4)}),
                ElementsAre("0:0: the stream has 16385 words besides start and end, more than "
                            "16384"));
}

TEST(ProgramCheck, BranchesAndLoopsStayInside) {
    EXPECT_THAT(faults({stream_with("branch offset=3\nsync\n")}), IsEmpty());
    EXPECT_THAT(faults({stream_with("branch offset=2\nsync\n")}),
                ElementsAre("0:1: the branch goes to word 3, where no instruction begins"));
    EXPECT_THAT(faults({stream_with("branch offset=-2\n")}),
                ElementsAre("0:1: the branch goes to word -1, where no instruction begins"));
    EXPECT_THAT(faults({stream_with("branch offset=99\n")}),
                ElementsAre("0:1: the branch goes to word 100, where no instruction begins"));
    EXPECT_THAT(faults({stream_with("loop count=3 body=2\nbundle\nbundle\n")}), IsEmpty());
    EXPECT_THAT(faults({stream_with("loop count=3 body=3\nbundle\nsync\nbundle\n")}),
                ElementsAre("0:1: the loop repeats 3 bundles, of which 1 follow"));
}

TEST(ProgramCheck, WordsThatAreNoInstructionsAreNamed) {
    auto stream = stream_with(".word 0xa00\n");
    EXPECT_THAT(faults({stream}), ElementsAre("0:1: the word is no instruction"));
    stream.push_back(std::byte{0});
    EXPECT_THAT(faults({stream}).at(1), "0:8: 1 bytes after the last whole word");
}

}  // namespace
}  // namespace reef::edgetpu
