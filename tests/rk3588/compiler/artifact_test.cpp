// The artifact's format: what is written is read, and nothing else.
#include "rk3588/artifact/artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <numeric>

#include "reef_schema/rk3588_generated.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/two_convolutions.h"

namespace reef {
namespace {

using testing::HasSubstr;

rk3588::Artifact small_artifact() {
    const auto plain = test::two_convolutions();
    EXPECT_TRUE(plain) << plain.error().message();
    const auto compiled = rk3588::compile(*plain, {}, {});
    EXPECT_TRUE(compiled) << compiled.error().message();
    return test::programs_of(compiled->model).at(0);
}

void expect_refused(const rk3588::Artifact& artifact, const char* what) {
    const auto read = rk3588::read_artifact(write_artifact(artifact));
    ASSERT_FALSE(read) << what;
    EXPECT_THAT(read.error().message(), HasSubstr(what));
}

TEST(Rk3588Artifact, IsReadAsWritten) {
    const auto artifact = small_artifact();
    const auto again = rk3588::read_artifact(write_artifact(artifact));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(*again, artifact);
    EXPECT_GE(artifact.tasks.size(), 2U);
    EXPECT_FALSE(artifact.relocations.empty());
}

TEST(Rk3588Artifact, KeepsWhatPeopleWantToKnow) {
    auto artifact = small_artifact();
    EXPECT_THAT(artifact.requantisation, HasSubstr("tflite"));
    EXPECT_FALSE(artifact.unproven.empty());
    artifact.absorbed = {{7, "PAD", rk3588::Absorption::windows, 7},
                         {9, "CONV_2D", rk3588::Absorption::sum, 10}};
    const auto before = version_of(artifact);
    const auto again = rk3588::read_artifact(write_artifact(artifact));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(*again, artifact);
    artifact.absorbed.push_back({11, "LOGISTIC", rk3588::Absorption::table, 12});
    EXPECT_LT(before, 3U);
    EXPECT_EQ(version_of(artifact), 3U);
    artifact.absorbed[0].how = static_cast<rk3588::Absorption>(4);
    expect_refused(artifact, "absorption 4");
}

TEST(Rk3588Artifact, EveryTruncationIsRefused) {
    const auto bytes = write_artifact(small_artifact());
    for (std::size_t n = 0; n < bytes.size(); n += 1 + n / 16)
        EXPECT_FALSE(rk3588::read_artifact(Bytes(bytes).first(n))) << n;
}

TEST(Rk3588Artifact, MoreThanAFlatBufferHoldsIsNotRead) {
    // Nothing is there: whoever looks at a byte ends.
    constexpr std::size_t size = std::size_t{1} << 31;
    void* nothing =
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (nothing == MAP_FAILED) GTEST_SKIP() << "no room for 2 GiB of addresses";
    const auto read = rk3588::read_artifact({static_cast<const std::byte*>(nothing), size});
    munmap(nothing, size);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr("less than 2 GiB"));
}

TEST(Rk3588Artifact, BrokenOnesAreRefusedByPlace) {
    const auto good = small_artifact();
    auto a = good;
    a.tasks[0].words += 1;
    expect_refused(a, "task 0");
    a = good;
    a.tasks[1].first_word = static_cast<std::uint32_t>(a.commands.size());
    expect_refused(a, "task 1");
    a = good;
    a.relocations.pop_back();
    expect_refused(a, "an address without relocation");
    a = good;
    a.relocations[0].word += 1;
    expect_refused(a, "relocation 0");
    a = good;
    a.activation_bytes = 64;
    expect_refused(a, "outside of the a");
    a = good;
    a.inputs[0].offset = a.activation_bytes;
    expect_refused(a, "input 0");
    a = good;
    a.outputs[0].channels = 1U << 16;
    expect_refused(a, "output 0");
    a = good;
    a.commands[3] = 0x1234'0000'0000'ffff;
    expect_refused(a, "task 0");
    a = good;
    a.operators[1].tasks = 77;
    expect_refused(a, "its tasks are not in the program");
    // Tasks that would run twice, or never.
    a = good;
    a.operators[1].first_task = 0;
    expect_refused(a, "do not follow");
    a = good;
    a.operators.pop_back();
    expect_refused(a, "not all tasks");
}

TEST(Rk3588Artifact, StagesAndFoldsAreReadAsWrittenAndChecked) {
    const auto plain = test::two_convolutions(6);
    ASSERT_TRUE(plain);
    rk3588::Options numbers;
    numbers.cores = 3;
    const auto compiled = rk3588::compile(*plain, numbers, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    const auto good = test::programs_of(compiled->model).at(0);
    ASSERT_FALSE(good.stages.empty());
    ASSERT_TRUE(good.inputs.at(0).fold);
    EXPECT_EQ(good.operators.at(0).inputs.at(0).fold, good.inputs[0].fold);
    auto a = good;
    a.stages[0][0].tasks = 0;
    expect_refused(a, "stage 0");
    a = good;
    a.stages.pop_back();
    expect_refused(a, "they have not all tasks");
    a = good;
    a.operators.pop_back();
    expect_refused(a, "operators: they have not all tasks");
    a = good;
    a.stages[0].insert(a.stages[0].end(), 3, a.stages[0][0]);
    expect_refused(a, "cores");
    a = good;
    a.inputs[0].fold->strips = 1;
    expect_refused(a, "fold 0");
    a = good;
    a.inputs[0].fold->rows = 1U << 15;
    expect_refused(a, "outside of the activations");
}

/// The same program, its command words moved to the end, four bytes off a multiple of eight.
std::vector<std::byte> with_misaligned_commands(std::vector<std::byte> file) {
    const auto* good = rk3588::schema::GetProgram(file.data());
    const auto* commands = good->commands();
    const Bytes stored{reinterpret_cast<const std::byte*>(commands),
                       sizeof(std::uint32_t) + commands->size() * sizeof(std::uint64_t)};
    const std::vector<std::byte> copy(stored.begin(), stored.end());
    const auto* field = reinterpret_cast<const flatbuffers::Table*>(good)->GetAddressOf(
        rk3588::schema::Program::VT_COMMANDS);
    const auto place =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(field) - file.data());
    file.resize((file.size() + 7) / 8 * 8);
    const auto offset = static_cast<std::uint32_t>(file.size() - place);
    file.insert(file.end(), copy.begin(), copy.end());
    flatbuffers::WriteScalar(file.data() + place, offset);
    return file;
}

TEST(Rk3588Artifact, MisalignedWordsAreRefused) {
    const auto read =
        rk3588::read_artifact(with_misaligned_commands(write_artifact(small_artifact())));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr("a vector is off its alignment"));
}

