// Values that no known program has, in every field of every kind of instruction, one at a time: the
// simulator refuses them, stops, finds something, or computes the same. A field whose other values
// mean other data is listed below; nothing else may change the outputs without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "edgetpu/isa/program_data.h"
#include "machine_run.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

/// By instruction and field: the bits of all known programs.
using Seen = std::map<const FieldInfo*, std::set<std::uint64_t>>;

const Seen& seen() {
    static const Seen all = [] {
        Seen values;
        for (const auto& files : {test::program_files(), test::wild_program_files()})
            for (const auto& file : files)
                for (const auto& program : file.programs)
                    for (const Bytes chunk : program.chunks) {
                        InstructionCursor cursor(chunk);
                        while (const auto instruction = cursor.next())
                            if (instruction->info != nullptr)
                                for (const auto& field : instruction->info->fields)
                                    values[&field].insert(instruction->bits(field));
                    }
        return values;
    }();
    return all;
}

/// At most three: one bit more than is seen, the widest, and the smallest.
std::vector<std::uint64_t> unseen_values(const FieldInfo& field) {
    const auto& known = seen().at(&field);
    const std::uint64_t most = ~std::uint64_t{0} >> (64 - field.width);
    std::set<std::uint64_t> values;
    for (const std::uint64_t value : {most, (most >> 1U) + 1, *known.rbegin() + 1})
        if (value <= most && !known.contains(value)) values.insert(value);
    for (std::uint64_t value = 1; value <= most && value < 16 && values.size() < 3; ++value)
        if (!known.contains(value)) values.insert(value);
    return {values.begin(), values.end()};
}

/// What other values of these fields mean is other data, other places or another amount of work,
/// which a program may ask for as it likes.
bool is_data(std::string_view instruction, std::string_view field) {
    static const std::set<std::string, std::less<>> listed = {
        "tiles",       "scale",    "clamp_max",      "clamp_min",     "initial",
        "out_zero",    "in_zero",  "par_zero",       "fill_value",    "alu.operand",
        "last_lanes",  "lanes",    "zero_row.first", "zero_row.step", "zero_row.last",
        "reset.value", "to_tiles", "pixel_stride",   "row_stride"};
    if (listed.contains(field)) return true;
    const auto last = field.substr(field.rfind('.') + 1);
    if (last == "base" || last.starts_with("stride") || last.starts_with("limit")) return true;
    if (field.ends_with("rotate.level") || field.ends_with("rotate.size")) return true;
    return instruction == "load_table" && (last.starts_with("c") || last.starts_with("break"));
}

struct Outcomes {
    unsigned refused = 0, stopped = 0, found = 0, equal = 0, listed = 0;
    std::vector<std::string> silent;
};

struct ChanceCase {
    std::string path;
    /// Of a program of many seconds, the kinds that smaller ones lack, but for their fields that
    /// are data; empty: all.
    std::set<std::string, std::less<>> kinds = {};
};
using Kinds = std::set<std::string, std::less<>>;
void PrintTo(const ChanceCase& one, std::ostream* out) {
    *out << one.path;
}

class ChanceFindings : public testing::TestWithParam<ChanceCase> {
  protected:
    static Result<Package> package(const std::filesystem::path& shared) {
        const auto bytes = REEF_TRY(read_file((shared / (GetParam().path + ".tflite")).string()));
        const auto model = REEF_TRY(model::read_tflite(bytes));
        auto packages = REEF_TRY(packages_of(model));
        return std::move(packages.front().package);
    }

    struct Run {
        Status status;
        std::vector<std::byte> out;
        std::size_t findings = 0;
    };
    static Run run(PackagePrograms& programs, bool strict) {
        programs.set_inputs(7);
        Machine machine(MachineOptions{.strict = strict});
        Run ran;
        ran.status = programs.run(machine);
        ran.out = programs.outputs();
        if (auto* monitor = machine.monitor()) ran.findings = monitor->findings().size();
        return ran;
    }

    void try_value(const Package& original, std::size_t executable, std::size_t stream,
                   const Instruction& at, const FieldInfo& field, std::uint64_t value) {
        Package changed = original;
        auto& instructions = changed.executables[executable].bitstreams[stream].instructions;
        const Bytes view = instructions.view();
        std::vector<std::byte> bytes(view.begin(), view.end());
        set_field_bits(MutableBytes(bytes).subspan(at.word * word_bytes, at.bytes.size()), field,
                       value);
        instructions = SharedBytes::copy_of(bytes);
        auto programs = PackagePrograms::load(changed);
        if (!programs) return void(++outcomes_.refused);
        const Run plain = run(*programs, false);
        if (!plain.status) return void(++outcomes_.stopped);
        if (plain.out == want_.out) return void(++outcomes_.equal);
        if (is_data(at.info->name, field.name)) return void(++outcomes_.listed);
        const Run strict = run(*programs, true);
        if (!strict.status || strict.findings > findings_of(original))
            return void(++outcomes_.found);
        outcomes_.silent.push_back(std::string(at.info->name) + " " + std::string(field.name) +
                                   "=" + std::to_string(value));
    }

