#include <algorithm>

#include "reef/rk3588/layout.h"
#include "reef_schema/rk3588_generated.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588 {
namespace {

schema::Cube stored(const Cube& c) {
    return {c.offset, c.height, c.width, c.channels, c.flipped};
}

std::vector<schema::Cube> stored(const std::vector<Cube>& cubes) {
    std::vector<schema::Cube> out;
    for (const Cube& cube : cubes) out.push_back(stored(cube));
    return out;
}

constexpr std::uint32_t value_shift = 16;

constexpr std::byte sign_bit{0x80};

CubeShape shape_of(const Cube& cube) {
    return {cube.channels, cube.height, cube.width, spec::atom_bytes};
}

void flip(MutableBytes bytes) {
    for (std::byte& b : bytes) b ^= sign_bit;
}

}  // namespace

std::uint64_t Cube::atoms() const {
    return (std::uint64_t{channels} + spec::atom_bytes - 1) / spec::atom_bytes;
}

std::uint64_t Cube::surface_bytes() const {
    return std::uint64_t{height} * width * spec::atom_bytes;
}

bool is_compiled(const model::Operator& op) {
    return op.code.builtin == model::Op::custom && op.code.custom == custom_operator_name;
}

std::vector<std::byte> write_artifact(const Artifact& a) {
    flatbuffers::FlatBufferBuilder b;
    std::vector<schema::Relocation> relocations;
    for (const Relocation& r : a.relocations)
        relocations.emplace_back(r.word, static_cast<schema::Area>(r.area));
    std::vector<schema::Task> tasks;
    for (const TaskPlace& t : a.tasks) tasks.emplace_back(t.first_word, t.words);
    std::vector<flatbuffers::Offset<schema::Operator>> operators;
    for (const ArtifactOperator& op : a.operators) {
        const auto name = b.CreateString(op.name);
        const auto inputs = b.CreateVectorOfStructs(stored(op.inputs));
        const auto output = stored(op.output);
        operators.push_back(
            schema::CreateOperator(b, op.index, name, op.first_task, op.tasks, inputs, &output));
    }
    const auto constants = b.CreateVector(
        reinterpret_cast<const std::uint8_t*>(a.constants.view().data()), a.constants.size());
    const auto commands = b.CreateVector(a.commands);
    const auto relocation_table = b.CreateVectorOfStructs(relocations);
    const auto task_table = b.CreateVectorOfStructs(tasks);
    const auto inputs = b.CreateVectorOfStructs(stored(a.inputs));
    const auto outputs = b.CreateVectorOfStructs(stored(a.outputs));
    const auto operator_table = b.CreateVector(operators);
    b.Finish(schema::CreateProgram(b, artifact_version, a.activation_bytes, constants, commands,
                                   relocation_table, task_table, inputs, outputs, operator_table),
             schema::ProgramIdentifier());
    const auto bytes = std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize()));
    return {bytes.begin(), bytes.end()};
}

std::vector<std::uint64_t> relocated(const Artifact& artifact,
                                     const std::uint32_t (&base)[area_count]) {
    std::vector<std::uint64_t> words = artifact.commands;
    for (const Relocation& r : artifact.relocations)
        words[r.word] += std::uint64_t{base[static_cast<std::size_t>(r.area)]} << value_shift;
    return words;
}

void to_cube(const Cube& cube, Bytes tensor, MutableBytes memory) {
    to_cube(shape_of(cube), 1, tensor, memory, cube.flipped ? sign_bit : std::byte{0});
    if (cube.flipped) flip(memory);
}

void from_cube(const Cube& cube, Bytes memory, MutableBytes tensor) {
    from_cube(shape_of(cube), 1, memory, tensor);
    if (cube.flipped) flip(tensor);
}

}  // namespace reef::rk3588