/// A program of nothing but `count` references to one operator with a name of `name_bytes`.
std::vector<std::byte> with_shared_operators(std::size_t count, std::size_t name_bytes) {
    namespace schema = rk3588::schema;
    flatbuffers::FlatBufferBuilder b;
    const schema::Cube cube(0, 1, 1, 1, false);
    const auto name = b.CreateString(std::string(name_bytes, 'a'));
    const auto inputs = b.CreateVectorOfStructs(std::vector<schema::Cube>{});
    const auto one = schema::CreateOperator(b, 0, name, 0, 0, inputs, &cube);
    const auto operators =
        b.CreateVector(std::vector<flatbuffers::Offset<schema::Operator>>(count, one));
    const auto cubes = b.CreateVectorOfStructs(std::vector<schema::Cube>{});
    b.Finish(schema::CreateProgram(b, 1, 0, b.CreateVector(std::vector<std::uint8_t>{}),
                                   b.CreateVector(std::vector<std::uint64_t>{}),
                                   b.CreateVectorOfStructs(std::vector<schema::Relocation>{}),
                                   b.CreateVectorOfStructs(std::vector<schema::Task>{}), cubes,
                                   cubes, operators),
             schema::ProgramIdentifier());
    const auto bytes = std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize()));
    return {bytes.begin(), bytes.end()};
}

TEST(Rk3588Artifact, ReferencesToTheSameTableAreNotFollowedWithoutEnd) {
    // Their names alone are 4 GB.
    const auto many = rk3588::read_artifact(with_shared_operators(4000, 1'000'000));
    ASSERT_FALSE(many);
    EXPECT_THAT(many.error().message(),
                HasSubstr("the same vectors are referred to again and again"));
    const auto few = rk3588::read_artifact(with_shared_operators(2, 10));
    ASSERT_FALSE(few);
    EXPECT_THAT(few.error().message(), HasSubstr("there are no tasks")) << "two may share a table";
}

TEST(Rk3588Artifact, CubesKeepTensors) {
    rk3588::Cube cube{0, 2, 3, 21, true};
    std::vector<std::byte> tensor(cube.elements()), memory(cube.bytes()), back(tensor.size());
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::byte>(i);
    to_cube(cube, tensor, memory);
    from_cube(cube, memory, back);
    EXPECT_EQ(back, tensor);
    // Channel 17 of the pixel behind the first: the second surface, uint8 as int8.
    EXPECT_EQ(memory[6 * 16 + 16 + 1], tensor[21 + 17] ^ std::byte{0x80});
    EXPECT_EQ(memory[6 * 16 + 5], std::byte{0});
}

TEST(Rk3588Artifact, CompilingIsDeterministic) {
    EXPECT_EQ(write_artifact(small_artifact()), write_artifact(small_artifact()));
}

}  // namespace
}  // namespace reef