    /// Of the program as it is. A strict run takes long, and few values need it.
    std::size_t findings_of(const Package& original) {
        if (!findings_) {
            auto programs = PackagePrograms::load(original);
            findings_ = programs ? run(*programs, true).findings : 0;
        }
        return *findings_;
    }

    Run want_;
    Outcomes outcomes_;

  private:
    std::optional<std::size_t> findings_;
};

TEST_P(ChanceFindings, NoUnseenValueChangesOutputsWithoutAWord) {
    REEF_SHARED_OR_SKIP(shared);
    const auto original = package(shared);
    ASSERT_TRUE(original) << original.error().message();
    auto programs = PackagePrograms::load(*original);
    ASSERT_TRUE(programs) << programs.error().message();
    want_ = run(*programs, false);
    ASSERT_TRUE(want_.status) << want_.status.error().message();

    // Instructions that begin and end a stream have their say in each.
    const auto of_stream = [](std::string_view name) {
        return name == "start" || name == "halt" || name == "end";
    };
    std::set<std::pair<std::string_view, std::size_t>> kinds;
    for (std::size_t e = 0; e < original->executables.size(); ++e) {
        const auto& streams = original->executables[e].bitstreams;
        for (std::size_t s = 0; s < streams.size(); ++s) {
            InstructionCursor cursor(streams[s].instructions.view());
            while (const auto at = cursor.next()) {
                const std::string_view name = at->info->name;
                if (!GetParam().kinds.empty() && !GetParam().kinds.contains(name)) continue;
                if (!kinds.insert({name, of_stream(name) ? s : 0}).second) continue;
                for (const auto& field : at->info->fields) {
                    if (!GetParam().kinds.empty() && is_data(name, field.name)) continue;
                    for (const auto value : unseen_values(field))
                        try_value(*original, e, s, *at, field, value);
                }
            }
        }
    }
    std::printf(
        "%s: %zu kinds of instructions; %u values refused, %u stopped, %u found, %u equal, "
        "%u other data\n",
        GetParam().path.c_str(), kinds.size(), outcomes_.refused, outcomes_.stopped,
        outcomes_.found, outcomes_.equal, outcomes_.listed);
    EXPECT_THAT(outcomes_.silent, testing::IsEmpty());
    EXPECT_GT(outcomes_.refused, 100U);
}

const ChanceCase cases[] = {{"data/edgetpu/templates/bright_16x16_edgetpu"},
                            {"data/models/split_concat_edgetpu"},
                            {"data/models/keras_lstm_mnist_ptq_edgetpu"}};
INSTANTIATE_TEST_SUITE_P(Programs, ChanceFindings, testing::ValuesIn(cases));
#ifdef REEF_LARGE_PROGRAMS
// The third has three streams, the last two a blend and a copy of the nearest pixels.
const ChanceCase large_cases[] = {
    {"data/edgetpu/templates/gabor_64x64_p4_edgetpu"},
    {"data/edgetpu/wild/rt10__mobilenet_v1_0.25_128_quant_edgetpu"},
    {"data/edgetpu/wild/iw__model_mat_Add_edgetpu", {"start", "halt", "end"}},
    {"data/models/movenet_single_pose_lightning_ptq_edgetpu", {"resize"}},
    {"data/edgetpu/wild/mot__yolov8n_full_integer_quant_edgetpu", {"resize"}}};
INSTANTIATE_TEST_SUITE_P(LargePrograms, ChanceFindings, testing::ValuesIn(large_cases));

/// Kinds of the file's instructions, but those that a case leaves to others.
void add_kinds(const test::ProgramFile& file, const ChanceCase& only, Kinds& kinds) {
    for (const auto& program : file.programs)
        for (const Bytes chunk : program.chunks) {
            InstructionCursor cursor(chunk);
            while (const auto at = cursor.next())
                if (only.kinds.empty() || only.kinds.contains(at->info->name))
                    kinds.emplace(at->info->name);
        }
}

TEST(ChanceCases, HaveEveryKindOfInstructionOfAnyProgram) {
    REEF_SHARED_OR_SKIP(shared);
    (void)shared;
    std::vector<ChanceCase> all(std::begin(cases), std::end(cases));
    all.insert(all.end(), std::begin(large_cases), std::end(large_cases));
    Kinds tried, known;
    std::size_t found = 0;
    for (const auto& files : {test::program_files(), test::wild_program_files()})
        for (const auto& file : files) {
            add_kinds(file, {}, known);
            for (const ChanceCase& one : all)
                if (one.path.ends_with("/" + file.name.substr(0, file.name.rfind('.')))) {
                    add_kinds(file, one, tried);
                    ++found;
                }
        }
    EXPECT_EQ(found, all.size());
    EXPECT_EQ(tried, known);
}
#endif

}  // namespace
}  // namespace reef::edgetpu::sim
