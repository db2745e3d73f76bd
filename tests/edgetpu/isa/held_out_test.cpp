// What half of the known programs say, counted on the other half: fields that are said to have few
// values, forms of instructions, and tables that are said to be odd. Programs are sorted by name;
// the first, third, ... are one half, the others the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <string_view>

#include "edgetpu/isa/form.h"
#include "edgetpu/isa/loop_nest.h"
#include "edgetpu/isa/program_data.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using Programs = std::vector<std::vector<Instruction>>;

class HeldOut : public testing::Test {
  protected:
    void SetUp() override {
        REEF_SHARED_OR_SKIP(shared);
        (void)shared;
        files_ = test::program_files();
        for (auto& file : test::wild_program_files()) files_.push_back(std::move(file));
        std::ranges::sort(files_, {}, &test::ProgramFile::name);
        for (std::size_t i = 0; i < files_.size(); ++i) {
            auto& half = halves_.at(i % 2);
            for (const auto& program : files_[i].programs)
                for (const Bytes stream : program.chunks) half.push_back(decode(stream).value());
        }
    }

    std::vector<test::ProgramFile> files_;  ///< hold the instructions' bytes
    std::array<Programs, 2> halves_;
};

struct Score {
    std::size_t hits = 0, misses = 0;
    std::set<std::string> missed{};
    friend bool operator==(const Score&, const Score&) = default;
};
void PrintTo(const Score& score, std::ostream* out) {
    *out << score.hits << " hits, " << score.misses << " misses:";
    for (const auto& one : score.missed) *out << " " << one << ";";
}

using Values = std::map<const FieldInfo*, std::set<std::uint64_t>>;

/// Of fields with several listed values, `seen` of spec/edgetpu/isa.xml.
template <typename Use>
void each_listed_value(const Programs& programs, const Use& use) {
    for (const auto& program : programs)
        for (const Instruction& instruction : program)
            for (const FieldInfo& field : instruction.info->fields)
                if (field.seen.size() > 1) use(instruction, field, instruction.bits(field));
}

Score score_of_values(const Programs& known, const Programs& held_out) {
    Values values;
    each_listed_value(known, [&](const Instruction&, const FieldInfo& field, std::uint64_t bits) {
        values[&field].insert(bits);
    });
    Score score;
    each_listed_value(held_out,
                      [&](const Instruction& at, const FieldInfo& field, std::uint64_t bits) {
                          const auto found = values.find(&field);
                          if (found != values.end() && found->second.contains(bits))
                              return void(++score.hits);
                          ++score.misses;
                          score.missed.insert(std::string(at.info->name) + " " +
                                              std::string(field.name) + "=" + std::to_string(bits));
                      });
    return score;
}

Score score_of_forms(const Programs& known, const Programs& held_out) {
    std::set<std::string> forms;
    for (const auto& program : known)
        for (const Instruction& one : program) forms.insert(form_of(one));
    Score score;
    for (const auto& program : held_out)
        for (const Instruction& one : program)
            forms.contains(form_of(one)) ? ++score.hits : ++score.misses;
    return score;
}

/// A table of which no break is below 0 is of magnitudes, but where the argument is normalised.
Score score_of_odd_tables(const Programs& programs) {
    Score score;
    for (const auto& program : programs) {
        std::array<bool, 16> of_magnitudes{};
        for (const Instruction& one : program) {
            const auto tiles = one.info->find("tiles") == nullptr ? 0 : *one.value("tiles");
            const auto each_tile = [&](const auto& use) {
                for (std::size_t t = 0; t < of_magnitudes.size(); ++t)
                    if ((tiles >> t & 1) != 0) use(of_magnitudes[t]);
            };
            if (one.info->name == "load_table") {
                const auto first =
                    std::bit_cast<float>(static_cast<std::int32_t>(*one.value("break0")));
                each_tile([&](bool& tile) { tile = first > 0; });
            }
            if (one.info->find("table_odd") == nullptr || *one.value("table") == 0) continue;
            const bool normalised = *one.value("table_normalised") != 0;
            each_tile([&](bool& tile) {
                const bool odd = tile && !normalised;
                (*one.value("table_odd") == (odd ? 3 : 0)) ? ++score.hits : ++score.misses;
                if (odd) score.missed.insert("odd");
            });
        }
    }
    return score;
}

TEST_F(HeldOut, ListedValuesOfEitherHalfAreThoseOfTheOther) {
    EXPECT_EQ(files_.size(), 65U);
    EXPECT_EQ(score_of_values(halves_[0], halves_[1]),
              (Score{17431,
                     62,
                     {"max acc.rotate.level=2", "resize acc.rotate.level=1", "resize x.phase=0",
                      "resize x.phase=2", "resize y.phase=0", "resize y.phase=2"}}));
    EXPECT_EQ(score_of_values(halves_[1], halves_[0]),
              (Score{17332, 54, {"mac acc.rotate.level=4", "mac table_odd=3"}}));
}

TEST_F(HeldOut, FormsOfEitherHalfAreThoseOfTheOther) {
    EXPECT_EQ(score_of_forms(halves_[0], halves_[1]), (Score{27535, 1544}));
    EXPECT_EQ(score_of_forms(halves_[1], halves_[0]), (Score{28044, 2039}));
}

TEST_F(HeldOut, TablesOfMagnitudesAreOdd) {
    // The only program with odd ones is in the first half.
    EXPECT_EQ(score_of_odd_tables(halves_[0]), (Score{1055, 0, {"odd"}}));
    EXPECT_EQ(score_of_odd_tables(halves_[1]), (Score{2362, 0}));
}

/// The one flag that says that a base comes out of a register, as far as it can be told.
TEST_F(HeldOut, ABaseOutOfARegisterHasItsFlag) {
    std::array<std::size_t, 2> with{}, without{};
    for (std::size_t h = 0; h < 2; ++h)
        for (const auto& program : halves_[h])
            for (const Instruction& one : program) {
                if (one.info->name != "narrow_to_wide") continue;
                const bool indirect = *one.value("base_register") != 0;
                EXPECT_EQ(*one.value("base_indirect") != 0, indirect);
                ++(indirect ? with : without).at(h);
            }
    EXPECT_EQ(with[0] + with[1], 1U);
    EXPECT_EQ(without[0] + without[1], 2982U);
}

// check_limits() (sim/program) refuses others.
TEST_F(HeldOut, CropsOfTensorInstructionsMakeNoPassLonger) {
    std::array<std::size_t, 2> crops{};
    for (std::size_t h = 0; h < 2; ++h)
        for (const auto& program : halves_[h])
            for (const Instruction& one : program) {
                constexpr std::array<std::string_view, 4> tensor = {"mac", "max", "sum", "resize"};
                if (std::ranges::find(tensor, one.info->name) == tensor.end()) continue;
                for (const FieldGroup& group : one.info->groups) {
                    if (group.kind != GroupKind::loop_nest) continue;
                    const LoopNest nest = read_loop_nest(one.bytes, *one.info, group);
                    if (nest.crop_level == 0) continue;
                    ++crops.at(h);
                    EXPECT_LE(nest.crop_count, nest.count[0]) << one.info->name << group.name;
                }
            }
    EXPECT_EQ(crops, (std::array<std::size_t, 2>{70, 286}));
}

}  // namespace
}  // namespace reef::edgetpu
