#include "reef/hw/program_diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "program_data.h"
#include "reef/edgetpu/assembly.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using hw::ProgramDiff;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProgramDiff diff_programs(Bytes before, Bytes after) {
    return hw::diff_programs(isa(), before, after, numbering_field);
}

// "mac scale,out_zero" for a change, "+mac" and "-mac" for an instruction of one side.
std::vector<std::string> summary(const ProgramDiff& diff) {
    std::vector<std::string> out;
    for (const auto& change : diff.changes) {
        const auto& some = change.before ? *change.before : *change.after;
        std::string line(!change.after ? "-" : !change.before ? "+" : "");
        line += some.info ? some.info->name : "data";
        for (std::size_t f = 0; f < change.fields.size(); ++f)
            line += fmt::format("{}{}", f ? "," : " ", change.fields[f]->name);
        out.push_back(line);
    }
    return out;
}

std::vector<std::byte> bytes_of(const std::string& text) {
    auto bytes = assemble(text);
    EXPECT_TRUE(bytes) << bytes.error().message();
    return bytes ? *bytes : std::vector<std::byte>{};
}

TEST(ProgramDiff, EqualProgramsHaveNoChanges) {
    const auto a = bytes_of("fence\nmac seq=1\nmac seq=2\n");
    const auto diff = diff_programs(a, a);
    EXPECT_TRUE(diff.identical);
    EXPECT_EQ(diff.aligned, 3u);
    EXPECT_THAT(diff.changes, IsEmpty());
}

TEST(ProgramDiff, NamesChangedFields) {
    const auto a = bytes_of("fence\nmac seq=1 scale=0.5 out_zero=127\nhalt\n");
    const auto b = bytes_of("fence\nmac seq=1 scale=0.25 out_zero=128\nhalt\n");
    const auto diff = diff_programs(a, b);
    EXPECT_FALSE(diff.identical);
    EXPECT_THAT(summary(diff), ElementsAre("mac scale,out_zero"));
}

TEST(ProgramDiff, AlignsRoundInsertedAndRemovedInstructions) {
    const auto a = bytes_of(
        "fence\nmac seq=1 in.limit0=3\nmac seq=2 in.limit0=4 scale=1\nring_send seq=3\nhalt\n");
    const auto b = bytes_of(
        "fence\nfence seq=1 notify=1\nmac seq=2 in.limit0=4 scale=2\nring_send seq=3\nhalt\n");
    const auto diff = diff_programs(a, b);
    EXPECT_THAT(summary(diff), ElementsAre("-mac", "+fence", "mac scale"));
    const auto inserted =
        diff_programs(bytes_of("fence\nmac seq=1\n"), bytes_of("fence\nsync\nmac seq=2\n"));
    EXPECT_THAT(summary(inserted), ElementsAre("+sync"));
    EXPECT_EQ(inserted.renumbered, 1u);
    EXPECT_FALSE(inserted.identical);
}

TEST(ProgramDiff, TakesAnyBytes) {
    std::mt19937_64 random(1);
    for (int n = 0; n < 50; ++n) {
        std::vector<std::byte> a(random() % 2000), b(random() % 2000);
        for (auto& x : a) x = static_cast<std::byte>(random());
        for (auto& x : b) x = static_cast<std::byte>(random());
        const auto diff = diff_programs(a, b);
        EXPECT_EQ(diff.identical, a == b);
        EXPECT_FALSE(diff.changes.empty());
    }
    EXPECT_THAT(diff_programs({}, {}).changes, IsEmpty());
}

TEST(ProgramDiff, LongStretchesWithoutAnchors) {
    std::vector<std::byte> a(16 * 5000), b(16 * 5003);
    for (std::size_t w = 0; w < b.size(); w += 16) b[w + 1] = std::byte{0x08};  // empty bundles
    const auto diff = diff_programs(b, b);
    EXPECT_EQ(diff.aligned, 5003u);
    const auto shorter = diff_programs(Bytes(b).first(16 * 5000), b);
    EXPECT_EQ(shorter.changes.size(), 3u);
}

TEST(ProgramDiff, TheSameNetworkWithOtherWeightsDiffersInNumericsOnly) {
    REEF_SHARED_OR_SKIP(shared);
    std::vector<test::ProgramFile> pair;
    for (auto& file : test::program_files()) {
        if (file.name.starts_with("color_red_64") || file.name.starts_with("color_green_64"))
            pair.push_back(std::move(file));
    }
    ASSERT_EQ(pair.size(), 2u) << shared;
    for (std::size_t p = 0; p < pair[0].programs.size(); ++p) {
        const auto diff =
            diff_programs(pair[0].programs[p].chunks.at(0), pair[1].programs[p].chunks.at(0));
        for (const auto& change : diff.changes) {
            ASSERT_TRUE(change.before && change.after);
            for (const auto* field : change.fields)
                EXPECT_TRUE(field->name == "scale" || field->name.starts_with("clamp") ||
                            field->name.ends_with("zero") || field->name == "initial" ||
                            field->name == "fill_value")
                    << change.before->info->name << " " << field->name;
        }
    }
}

}  // namespace
}  // namespace reef::edgetpu
